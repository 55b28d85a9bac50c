"""Operations on transcripts: append, read, resolve, list. Plain functions of one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions
from aip_hermes.embedded.session_db.columns import message_parameters, message_row, preview_of, scrubbed, session_row
from aip_hermes.embedded.session_db.errors import CompressionSessionClosedError, UnknownSession
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = [
    "Usage",
    "append",
    "compression_tip",
    "listing",
    "message_page",
    "messages",
    "record_reply",
    "unmarked_descendant",
]

_EVERYTHING = -1
_MAX_TOKENS = 2**53 - 1
_PROJECTED = (
    "id",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "title",
    "model",
    "system_prompt",
    "system_prompt_hash",
    "cwd",
    "git_branch",
    "git_repo_root",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one turn. What is no possible count, such as one that a store could not add up, counts as none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 <= getattr(self, name) <= _MAX_TOKENS:
                object.__setattr__(self, name, 0)


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
    session_id = scrubbed(session_id)
    rows = connection.execute(QUERIES["fetch_session"], {"id": session_id})
    if not rows:
        raise UnknownSession(session_id)
    if rows[0]["end_reason"] == "compression" and not into_compressed:
        raise CompressionSessionClosedError(session_id, tip=compression_tip(connection, session_id))
    ids: list[int] = []
    newest, default, calls = None, now, 0
    preview: str | None = None
    for message in new:
        values = message_parameters(session_id, message, default_timestamp=default, batch=batch)
        ids.append(connection.execute(QUERIES["insert_message"], values)[0]["id"])
        calls += values["tool_call_total"]
        newest = values["timestamp"] if newest is None else max(newest, values["timestamp"])
        # Defaults within a batch step forward, so that sorting by time keeps the order.
        default = max(now, values["timestamp"] + 1e-6)
        if preview is None and message["role"] == "user":
            preview = preview_of(message.get("content")) or None
    if ids:
        totals = {"messages": len(ids), "tool_calls": calls, "newest": newest, "preview": preview}
        connection.execute(QUERIES["add_to_transcript"], {**totals, "id": session_id})
    return ids


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

    Raises UnknownSession: a row deleted meanwhile does not come back.
    """
    (row_id,) = append(connection, session_id, [reply], now=now, batch=False, into_compressed=into_compressed)
    connection.execute(
        QUERIES["add_usage"],
        {
            "id": scrubbed(session_id),
            "model": model,
            "api_calls": 1,
            **{name: getattr(usage, name) for name in Usage.__slots__},
        },
    )
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
        found = connection.execute(QUERIES["fetch_latest_messages"], parameters)[::-1]
    else:
        found = connection.execute(QUERIES["fetch_messages"], parameters)
    return [message_row(record) for record in found]


def message_page(
    connection: Connection, session_id: str, *, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return live messages by row id ascending from the row at `offset`, and the number of all live ones."""
    (sums,) = connection.execute(QUERIES["sum_up_transcript"], {"session_id": scrubbed(session_id)})
    return messages(connection, session_id, limit=limit, offset=offset), sums["messages"]


def compression_tip(connection: Connection, session_id: str) -> str:
    """Return where the conversation of a compressed row goes on; the id itself for any other."""
    return str(connection.execute(QUERIES["compression_tip"], {"id": scrubbed(session_id)})[0]["id"])


def unmarked_descendant(connection: Connection, session_id: str) -> str:
    """Return the deepest row with messages along the newest unmarked children; the id itself when there is none."""
    rows = connection.execute(QUERIES["deepest_unmarked_child"], {"id": scrubbed(session_id)})
    return str(rows[0]["id"]) if rows else session_id


def listing(
    connection: Connection,
    *,
    source: str | None,
    limit: int,
    offset: int,
    include_children: bool,
    project_compression_tips: bool,
    order_by_last_active: bool,
    include_archived: bool,
    compact_rows: bool,
) -> list[dict[str, Any]]:
    """Return one page of session dictionaries with `preview`, `last_active`, `unread`."""
    parameters = {
        "source": source,
        "limit": limit,
        "offset": offset,
        "by_activity": int(order_by_last_active),
        "include_archived": int(include_archived),
    }
    records = connection.execute(QUERIES["list_all" if include_children else "list_roots"], parameters)
    page = [_listed(connection, r, project=project_compression_tips and not include_children) for r in records]
    if not compact_rows:
        _add_prompts(connection, page)
    return page


def _listed(connection: Connection, record: Mapping[str, Any], *, project: bool) -> dict[str, Any]:
    row = session_row(record)
    row["preview"], row["last_active"] = record["preview"] or "", record["last_active"]
    if project and row["end_reason"] == "compression":
        root_id = row["id"]
        tip_id = compression_tip(connection, root_id)
        if tip_id != root_id:
            tip = connection.execute(QUERIES["fetch_session"], {"id": tip_id})[0]
            row |= {name: tip[name] for name in _PROJECTED if name != "system_prompt"}
            row |= {"preview": tip["preview"] or "", "_lineage_root_id": root_id}
            row["last_active"] = sessions.last_active(tip)
    row["unread"] = row["last_read_at"] is not None and row["last_read_at"] < row["last_active"]
    return row


def _add_prompts(connection: Connection, page: Sequence[dict[str, Any]]) -> None:
    hashes = sorted({row["system_prompt_hash"] for row in page if row["system_prompt_hash"]})
    texts = {r["hash"]: r["text"] for r in connection.execute(QUERIES["fetch_prompts"], {"hashes": json.dumps(hashes)})}
    for row in page:
        row["system_prompt"] = texts.get(row["system_prompt_hash"])
