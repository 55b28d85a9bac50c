"""Functions in transactions of one SQLite connection, in its thread: one alone, or several that share a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from aip_hermes.database.connection import Connection, Note
from aip_hermes.database.failures import StoreFailure, translated

__all__ = ["commit_together", "in_transaction"]

T = TypeVar("T")


def in_transaction(
    raw: sqlite3.Connection, function: Callable[[Connection], T], *, begin: str, notes: list[Note] | None = None
) -> T:
    """Run `function` in a transaction, begun as `begin` says; what it raises undoes it."""
    raw.execute(begin)
    try:
        result = function(Connection(raw, notes))
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise
    return result


def commit_together(
    raw: sqlite3.Connection,
    functions: Sequence[Callable[[Connection], Any]],
    notes: list[Note],
    *,
    first: str | None = None,
) -> list[tuple[bool, Any]]:
    """Run all in one transaction; each fails alone. Returns (True, result) or (False, exception) per function.

    notes: gets those of the functions whose rows were kept. first: a statement to begin with; all fail with it.
    """
    if not functions:
        return []
    if len(functions) == 1:

        def alone(connection: Connection) -> Any:
            if first is not None:
                connection.execute(first)
            return functions[0](connection)

        try:
            return [(True, in_transaction(raw, alone, begin="BEGIN IMMEDIATE", notes=notes))]
        except BaseException as error:
            notes.clear()
            return [(False, _meaning(error))]

    def each(connection: Connection) -> list[tuple[bool, Any]]:
        if first is not None:
            connection.execute(first)
        return _each_alone(raw, connection, functions, notes)

    return in_transaction(raw, each, begin="BEGIN IMMEDIATE", notes=notes)


def _each_alone(
    raw: sqlite3.Connection,
    connection: Connection,
    functions: Sequence[Callable[[Connection], Any]],
    notes: list[Note],
) -> list[tuple[bool, Any]]:
    results: list[tuple[bool, Any]] = []
    for function in functions:
        before = len(notes)
        raw.execute("SAVEPOINT operation")
        try:
            results.append((True, function(connection)))
        except BaseException as error:
            if not raw.in_transaction:
                # The engine gave up the whole transaction (disk full, I/O): nobody's write was kept.
                raise
            raw.execute("ROLLBACK TO operation")
            del notes[before:]
            results.append((False, _meaning(error)))
        raw.execute("RELEASE operation")
    return results


def _meaning(error: BaseException) -> BaseException | StoreFailure:
    return translated(error) if isinstance(error, sqlite3.Error) else error
