"""Recalls that know where to look: the latest conversations, one of them, the messages around one."""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.embedded.agent.recall.asked import Asked
from aip_hermes.embedded.agent.recall.shapes import Row, is_visible, link, profile_of, session_meta, shown
from aip_hermes.embedded.session_db import SessionDB

__all__ = ["NEVER_SHOWN", "RecallRefused", "browse", "read", "scroll"]

NEVER_SHOWN: Final = ("kanban", "subagent", "tool")
"""Sources whose rows are work of other agents, not conversations."""

_READ: Final = 30
_READ_FIRST: Final = 20


class RecallRefused(Exception):
    """There is no answer; the text says to the model what to do instead."""


async def browse(db: SessionDB, asked: Asked, *, current: str | None) -> dict[str, Any]:
    """Return the latest conversations without the current one."""
    here = None if current is None else await db.get_conversation_root(current)
    rows = await db.list_sessions_rich(
        exclude_sources=NEVER_SHOWN, limit=asked.limit + 1, order_by_last_active=True, compact_rows=True
    )
    others = [row for row in rows if current is None or not {row["id"], row.get("_lineage_root_id")} & {current, here}]
    results = [
        {
            "session_id": row["id"],
            "link": link(row),
            "title": row["title"],
            "source": row["source"],
            "started_at": row["started_at"],
            "last_active": row["last_active"],
            "message_count": row["message_count"],
            "preview": row["preview"],
        }
        for row in others[: asked.limit]
    ]
    hint = "Search with `query`, or read one with its `session_id`."
    return {
        "results": results,
        "count": len(results),
        "message": hint if results else "There is no other conversation.",
    }


async def read(db: SessionDB, asked: Asked) -> dict[str, Any]:
    """Return a conversation; of more than 30 messages, the first 20 and the last 10."""
    row = await _session(db, asked)
    first, count = await db.get_message_page(row["id"], limit=_READ, offset=0)
    answer: dict[str, Any] = {
        "session_id": row["id"],
        "link": link(row),
        "session_meta": session_meta(row),
        "message_count": count,
        "truncated": count > _READ,
    }
    if count > _READ:
        last = await db.get_messages(row["id"], limit=_READ - _READ_FIRST, latest=True)
        first = [*first[:_READ_FIRST], *last]
        answer["hint"] = (
            f"Messages {_READ_FIRST + 1} to {count - len(last)} are left out; give `around_message_id` to see those "
            "around one, or search with `query`."
        )
    return answer | {"messages": shown(first)}


async def scroll(db: SessionDB, asked: Asked, *, current: str | None) -> dict[str, Any]:
    """Return the messages around one that is not in the model's context anyway."""
    row = await _session(db, asked)
    anchor = asked.around_message_id or 0
    view = await db.get_messages_around(row["id"], anchor, asked.window)
    found = next((message for message in view["window"] if message["id"] == anchor), None)
    if found is None:
        raise RecallRefused(f"There is no message {anchor} in session {row['id']}; take both from one result.")
    if current is not None and found["active"] and await _is_here(db, row, current):
        raise RecallRefused(f"Message {anchor} is in your context already; look there.")
    answer: dict[str, Any] = {
        "session_id": row["id"],
        "around_message_id": anchor,
        "session_meta": session_meta(row),
        "window": asked.window,
        "messages": shown([m for m in view["window"] if is_visible(m) or m["id"] == anchor], anchor=anchor),
        "messages_before": view["messages_before"],
        "messages_after": view["messages_after"],
    }
    if not is_visible(found):
        answer["warning"] = "The message was taken back by the user."
    return answer


async def _session(db: SessionDB, asked: Asked) -> Row:
    session_id = await db.resolve_session_id(asked.session_id)
    row = None if session_id is None else await db.get_session(session_id)
    if row is None:
        raise RecallRefused(f"There is no session {asked.session_id}; search with `query` for one.")
    if asked.profile not in ("", profile_of(row)):
        raise RecallRefused(f"Session {row['id']} is of profile {profile_of(row)}, not of {asked.profile}.")
    return row


async def _is_here(db: SessionDB, row: Row, current: str) -> bool:
    """Whether live messages of a row are part of the current context: what a compression ended is not any more."""
    if row["id"] == current:
        return True
    if row["end_reason"] == "compression":
        return False
    return await db.get_conversation_root(row["id"]) == await db.get_conversation_root(current)
