"""What several servers on one database promise."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="shared:one-send",
        source="design §4, §6",
        sentence="Twenty parallel submissions of one key over two workers make one mutating request and equal answers.",
    ),
    Promise(
        id="shared:one-turn",
        source="design D13",
        sentence="Turns of one session follow each other across workers.",
    ),
    Promise(
        id="shared:cancel",
        source="design D8, D13",
        sentence="Any worker cancels an action; where it was sent and can't be stopped, that is refused there too.",
    ),
    Promise(
        id="shared:takeover",
        source="design D4",
        sentence="What a killed worker had claimed is definite once its lease has ended; what waited another one does.",
    ),
    Promise(
        id="shared:migrate",
        source="design §6",
        sentence="`aip-hermes migrate` makes or migrates a shared store once; `--check` says whether it is ready.",
    ),
    Promise(
        id="shared:files-only",
        source="design §6",
        sentence="Backup and restore refuse a shared store and name what copies it.",
    ),
    Promise(
        id="shared:away",
        source="design §6",
        sentence="A database that cannot be reached is one sentence, whichever command needs it.",
    ),
)
