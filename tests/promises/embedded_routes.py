"""What the embedded Hermes promises about its routes besides sessions: jobs, listings, completions, responses, runs."""

from __future__ import annotations

from tests.promises.promise import Promise

__all__ = ["PROMISES"]

_API = "API server §"

PROMISES = (
    Promise(
        id="hermes_api:schedule:forms",
        source=_API + "7",
        sentence="A schedule is a delay, an interval, a cron text of five fields or an ISO time; each has its display.",
    ),
    Promise(
        id="hermes_api:schedule:next",
        source=_API + "7",
        sentence="The next moment of a schedule is exact over ranges, steps, month ends, leap days and two day fields.",
    ),
    Promise(
        id="hermes_api:schedule:refused",
        source=_API + "2.3, §7",
        sentence="What is no schedule, waits for nothing, lies in the past or never comes is refused.",
    ),
    Promise(
        id="embedded:listings:shapes",
        source=_API + "6.1",
        sentence="Skills and toolsets list what the agent has: no skills, one set with its one tool.",
    ),
    Promise(
        id="embedded:jobs:life",
        source=_API + "7",
        sentence="A job is made, listed, read, changed, paused, resumed, set to run now and deleted, each with its "
        "documented answer.",
    ),
    Promise(
        id="embedded:jobs:refused",
        source=_API + "2.3, §7; design §7",
        sentence="A bad job or change is 400 with a text, an unknown one 404; nothing is stored or changed.",
        diverges="0.19.0 answers 500 for bad JSON, wrong types and bad schedules.",
    ),
    Promise(
        id="embedded:jobs:durable",
        source="design §6; issue 3",
        sentence="Jobs outlive their server, in the file of the sessions; an older file is migrated.",
    ),
    Promise(
        id="embedded:completions:answer",
        source=_API + "6.2",
        sentence="A completion has OpenAI's form; the model name asked for is repeated and chooses nothing.",
    ),
    Promise(
        id="embedded:completions:session",
        source=_API + "1.4, §6.2",
        sentence="The session header continues, or makes, a session on its stored history; else the opening names one "
        "and the sent history is read.",
    ),
    Promise(
        id="embedded:completions:refused",
        source=_API + "2.2, §6.2",
        sentence="Bad messages and headers are 400 before anything is stored.",
        diverges="0.19.0 answers 500 to a body or message that is no object.",
    ),
    Promise(
        id="embedded:completions:failed",
        source="design §7",
        sentence="A failed model is 502 model_failed; in a stream the last chunk has finish reason error and the code.",
        diverges="0.19.0 answers 200 with the failure as text.",
    ),
    Promise(
        id="embedded:completions:stream",
        source=_API + "6.2",
        sentence="A streamed completion tells role, text, tools, an end with usage, and `[DONE]`.",
    ),
    Promise(
        id="embedded:completions:leaves",
        source="design §7; " + _API + "8.3; field report F046",
        sentence="A client that leaves a streamed completion interrupts it; the partial text is an interrupted row.",
    ),
    Promise(
        id="embedded:repeats:kept",
        source=_API + "6.2",
        sentence="An idempotency key repeats the answer under a new id for 300 s.",
    ),
    Promise(
        id="embedded:repeats:other",
        source=_API + "6.2",
        sentence="Another request under a key, also one for another session, runs and takes its place.",
    ),
    Promise(
        id="embedded:repeats:in-flight",
        source=_API + "6.2",
        sentence="Equal requests in flight under one key share one run.",
    ),
    Promise(
        id="embedded:repeats:failed",
        source="design §7",
        sentence="A failure is not kept under its key.",
    ),
    Promise(
        id="embedded:limit:runs",
        source=_API + "4.3, §9",
        sentence="Beyond the cap of turns at once the /v1 agent routes answer 429 with Retry-After 1; chat is not "
        "limited.",
    ),
)
