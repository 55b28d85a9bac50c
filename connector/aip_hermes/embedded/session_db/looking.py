"""Small looks into a transcript: one row, the last of a role, what stands around a row. Plain functions of one
transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import as_command, decoded_content, message_row, scrubbed, text_of
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["anchored", "around", "first_assistant_text", "recent_user_messages"]

_PREVIEW_CHARS: Final = 80
_PAGE: Final = 50


def around(connection: Connection, session_id: str, row_id: int, *, window: int) -> dict[str, Any]:
    """Return `{window, messages_before, messages_after}`: up to `window` rows on each side of one, hidden ones too.

    An unknown row has an empty window and zeros.
    """
    here: dict[str, Any] = {"session_id": scrubbed(session_id), "id": row_id}
    span = max(0, window)
    following = connection.execute(QUERIES["messages_from"], here | {"limit": span + 1})
    if not following or following[0]["id"] != row_id:
        return {"window": [], "messages_before": 0, "messages_after": 0}
    before = connection.execute(QUERIES["messages_before"], here | {"limit": span})[::-1]
    return {
        "window": [message_row(row) for row in (*before, *following)],
        "messages_before": len(before),
        "messages_after": len(following) - 1,
    }


def anchored(
    connection: Connection,
    session_id: str,
    row_id: int,
    *,
    window: int,
    bookend: int,
    keep_roles: Collection[str] | None,
) -> dict[str, Any]:
    """Return `around` with `bookend_start` and `bookend_end`: the first and last messages outside of the window.

    keep_roles: of which roles rows are kept, None for all; the row in the middle is always there.
    """
    view = around(connection, session_id, row_id, window=window)
    rows: list[dict[str, Any]] = view["window"]
    if not rows:
        return view | {"bookend_start": [], "bookend_end": []}
    first, last = rows[0]["id"], rows[-1]["id"]
    kept = [row for row in rows if row["id"] == row_id or keep_roles is None or row["role"] in keep_roles]
    start = _bookend(connection, "first_visible_messages", session_id, first, bookend=bookend, roles=keep_roles)
    end = _bookend(connection, "last_visible_messages", session_id, last, bookend=bookend, roles=keep_roles)
    return view | {"window": kept, "bookend_start": start, "bookend_end": end[::-1]}


def recent_user_messages(
    connection: Connection, session_id: str, *, limit: int, include_inactive: bool
) -> list[dict[str, Any]]:
    """Return `{id, timestamp, preview}` of what a user said last, newest first; previews have at most 80 characters."""
    asked = {
        "session_id": scrubbed(session_id),
        "limit": max(0, limit),
        "include_inactive": int(include_inactive),
    }
    rows = connection.execute(QUERIES["recent_user_messages"], asked)
    return [{"id": row["id"], "timestamp": row["timestamp"], "preview": _preview(row["content"])} for row in rows]


def first_assistant_text(connection: Connection, session_id: str) -> str:
    """Return the first text of the assistant, empty where it said none."""
    for row in connection.execute(QUERIES["assistant_contents"], {"session_id": scrubbed(session_id)}):
        if text := text_of(decoded_content(row["content"])).strip():
            return text
    return ""


def _preview(content: object) -> str:
    text = " ".join(as_command(text_of(decoded_content(content))).split())
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 3] + "..."


def _bookend(
    connection: Connection,
    query: str,
    session_id: str,
    row_id: int,
    *,
    bookend: int,
    roles: Collection[str] | None,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    offset = 0
    while len(found) < bookend:
        asked = {"session_id": scrubbed(session_id), "id": row_id, "limit": _PAGE, "offset": offset}
        rows = connection.execute(QUERIES[query], asked)
        wanted = (row for row in map(message_row, rows) if roles is None or row["role"] in roles)
        found += [row for row in wanted if text_of(row["content"]).strip()]
        if len(rows) < _PAGE:
            break
        offset += _PAGE
    return found[: max(0, bookend)]
