"""Search over all conversations: one result each, the best in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.agent.recall.asked import Asked
from aip_hermes.embedded.agent.recall.reading import NEVER_SHOWN
from aip_hermes.embedded.agent.recall.shapes import (
    BOOKEND_CHARS,
    Row,
    is_summary,
    is_visible,
    link,
    session_meta,
    shown,
)
from aip_hermes.embedded.session_db import SessionDB, lineage

__all__ = ["discover"]

_RAW_HITS: Final = 300
_WINDOW: Final = 5
_BOOKEND: Final = 3
_LAST: Final = "cron"
"""The source of scheduled runs, which say the same again and again."""


async def discover(db: SessionDB, asked: Asked, *, current: str | None) -> dict[str, Any]:
    """Return conversations in which the query is found: one whose title it is first, scheduled runs last.

    Of the current one, only what has left its live context.
    """
    hits = await db.search_messages(
        asked.query, exclude_sources=NEVER_SHOWN, role_filter=asked.roles, limit=_RAW_HITS, sort=asked.sort
    )
    hits.sort(key=lambda hit: hit["source"] == _LAST)
    titled = await _titled(db, asked.query)
    ids = [hit["session_id"] for hit in hits] + ([] if titled is None else [titled["id"]])
    roots = await _roots(db, ids if current is None else [*ids, current])
    here = None if current is None else roots[current]
    results: list[dict[str, Any]] = []
    seen: set[str] = set()
    if titled is not None and roots[titled["id"]] != here:
        seen.add(roots[titled["id"]])
        results.append(await _title_entry(db, titled))
    for hit in hits:
        if len(results) == asked.limit:
            break
        root = roots[hit["session_id"]]
        if root in seen or (root == here and not await _has_left(db, hit)):
            continue
        entry = await _entry(db, hit, full=asked.full or not results)
        if entry is not None:
            seen.add(root)
            results.append(entry)
    return {
        "query": asked.query,
        "detail": "full" if asked.full else "adaptive",
        "results": results,
        "count": len(results),
        "sessions_searched": len({roots[session_id] for session_id in ids}),
    }


async def _titled(db: SessionDB, query: str) -> Row | None:
    """Return the conversation that has the query as its title, or in it."""
    session_id = await db.resolve_session_by_title(query)
    if session_id is not None:
        row = await db.get_session(session_id)
        return row if row is not None and row["source"] not in NEVER_SHOWN else None
    rows = await db.list_sessions_rich(
        exclude_sources=NEVER_SHOWN, limit=_RAW_HITS, order_by_last_active=True, search_query=query, compact_rows=True
    )
    wanted = query.casefold()
    return next((row for row in rows if wanted in (row["title"] or "").casefold()), None)


async def _roots(db: SessionDB, ids: Iterable[str]) -> dict[str, str]:
    wanted = dict.fromkeys(ids)

    def roots(connection: Connection) -> dict[str, str]:
        return {session_id: lineage.conversation_root(connection, session_id) for session_id in wanted}

    return await db.read(roots)


async def _has_left(db: SessionDB, hit: Row) -> bool:
    """Whether a message of the current conversation is out of the model's sight."""
    window = (await db.get_messages_around(hit["session_id"], hit["id"], 0))["window"]
    if window and window[0]["compacted"]:
        return True
    row = await db.get_session(hit["session_id"])
    return row is not None and row["end_reason"] == "compression"


async def _entry(db: SessionDB, hit: Row, *, full: bool) -> dict[str, Any] | None:
    """Return one result; None for a conversation that is gone by now."""
    row = await db.get_session(hit["session_id"])
    window, bookend = (_WINDOW, _BOOKEND) if full else (0, 0)
    view = await db.get_anchored_view(hit["session_id"], hit["id"], window=window, bookend=bookend)
    if row is None or not view["window"]:
        return None
    return _result(row, role=hit["role"], message_id=hit["id"], snippet=hit["snippet"], view=view, full=full)


async def _title_entry(db: SessionDB, row: Row) -> dict[str, Any]:
    """Return a conversation found by its title, with its first messages."""
    first = await db.get_messages(row["id"], limit=_WINDOW)
    view = {"window": first, "messages_before": 0, "messages_after": max(0, row["message_count"] - len(first))}
    return _result(row, role="session_title", message_id=None, snippet=row["title"], view=view, full=True)


def _result(
    row: Row, *, role: str, message_id: int | None, snippet: str, view: Mapping[str, Any], full: bool
) -> dict[str, Any]:
    start, end = (
        shown((message for message in view.get(name, ()) if not is_summary(message)), chars=BOOKEND_CHARS)
        for name in ("bookend_start", "bookend_end")
    )
    entry: dict[str, Any] = {
        "session_id": row["id"],
        **session_meta(row),
        "matched_role": role,
        "match_message_id": message_id,
        "snippet": snippet,
        "bookend_start": start,
        "messages": shown((m for m in view["window"] if is_visible(m)), anchor=message_id),
        "bookend_end": end,
        "messages_before": view["messages_before"],
        "messages_after": view["messages_after"],
        "detail": "full" if full else "anchor",
        "link": link(row),
    }
    if row["parent_session_id"]:
        entry["parent_session_id"] = row["parent_session_id"]
    return entry
