"""Removing and putting away what is old. Plain functions of one transaction."""

from __future__ import annotations

from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import removal, sessions
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.selection import Selection, selected

__all__ = ["archive", "archive_idle", "candidates", "logical_size", "prune"]


def prune(connection: Connection, selection: Selection, *, limit: int | None = None) -> list[str]:
    """Remove the ended rows that a selection means, the longest inactive first. Returns their ids.

    Children that stay, subagents' included, lose their parent. limit: at most so many, so that a large prune needs not
    be one long transaction.
    """
    return removal.remove(connection, selected(connection, selection, ended=True, limit=limit))


def candidates(connection: Connection, selection: Selection, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Return what `prune` would remove: session dictionaries with `last_active`."""
    found: list[dict[str, Any]] = []
    for session_id, last_active in selected(connection, selection, ended=True, limit=limit).items():
        row = sessions.fetch(connection, session_id)
        if row is not None:
            found.append(row | {"last_active": last_active})
    return found


def archive(connection: Connection, selection: Selection) -> int:
    """Put away the ended rows that a selection means; returns how many were not away yet."""
    total = 0
    for session_id in selected(connection, selection, ended=True):
        connection.execute(QUERIES["archive_session"], {"id": session_id})
        total += connection.changes
    return total


def archive_idle(connection: Connection, *, before: float, pinned_too: bool) -> int:
    """Put away conversations without activity since a moment, whether ended or not; returns how many rows that were.

    A conversation that compressions cut is as recent as the row where it goes on.
    """
    return len(connection.execute(QUERIES["archive_idle"], {"before": before, "pinned_too": int(pinned_too)}))


def logical_size(connection: Connection) -> int:
    """Return the bytes that rows and indexes take; free pages don't count."""
    return int(connection.execute(QUERIES["logical_size"])[0]["bytes"])
