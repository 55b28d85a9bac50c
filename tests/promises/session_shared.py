"""What the session store promises on PostgreSQL."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="sessions:postgres:written-once",
        source="design §6, §7",
        sentence="Every query of the session store is taken by PostgreSQL, most in the words that SQLite takes.",
    ),
    Promise(
        id="sessions:postgres:lazy",
        source="hermes-sessions §13",
        sentence="A SessionDB on an address connects at its first operation, in one loop; a wrong address fails early.",
    ),
    Promise(
        id="sessions:postgres:read-only",
        source="hermes-sessions §13",
        sentence="A shared store opened for reading makes no schema and takes no write.",
    ),
    Promise(
        id="sessions:postgres:processes",
        source="hermes-sessions §13, §16.16",
        sentence="Processes that begin together make one schema, and four that append keep all rows, each its order.",
    ),
    Promise(
        id="sessions:postgres:server-time",
        source="hermes-sessions §11, §13",
        sentence="On a shared store leases end by the server's clock, and of many that want one at once one gets it.",
    ),
    Promise(
        id="sessions:postgres:export",
        source="hermes-sessions §16.15",
        sentence="What is exported on one engine is imported on the other and comes out of it the same.",
    ),
    Promise(
        id="sessions:postgres:search",
        source="hermes-sessions §13, §16.11",
        sentence="The same query finds the same messages, snippets and context on both engines, without an extension.",
    ),
    Promise(
        id="sessions:postgres:plans",
        source="hermes-sessions §2.5",
        sentence="What is read most walks along an index on PostgreSQL, too.",
    ),
    Promise(
        id="sessions:postgres:migrate",
        source="hermes-sessions §13",
        sentence="`aip-hermes migrate --store sessions` makes a store of sessions once; `--check` only looks.",
    ),
    Promise(
        id="sessions:postgres:found",
        source="hermes-sessions §13",
        sentence="An empty schema is made, an older one is brought up, an unknown one is refused untouched.",
    ),
    Promise(
        id="sessions:postgres:killed-migration",
        source="hermes-sessions §16.16",
        sentence="A migration that is broken off in the middle leaves nothing, and the next one does it all.",
    ),
)
