"""What the verified lifecycle promises."""

from __future__ import annotations

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="lifecycle:verified",
        source="issue 5; design D15, D16, D20",
        sentence="A step is done when reads show it: exact row and list entry, active messages of a turn, both sides "
        "of a fork, no row and no named parent after a delete.",
    ),
    Promise(
        id="lifecycle:repeatable",
        source="issue 5",
        sentence="A walk that is run again answers each finished step from what was kept and sends nothing.",
    ),
    Promise(
        id="lifecycle:listing",
        source="issue 5; field report F106",
        sentence="A session is looked for page by page, each counted once, and again where the list moved.",
    ),
    Promise(
        id="lifecycle:closed",
        source="issue 5; design D14",
        sentence="No turn follows an end unless the policy allows it and the caller says so, whatever handle is used.",
    ),
    Promise(
        id="lifecycle:session-key",
        source="issue 5; field report F010",
        sentence="A fork whose child shares its parent's session key is warned of, at the caller's line.",
    ),
    Promise(
        id="lifecycle:effects",
        source="issue 5",
        sentence="A turn with `confirm_effects` is done only when the application says yes; a repeat only asks.",
    ),
    Promise(
        id="lifecycle:transitions",
        source="issue 5",
        sentence="What is not possible where a step or its session stands is refused before anything is sent.",
    ),
    Promise(
        id="lifecycle:decision",
        source="issue 5; design D9",
        sentence="A deletion is requested, decided and confirmed in that order; a denied one stays denied.",
    ),
    Promise(
        id="lifecycle:where-it-began",
        source="issue 5",
        sentence="A lifecycle goes on only at the server and as the principal that it was begun with.",
    ),
    Promise(
        id="lifecycle:lost-answer",
        source="issue 5; design §5, D2, D3",
        sentence="Each step with its answer lost or its connection cut, before the server or behind it, takes effect "
        "at most once; what reads prove goes on by itself.",
    ),
    Promise(
        id="lifecycle:person-decides",
        source="issue 5; design §5",
        sentence="What is not proven to have happened is sent anew only after a decision that is kept, under a new "
        "Action ID.",
    ),
    Promise(
        id="lifecycle:resumed",
        source="issue 5",
        sentence="A walk that ends anywhere is finished by another process from the file of identities, with exactly "
        "the sessions, turns and forks that were meant.",
    ),
    Promise(
        id="lifecycle:killed",
        source="issue 5",
        sentence="A walker that is SIGKILLed at ten random moments, with its requests dropped, late or answered, "
        "leaves a walk that others finish with each change made once.",
    ),
    Promise(
        id="lifecycle:adopted",
        source="issue 5; design D14, D15; field reports F001, F002",
        sentence="A session goes on under another id only after a proven compression, also where the answer was lost "
        "and where an old handle is used; a fork or an unproven id is never adopted.",
    ),
    Promise(
        id="lifecycle:quirks",
        source="issue 5; design §7",
        sentence="A source whose messages a fork answers for, a fork that is half done and a row that came back are "
        "seen, named and never taken for what was wanted.",
    ),
    Promise(
        id="docs:session-tutorial",
        source="issue 5",
        sentence="The program and the commands of the tutorial run as they stand, with a kill in between.",
    ),
    Promise(
        id="docs:blocks-run",
        source="issue 5 (docs)",
        sentence="Every fenced block of every tutorial and how-to is run by a test as it stands, or parsed where it is "
        "no command, or named with the reason why not.",
    ),
    Promise(
        id="lifecycle:shared",
        source="issue 5; design D3",
        sentence="Processes that run one lifecycle at once send one action for each step, and each finds the same end.",
    ),
    Promise(
        id="lifecycle:streams",
        source="issue 5; design §5, D15, D17",
        sentence="A streamed turn is verified and resumed exactly as another one; its words are told as they come, "
        "prove nothing, and no failure of theirs changes what is said of the turn.",
    ),
    Promise(
        id="lifecycle:discover",
        source="issue 5; field report F101",
        sentence="What an endpoint does not offer, or not to this principal, is named before the first step is sent.",
    ),
)
