"""What holds against a hermes-agent that people run. The tests need one: CONTRIBUTING says how."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="real:lifecycle",
        source="issue 2, must hold",
        sentence="The lifecycle of the demo holds against hermes-agent 0.19.0, and its surprises are notes.",
    ),
    Promise(
        id="real:half-fork",
        source="issue 2, must hold; design D16",
        sentence="A fork that hermes-agent 0.19.0 does by half is uncertain and its evidence says what stands there.",
    ),
    Promise(
        id="real:stream",
        source="issue 3, design D17",
        sentence="A streamed turn of hermes-agent 0.19.0 ends with one done, its text once, and stored.",
    ),
)
