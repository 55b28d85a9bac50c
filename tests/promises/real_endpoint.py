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
    Promise(
        id="real:tool-turns",
        source="issue 8 (tool turns); design D17",
        sentence="A streamed turn of hermes-agent 0.19.0 with tools has its text once, and its tools' rows are stored.",
    ),
    Promise(
        id="real:unicode-ids",
        source="issue 8 (unicode ids); design D12",
        sentence="A session of hermes-agent 0.19.0 is created, read, forked and deleted under a name of any script.",
    ),
    Promise(
        id="real:long-history",
        source="issue 8 (long histories)",
        sentence="A long history reaches the model of hermes-agent 0.19.0 whole, and is read whole.",
    ),
    Promise(
        id="real:cancel",
        source="issue 8 (cancellation); design D17",
        sentence="A cancelled turn of hermes-agent 0.19.0 is not told as undone: it goes on, and is found afterwards.",
    ),
    Promise(
        id="real:compression",
        source="issue 8 (compression in place and by rotation); design D14, D15",
        sentence="The session that hermes-agent 0.19.0 continues another with is adopted where the compression is "
        "proven, and never a fork in its place.",
    ),
    Promise(
        id="real:differences",
        source="issue 8 (endpoint against the real endpoint)",
        sentence="The embedded endpoint answers over a hundred requests as hermes-agent 0.19.0 does, but for a table "
        "that says why; what has a quirk is gone with it.",
    ),
)
