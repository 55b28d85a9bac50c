"""What a real hermes-agent 0.19.0 and this project's two sides of its API keep towards each other."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="real:lost-answers",
        source="issue 8 (connector against the real endpoint); design §5",
        sentence="Wherever an answer of hermes-agent 0.19.0 to a create, patch, fork, turn or delete was lost, the "
        "verdict is what its own rows say, and nothing that may change something is sent for it.",
    ),
    Promise(
        id="real:operations",
        source="issue 8 (every operation it serves)",
        sentence="hermes-agent 0.19.0 accepts what each of the 35 operations sends, and its answers are what their "
        "published schemas say.",
    ),
)
