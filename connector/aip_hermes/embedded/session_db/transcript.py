"""Operations on transcripts: append and read. Plain functions of one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import (
    MESSAGE_COLUMNS,
    decoded_columns,
    message_parameters,
    preview_of,
    scrubbed,
)
from aip_hermes.embedded.session_db.errors import CompressionSessionClosedError, UnknownSession
from aip_hermes.embedded.session_db.lineage import compression_tip
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.search.in_rows import kept_with
from aip_hermes.embedded.session_db.usage import Usage, account_reply

__all__ = [
    "append",
    "check_open",
    "message_page",
    "messages",
    "record_reply",
]

_EVERYTHING: Final = 2**62
_rest_of = itemgetter(
    "tool_call_id", "tool_calls", "tool_name", "effect_disposition", "reasoning", "reasoning_content",
    "reasoning_details", "codex_reasoning_items", "codex_message_items", "platform_message_id", "api_content",
    "display_kind", "display_metadata", "observed", "active", "compacted", "tool_call_total",
)  # fmt: skip
_DEFAULTS: Final = ((None,) * 13) + (0, 1, 0, 0)
"""What the engine puts into these places by itself."""


def append(
    connection: Connection,
    session_id: str,
    new: Sequence[Mapping[str, Any]],
    *,
    now: float,
    batch: bool,
    into_compressed: bool = False,
) -> list[int]:
    """Append messages in order and count them on the row. Returns their row ids.

    into_compressed: also where a compression ended the row, as release 0.19.0 does.
    Raises UnknownSession, CompressionSessionClosedError; then nothing is kept.
    """
    if not new:
        return []
    session_id = scrubbed(session_id)
    rows: list[dict[str, Any]] = []
    newest, default, calls = now, now, 0
    preview: str | None = None
    for message in new:
        values = message_parameters(session_id, message, default_timestamp=default, batch=batch)
        newest = values["timestamp"] if not rows else max(newest, values["timestamp"])
        rows.append(values)
        calls += values["tool_call_total"]
        # Defaults within a batch step forward, so that sorting by time keeps the order.
        default = max(now, values["timestamp"] + 1e-6)
        if preview is None and values["role"] == "user":
            preview = preview_of(message.get("content")) or None
    totals = {"messages": len(rows), "tool_calls": calls, "newest": newest, "preview": preview}
    _count_on_row(connection, session_id, totals, into_compressed=into_compressed)
    return [_insert(connection, values) for values in rows]


def record_reply(
    connection: Connection,
    session_id: str,
    reply: Mapping[str, Any],
    *,
    usage: Usage,
    model: str,
    now: float,
    into_compressed: bool = False,
) -> int:
    """Append one assistant message of a turn and add what it used, together. Returns the row id.

    Raises as `append`; a row deleted meanwhile does not come back.
    """
    (row_id,) = append(connection, session_id, [reply], now=now, batch=False, into_compressed=into_compressed)
    account_reply(connection, session_id, usage, model=model, now=now)
    return row_id


def messages(
    connection: Connection,
    session_id: str,
    *,
    include_inactive: bool = False,
    limit: int | None = None,
    offset: int = 0,
    latest: bool = False,
    after_id: int | None = None,
) -> list[dict[str, Any]]:
    """Return message dictionaries by row id ascending; an unknown session has none."""
    parameters = {
        "session_id": scrubbed(session_id),
        "include_inactive": int(include_inactive),
        "limit": _EVERYTHING if limit is None else limit,
        "offset": offset,
        "after_id": 0 if after_id is None else after_id,
    }
    if latest:
        found = connection.tuples(QUERIES["fetch_latest_messages"], parameters)[::-1]
    else:
        found = connection.tuples(QUERIES["fetch_messages"], parameters)
    return [decoded_columns(dict(zip(MESSAGE_COLUMNS, row, strict=True))) for row in found]


def message_page(
    connection: Connection, session_id: str, *, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return live messages by row id ascending from the row at `offset`, and the number of all live ones."""
    (sums,) = connection.execute(QUERIES["sum_up_transcript"], {"session_id": scrubbed(session_id)})
    return messages(connection, session_id, limit=limit, offset=offset), sums["messages"]


def _insert(connection: Connection, values: Mapping[str, Any]) -> int:
    if connection.engine == "postgres":
        values = kept_with(values)
    if _rest_of(values) == _DEFAULTS:
        # Most rows; to hand over twenty values that are none takes longer than to write the row.
        return connection.insert(QUERIES["insert_text"], values)
    return connection.insert(QUERIES["insert_message"], values)


def _count_on_row(
    connection: Connection, session_id: str, totals: Mapping[str, object], *, into_compressed: bool
) -> None:
    # The row is written before the messages: where none was, it tells why, and most need no further look.
    written = {**totals, "id": session_id, "into_compressed": int(into_compressed)}
    connection.execute(QUERIES["add_to_transcript"], written)
    if not connection.changes:
        check_open(connection, session_id)


def check_open(connection: Connection, session_id: str) -> None:
    """Raise UnknownSession, or CompressionSessionClosedError for a row that a compression ended."""
    rows = connection.execute(QUERIES["how_ended"], {"id": scrubbed(session_id)})
    if not rows:
        raise UnknownSession(session_id)
    if rows[0]["end_reason"] == "compression":
        raise CompressionSessionClosedError(session_id, tip=compression_tip(connection, session_id))
