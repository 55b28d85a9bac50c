"""Changes to a transcript that is there: replace, clear, rewind, restore. Plain functions of one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, transcript
from aip_hermes.embedded.session_db.columns import decoded_content, encoded_content, message_row, scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["clear", "replace", "restore", "rewind", "set_latest_user_api_content"]


_GONE: Final = {
    (True, True): "retire_live_messages",
    (True, False): "retire_live_messages",
    (False, True): "delete_live_messages",
    (False, False): "delete_messages",
}


def replace(
    connection: Connection,
    session_id: str,
    new: Sequence[Mapping[str, Any]],
    *,
    now: float,
    active_only: bool,
    archive_dropped: bool,
) -> None:
    """Put messages in the place of all rows, or of the live ones; the counters are those of the new ones.

    archive_dropped: the live rows are hidden instead of removed. Raises UnknownSession, CompressionSessionClosedError.
    """
    session_id = scrubbed(session_id)
    transcript.check_open(connection, session_id)
    gone = _GONE[archive_dropped, active_only]
    connection.execute(QUERIES[gone], {"session_id": session_id})
    connection.execute(QUERIES["restart_counters"], {"id": session_id})
    transcript.append(connection, session_id, new, now=now, batch=True)
    sessions.sum_up(connection, session_id, counters=False)


def clear(connection: Connection, session_id: str) -> None:
    """Remove all rows; an unknown session has none."""
    session_id = scrubbed(session_id)
    connection.execute(QUERIES["delete_messages"], {"session_id": session_id})
    sessions.sum_up(connection, session_id, counters=True)


def set_latest_user_api_content(connection: Connection, session_id: str, content: object, api_content: str) -> int:
    """Note what was really sent for the newest live user row, if it still holds `content`. Returns rows changed."""
    rows = connection.execute(QUERIES["newest_live_user_row"], {"session_id": scrubbed(session_id)})
    if not rows or decoded_content(rows[0]["content"]) != decoded_content(encoded_content(content)):
        return 0
    connection.execute(QUERIES["write_api_content"], {"id": rows[0]["id"], "api_content": scrubbed(api_content)})
    return 1


def rewind(connection: Connection, session_id: str, row_id: int) -> dict[str, Any]:
    """Hide a user's row and all later live ones.

    Returns `{rewound_count, target_message, new_head_id}`. Raises ValueError where the row is missing or no user's.
    """
    session_id = scrubbed(session_id)
    rows = connection.execute(QUERIES["fetch_message"], {"id": row_id, "session_id": session_id})
    if not rows:
        raise ValueError(f"message {row_id} not found in session {session_id}")
    target = message_row(rows[0])
    if target["role"] != "user":
        raise ValueError(f"a rewind goes to a message of the user; message {row_id} is one of role {target['role']!r}")
    connection.execute(QUERIES["rewind_messages"], {"session_id": session_id, "since": row_id})
    rewound = connection.changes
    connection.execute(QUERIES["count_rewind"], {"id": session_id})
    sessions.sum_up(connection, session_id, counters=False)
    (head,) = connection.execute(QUERIES["newest_live_row"], {"session_id": session_id})
    return {"rewound_count": rewound, "target_message": target, "new_head_id": head["id"]}


def restore(connection: Connection, session_id: str, since: int) -> int:
    """Show the rows from `since` on again that a rewind had hidden. Returns how many."""
    session_id = scrubbed(session_id)
    connection.execute(QUERIES["restore_messages"], {"session_id": session_id, "since": since})
    restored = connection.changes
    if restored:
        sessions.sum_up(connection, session_id, counters=False)
    return restored
