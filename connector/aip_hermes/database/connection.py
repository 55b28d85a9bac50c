"""What an operation gets: a handful of calls inside one transaction, in the connection's own thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, Literal

__all__ = ["MISSED", "Connection", "Engine", "Listed", "Note"]

Note = tuple[str, Mapping[str, Any]]
"""What happened, and its facts, for whoever listens to a store's commits."""

MISSED: Final = "store.messages_missed"
"""The note, without facts, that is heard where notes of other processes may have been missed."""

Engine = Literal["sqlite", "postgres"]

_NOTHING: Mapping[str, Any] = {}


class Listed(str):
    """A list as one parameter: JSON for SQLite's `json_each`, an array for PostgreSQL's `unnest`."""

    __slots__ = ("values",)

    values: tuple[Any, ...]

    def __new__(cls, values: Iterable[Any]) -> Listed:
        kept = tuple(values)
        listed = super().__new__(cls, json.dumps(kept))
        listed.values = kept
        return listed


class Connection:
    """One transaction's view of the store. Valid only inside the function it was handed to."""

    __slots__ = ("_changes", "_notes", "_raw")

    engine: Engine = "sqlite"
    """For what an operation has to hand over in another form, because the engine can't make it itself."""

    def __init__(self, raw: sqlite3.Connection, notes: list[Note] | None = None) -> None:
        self._raw = raw
        self._notes = notes
        self._changes = 0

    @property
    def changes(self) -> int:
        """Rows that the last `execute` inserted, updated or deleted."""
        return self._changes

    def time_of_leases(self, own: float) -> float:
        """Return the Unix seconds that leases of this store go by: one's own, or those of a server that others ask."""
        return own

    def note(self, name: str, /, **facts: Any) -> None:
        """Tell whoever listens to this store's commits, once this transaction is committed, and never if it is not."""
        if self._notes is not None:
            self._notes.append((name, facts))

    def execute(self, query: str, params: Mapping[str, Any] = _NOTHING) -> list[dict[str, Any]]:
        """Run one statement with `:name` parameters and return all its rows as dictionaries, RETURNING included."""
        cursor = self._raw.execute(query, params)
        try:
            if cursor.description is None:
                self._changes = cursor.rowcount
                return []
            first = cursor.fetchone()
            # Many a look finds nothing, and the names of sixty columns cost more than the look.
            names = [] if first is None else [column[0] for column in cursor.description]
            rows = [] if first is None else [dict(zip(names, row, strict=True)) for row in chain((first,), cursor)]
            self._changes = cursor.rowcount if cursor.rowcount >= 0 else len(rows)
            return rows
        finally:
            cursor.close()

    def insert(self, query: str, params: Mapping[str, Any]) -> int:
        """Run one INSERT of one row, without RETURNING, into a table whose key is the number `id`; returns that."""
        cursor = self._raw.execute(query, params)
        try:
            return int(cursor.lastrowid or 0)
        finally:
            cursor.close()

    def tuples(self, query: str, params: Mapping[str, Any] = _NOTHING) -> list[tuple[Any, ...]]:
        """Run one SELECT and return its rows as tuples in the order of its columns: for those that are read by the
        thousand, where a dictionary each is half of the time."""
        cursor = self._raw.execute(query, params)
        try:
            return cursor.fetchall()
        finally:
            cursor.close()
