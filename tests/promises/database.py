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
        id="database:close:waits-for-reads",
        source="field report F041",
        sentence="Closing waits for what runs and for what waits its turn, reads too; nobody gets an untyped error.",
    ),
    Promise(
        id="database:loop:next-goes-on",
        source="field report F041",
        sentence="An event loop that ended within a write leaves no traceback and a store that the next loop goes on "
        "with; beside a loop that has not ended a second one is refused.",
    ),
    Promise(
        id="database:look-up:typed",
        source="design §6",
        sentence="A look at damaged pages is the same typed failure in the calling thread as in a thread of the store.",
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
    Promise(
        id="database:postgres:lazy",
        source="design §6",
        sentence="A store on PostgreSQL connects at its first operation and makes its schema then.",
    ),
    Promise(
        id="database:postgres:same-values",
        source="design §6",
        sentence="Texts with NUL, flags, large and summed numbers come back from PostgreSQL as from SQLite.",
    ),
    Promise(
        id="database:postgres:undone-alone",
        source="design §6",
        sentence="An operation that fails on PostgreSQL leaves nothing and tells nobody.",
    ),
    Promise(
        id="database:postgres:serial",
        source="design §6",
        sentence="Operations that read and then write do so one after the other, from several workers too.",
    ),
    Promise(
        id="database:postgres:migrate:once",
        source="design §6",
        sentence="Workers that start together migrate a PostgreSQL schema once.",
    ),
    Promise(
        id="database:postgres:refused",
        source="design §6",
        sentence="A PostgreSQL schema that is partial, altered, newer or foreign is refused as it is.",
    ),
    Promise(
        id="database:postgres:index-again",
        source="design §6",
        sentence="A missing index is made again at the next writable opening.",
    ),
    Promise(
        id="database:postgres:read-only",
        source="design §6",
        sentence="A read-only store on PostgreSQL makes nothing, and its transactions are read-only at the server.",
    ),
    Promise(
        id="database:postgres:pool",
        source="design §6",
        sentence="An operation waits for a connection as long as is set and then says which settings matter.",
    ),
    Promise(
        id="database:postgres:back-end-gone",
        source="design §6",
        sentence="A terminated back end costs a second try on another connection and keeps the write once.",
    ),
    Promise(
        id="database:postgres:server-away",
        source="design §6",
        sentence="While the server is away operations end as temporary failures; afterwards they run again.",
    ),
    Promise(
        id="database:postgres:commit-lost",
        source="design §6",
        sentence="A COMMIT whose answer was lost is looked up at the server and neither repeated nor lost.",
    ),
    Promise(
        id="database:postgres:settings",
        source="design §6",
        sentence="Unknown, wrong or impossible pool settings and addresses are refused before any connection.",
    ),
    Promise(
        id="database:postgres:written-once",
        source="design §6",
        sentence="The runtime's schema and each of its queries, written once, are taken by PostgreSQL as they are.",
    ),
    Promise(
        id="database:queries:dialect",
        source="design §6",
        sentence="A query that PostgreSQL reads in other words keeps its name; one engine never has a query alone.",
    ),
    Promise(
        id="database:queries:parts",
        source="design §6",
        sentence="What several queries have in common is written once and stands in each of them, in either dialect.",
    ),
    Promise(
        id="database:postgres:heard",
        source="design §6",
        sentence="What one worker of a shared store commits the others hear; a lost connection is told, never silent.",
    ),
)
