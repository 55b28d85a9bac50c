"""Where rows stand to each other: chains of compression, roots, and which transcripts come before one's own.

Each answer is one recursive query, whatever the length of the chain, and ends on a loop. Plain functions of one
transaction.
"""

from __future__ import annotations

from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed, session_row
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = [
    "compression_ancestors",
    "compression_lineage",
    "compression_tip",
    "conversation_root",
    "live_continuation",
    "told_lineage",
    "unmarked_descendant",
]


def compression_tip(connection: Connection, session_id: str) -> str:
    """Return where the conversation of a compressed row goes on; the id itself for any other."""
    session_id = scrubbed(session_id)
    # Asked before every read and every turn, and hardly a row was compressed.
    if not connection.tuples(QUERIES["compressed"], {"id": session_id}):
        return session_id
    return str(connection.execute(QUERIES["compression_tip"], {"id": session_id})[0]["id"])


def compression_ancestors(connection: Connection, session_id: str) -> list[str]:
    """Return the rows that a compression ended on the way up, nearest first."""
    return [row["id"] for row in connection.execute(QUERIES["compression_ancestors"], {"id": scrubbed(session_id)})]


def compression_lineage(connection: Connection, session_id: str) -> list[str]:
    """Return the chain through the row, first segment to tip; none for an unknown row."""
    found = connection.execute(QUERIES["compression_lineage"], {"id": scrubbed(session_id)})
    return list(dict.fromkeys(row["id"] for row in found))


def conversation_root(connection: Connection, session_id: str) -> str:
    """Return the oldest ancestor over edges of any kind; the id itself for an unknown row."""
    return str(connection.execute(QUERIES["conversation_root"], {"id": scrubbed(session_id)})[0]["id"])


def live_continuation(connection: Connection, session_id: str) -> dict[str, Any] | None:
    """Return the one open continuation of a compressed row; None where there is none, or more than one."""
    found = connection.execute(QUERIES["live_continuations"], {"id": scrubbed(session_id)})
    if len(found) != 1:
        return None
    (row,) = connection.execute(QUERIES["fetch_session"], {"id": found[0]["id"]})
    return session_row(row)


def told_lineage(connection: Connection, session_id: str) -> dict[str, int]:
    """Return the row and the ancestors whose transcripts come before its own, each with the messages it counted.

    The row comes first, the oldest last; a branch, which holds a copy, has no ancestors here. Empty: unknown row.
    """
    found = connection.execute(QUERIES["told_lineage"], {"id": scrubbed(session_id)})
    return {row["id"]: row["message_count"] for row in found}


def unmarked_descendant(connection: Connection, session_id: str) -> str:
    """Return the deepest row with messages along the newest unmarked children; the id itself when there is none."""
    rows = connection.execute(QUERIES["deepest_unmarked_child"], {"id": scrubbed(session_id)})
    return str(rows[0]["id"]) if rows else session_id
