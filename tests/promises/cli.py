"""What `aip-hermes` and the whole of it promise."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="demo:walk:verified",
        source="issue 2, lifecycle",
        sentence="The demo walks the lifecycle between real processes and ends with 0 only when every claim held.",
    ),
    Promise(
        id="demo:walk:failure-named",
        source="issue 2",
        sentence="A verification that does not hold ends the demo with a non-zero status and names the step.",
    ),
    Promise(
        id="demo:clean",
        source="issue 2, must hold",
        sentence="The demo removes its folder and leaves no process, also when its endpoint is dead or it is killed.",
    ),
    Promise(
        id="demo:endpoint",
        source="issue 2",
        sentence="The demo walks the same steps against a Hermes that already runs, and counts through a relay.",
    ),
    Promise(
        id="demo:endpoint:cause",
        source="field report F113",
        sentence="Why an endpoint can't be reached is said as it is: the demo's relay turns no refusal into a riddle.",
    ),
    Promise(
        id="demo:table",
        source="issue 2",
        sentence="The table fits its terminal, also a narrow one or one of ASCII, and breaks no operation's name.",
    ),
    Promise(
        id="output:unwritable",
        source="issue 2, must hold",
        sentence="Closed streams and a reader that went away end in a status and a sentence, not in a traceback.",
    ),
    Promise(
        id="wire:emitted:valid",
        source="issue 2, must hold",
        sentence="Every AIP object that the servers emit during the lifecycle validates against its schema.",
    ),
    Promise(
        id="quirks:survived",
        source="issue 2, design §7",
        sentence="With each quirk of 0.19.0 the walk holds, or what the endpoint did is reported and not hidden.",
    ),
    Promise(
        id="up:ready-line",
        source="issue 2",
        sentence="`up` prints exactly one JSON line on stdout when both servers are ready.",
    ),
    Promise(
        id="up:says-its-ports",
        source="an operator's wish: `doctor` finds what `up` started",
        sentence="A settings file that `up` makes has the ports that it was given; one that is there keeps its own.",
    ),
    Promise(
        id="up:stops",
        source="issue 2",
        sentence="SIGTERM and SIGINT end `up` and its children with status 0 within five seconds.",
    ),
    Promise(
        id="up:no-orphans",
        source="issue 2, must hold",
        sentence="Children end when their parent is killed, and `up` ends when a child does.",
    ),
    Promise(
        id="up:secrets",
        source="issue 2, field report F074",
        sentence="Secrets are made on first start, files 0600 in folders 0700, and stay the same afterwards.",
    ),
    Promise(
        id="up:secrets:not-committed",
        source="issue 2, must hold",
        sentence="A folder that was made for secrets is ignored by the repository that it lies in.",
    ),
    Promise(
        id="up:one-owner",
        source="design §6",
        sentence="A second `up` on one folder, or on a used port, stops with a sentence and no traceback.",
    ),
    Promise(
        id="turns:async",
        source="design D18, issue 3",
        sentence="A turn in mode async is acknowledged, runs on its own, and its end can be asked for.",
    ),
    Promise(
        id="turns:streamed",
        source="design D17, issue 3",
        sentence="A streamed turn leaves its chunks behind, one done at the end, and the text that was stored.",
    ),
    Promise(
        id="restart:nothing-settled-lost",
        source="issue 2, must hold",
        sentence="After a SIGKILL of the server behind any settled step, the restarted one still answers that step.",
    ),
    Promise(
        id="init:files",
        source="issue 2",
        sentence="`init` writes settings, tokens and authority once, over nothing that exists, and `serve` takes them.",
    ),
    Promise(
        id="logs:clean",
        source="issue 2, must hold",
        sentence="No credential and no transcript text stands in the servers' logs after the lifecycle.",
    ),
    Promise(
        id="readme:by-hand",
        source="issue 2",
        sentence="The README's lines by hand run as they stand.",
    ),
    Promise(
        id="mistakes:one-sentence",
        source="field report F113",
        sentence="Each wrong turn of a newcomer ends with a sentence that names the cause and the next step.",
    ),
)
