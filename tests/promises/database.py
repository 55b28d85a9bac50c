"""What the stores promise."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(id="database:open:lazy", source="design §6", sentence="A constructor touches no file; the first use does."),
    Promise(
        id="database:open:private",
        source="design §6, D23",
        sentence="The files of a store can be read by their owner alone, whatever folder and umask allow.",
    ),
    Promise(
        id="database:open:foreign-refused",
        source="design §6",
        sentence="A file that has tables but not our application id is refused and stays byte for byte what it was.",
    ),
    Promise(
        id="database:open:empty-is-new",
        source="field report F038",
        sentence="A zero-byte file left by an interrupted start is taken for a new one.",
    ),
    Promise(
        id="database:migrate:killed",
        source="design §6, field reports F037, F038",
        sentence="A kill during a migration leaves the version before it; the next start goes on from there.",
    ),
    Promise(
        id="database:open:half-folded",
        source="design §6, D4",
        sentence="A kill after any page that a fold of the log wrote leaves a store that opens, with all its commits.",
    ),
    Promise(
        id="database:open:newer-refused",
        source="design §6, field report F037",
        sentence="A file with a newer or altered schema is refused with both versions named.",
    ),
    Promise(
        id="database:read-only:never-migrates",
        source="design §6",
        sentence="A read-only store makes no file, migrates nothing and refuses writes.",
    ),
    Promise(
        id="database:write:group-commit",
        source="design §6",
        sentence="Writes that wait share one commit, and each of them fails alone.",
    ),
    Promise(
        id="database:write:survives-kill",
        source="design §8",
        sentence="What was answered survives a SIGKILL right after the answer.",
    ),
    Promise(
        id="database:write:erased-is-gone",
        source="design D19, D23",
        sentence="What was erased is in no free page of the closed file.",
    ),
    Promise(
        id="database:read:does-not-wait",
        source="design §6, field report F040",
        sentence="A read neither waits for a running write transaction nor sees its uncommitted rows.",
    ),
    Promise(
        id="database:close:idempotent",
        source="field report F041",
        sentence="Closing twice is harmless, use after it is a typed error, a forgotten store keeps no process.",
    ),
    Promise(
        id="database:owner:second-refused",
        source="design §6",
        sentence="A second owner of a data directory is refused and told the process id of the first.",
    ),
    Promise(
        id="database:locked:is-an-error",
        source="field report F031",
        sentence="A write that another process's lock keeps out ends as a typed failure of kind locked.",
    ),
    Promise(
        id="database:journal:fallback",
        source="field report F034",
        sentence="Where a file system refuses a write-ahead log the store uses a rollback journal and says so once.",
    ),
)
