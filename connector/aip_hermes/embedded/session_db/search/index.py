"""The index of words on SQLite: made, kept up, given up and made again. Plain functions of one transaction.

Triggers keep it: deleted and changed rows at once, new rows some hundred at a time. How far it goes is a row of the
store, in the same transaction as the index, so a kill at any point leaves a beginning that goes on. When it is damaged
the triggers go, so that it never stands in the way of a message, and the texts themselves are searched.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from aip_hermes.database import Connection, StoreFailure, StoreUnavailable
from aip_hermes.embedded.session_db import meta
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.search.in_rows import add_trigrams

__all__ = [
    "INDEX_CHUNK",
    "SearchIndex",
    "attach",
    "catch_up",
    "check",
    "concerns_index",
    "detach",
    "optimize",
    "start_over",
    "state_of",
]

INDEX_CHUNK: Final = 2_000
"""Rows that enter the index in one transaction, a few tens of milliseconds."""

_CAUSE: Final = "fts_stale"
"""Under this key the store keeps why there is no index."""

_TABLE: Final = "messages_fts"
_TRIGGERS: Final = ("search_append", "search_delete", "search_unwrite", "search_rewrite")
_SHADOWS: Final = tuple(f"{_TABLE}_{part}" for part in ("data", "idx", "docsize", "config", "content"))

_SIGNS: Final = (
    "no such module",
    "SQL logic error",
    "fts5: corruption",
    "fts5: checksum",
    "fts5: missing row",
    "invalid fts5 file format",
    f"vtable constructor failed: {_TABLE}",
    f"no such table: {_TABLE}",
    f"no such table: main.{_TABLE}",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchIndex:
    """What is known of the index. indexed_through: the last row id in it; None: there is none. newest: the last row id
    of the store. cause: why there is none, as the engine said it.
    """

    indexed_through: int | None
    newest: int
    cause: str | None = None

    @property
    def waiting(self) -> int:
        """At most so many rows are not in the index."""
        return max(0, self.newest - (self.indexed_through or 0))


def state_of(connection: Connection) -> SearchIndex:
    """Return what is known of the index."""
    row = connection.execute(QUERIES["search_state"])[0]
    return SearchIndex(**row, cause=meta.value_of(connection, _CAUSE))


def attach(connection: Connection) -> None:
    """Make an empty index where there is none; the rows enter it afterwards. Fails where the engine has no FTS5."""
    if state_of(connection).indexed_through is None:
        start_over(connection)


def start_over(connection: Connection) -> None:
    """Put an empty index in the place of whatever is there, in any state."""
    _drop_triggers(connection)
    _drop_table(connection)
    for query in (
        "create_search_index",
        "create_append_trigger",
        "create_delete_trigger",
        "create_unwrite_trigger",
        "create_rewrite_trigger",
    ):
        connection.execute(QUERIES[query])
    connection.execute(QUERIES["note_indexed"], {"through": 0})
    meta.forget(connection, _CAUSE)


def catch_up(connection: Connection, *, rows: int = INDEX_CHUNK) -> SearchIndex:
    """Let the next `rows` waiting rows into the index; returns how it stands then. Without an index: nothing."""
    state = state_of(connection)
    if state.indexed_through is None or not state.waiting:
        return state
    through = min(state.indexed_through + rows, state.newest)
    connection.execute(QUERIES["index_texts"], {"after": state.indexed_through, "through": through})
    connection.execute(QUERIES["note_indexed"], {"through": through})
    return SearchIndex(indexed_through=through, newest=state.newest)


def detach(connection: Connection, *, cause: str) -> bool:
    """Give the index up: no trigger touches it any more. False where that was done before."""
    if state_of(connection).indexed_through is None:
        return False
    _drop_triggers(connection)
    connection.execute(QUERIES["note_indexed"], {"through": None})
    meta.write(connection, _CAUSE, cause)
    return True


def optimize(connection: Connection) -> None:
    """Make all parts of the index one; what was deleted leaves the file. A server is told what its tables hold."""
    if connection.engine == "postgres":
        add_trigrams(connection)
    connection.execute(QUERIES["optimize_search_index"])


def check(connection: Connection) -> None:
    """Fail where the index is damaged."""
    connection.execute(QUERIES["check_search_index"])


def concerns_index(failure: StoreFailure) -> bool:
    """Tell whether a damaged or unreadable index may be behind a failure. A damaged file of rows looks the same."""
    if isinstance(failure, StoreUnavailable) and failure.kind == "corrupt":
        return True
    text = str(failure)
    # A constraint of a table of rows would be named.
    return text == "constraint failed" or any(sign in text for sign in _SIGNS)


def _drop_triggers(connection: Connection) -> None:
    for trigger in _TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")


def _drop_table(connection: Connection) -> None:
    try:
        connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")
    except sqlite3.DatabaseError:
        # The engine can't read it well enough to drop it: take it out of the list of tables by hand.
        version = connection.execute("PRAGMA schema_version")[0]["schema_version"]
        connection.execute("PRAGMA writable_schema = ON")
        try:
            connection.execute("DELETE FROM sqlite_master WHERE name = :name", {"name": _TABLE})
            connection.execute(f"PRAGMA schema_version = {version + 1:d}")
        finally:
            connection.execute("PRAGMA writable_schema = RESET")
    for shadow in _SHADOWS:
        connection.execute(f"DROP TABLE IF EXISTS {shadow}")
