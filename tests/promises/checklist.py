"""What `aip-hermes verify` and its evidence promise."""

from __future__ import annotations

from tests.promises.promise import Promise

_SOURCE = "issue 5, verify"

PROMISES = (
    Promise(
        id="checklist:passes",
        source=_SOURCE,
        sentence="Each of the fourteen points passes on the embedded endpoint, and the document says what was asked "
        "and what reads confirmed.",
    ),
    Promise(
        id="checklist:quirks",
        source=_SOURCE,
        sentence="With each named quirk of the embedded endpoint on, and with all, the checklist still passes, or the "
        "evidence names them; those that show outside are named.",
    ),
    Promise(
        id="checklist:fails",
        source=_SOURCE,
        sentence="A point that does not hold fails with the claim or the codes, those that stand on it do not apply, "
        "and the exit code is 1.",
    ),
    Promise(
        id="checklist:faults",
        source=f"{_SOURCE}; design §7",
        sentence="With each fault met once the document is valid, no point passes whose effect was not there, and one "
        "whose answer alone was lost passes by what reads show.",
    ),
    Promise(
        id="checklist:no-reviewer",
        source=_SOURCE,
        sentence="Without a reviewer the approved delete does not apply, the one that waits is withdrawn, and what is "
        "left is named.",
    ),
    Promise(
        id="checklist:cleans-up",
        source=_SOURCE,
        sentence="Whatever happens, no session of a verification is left where a reviewer lets it be deleted, and no "
        "file of identities.",
    ),
    Promise(
        id="checklist:redacted",
        source=f"{_SOURCE}; design D19",
        sentence="No transcript, reasoning, title, memory scope, credential or text of an endpoint is in the evidence, "
        "its rendering or what is said while it runs.",
    ),
    Promise(
        id="checklist:check",
        source=_SOURCE,
        sentence="`verify --check` takes a sealed document and refuses one that was changed in any member, or whose "
        "verdict, points or rendering do not fit.",
    ),
    Promise(
        id="checklist:how-to",
        source=f"{_SOURCE}, docs",
        sentence="The commands of the how-to page run as they stand, and its table has the points of the checklist.",
    ),
)
