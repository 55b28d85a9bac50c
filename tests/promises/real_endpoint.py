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
    Promise(
        id="real:failures",
        source="issue 8 (every error class that can be provoked)",
        sentence="What hermes-agent 0.19.0 refuses is told with its status and code, certain where nothing can have "
        "happened, and nothing has.",
    ),
    Promise(
        id="real:model-fails",
        source="issue 8 (failing models); design D20",
        sentence="A turn that hermes-agent 0.19.0 answers with 200 although its model failed is told as not stored.",
    ),
)
