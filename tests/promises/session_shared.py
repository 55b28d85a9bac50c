"""What the session store promises on PostgreSQL."""

from tests.promises.promise import Promise

PROMISES = (
    Promise(
        id="sessions:postgres:written-once",
        source="design §6, §7",
        sentence="Every query of the session store is taken by PostgreSQL, most in the words that SQLite takes.",
    ),
)
