"""Compression of a transcript: head, one summary, tail. Plain functions of one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, transcript
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.sessions import NewSession

__all__ = ["SUMMARY_MARK", "compact_in_place", "rotate"]

SUMMARY_MARK: Final = "[CONTEXT COMPACTION"
"""How the text of a summary row begins."""

_KEPT: Final = 3


def compact_in_place(connection: Connection, session_id: str, *, now: float) -> bool:
    """Put a compacted transcript in the place of the live rows, with new row ids; the old rows stay, hidden.

    The counters are those of the live rows. False, and nothing changes, where there is no live row.
    """
    session_id = scrubbed(session_id)
    rows = transcript.messages(connection, session_id)
    if not rows:
        return False
    connection.execute(QUERIES["hide_compacted"], {"session_id": session_id})
    connection.execute(QUERIES["restart_counters"], {"id": session_id})
    transcript.append(connection, session_id, _compacted(rows), now=now, batch=True, into_compressed=True)
    return True


def rotate(connection: Connection, session_id: str, *, child_id: str, now: float) -> bool:
    """End the row as `compression` and let a new one hold the compacted transcript: parent link, title `… #2`.

    The old rows stay as they are. False, and nothing changes, where there is no live row or the row has ended.
    Raises SessionExists for a child id that is taken.
    """
    parent = sessions.fetch(connection, session_id)
    rows = transcript.messages(connection, session_id)
    if parent is None or parent["ended_at"] is not None or not rows:
        return False
    sessions.end(connection, parent["id"], reason="compression", at=now)
    new = NewSession(
        id=child_id,
        source=parent["source"],
        started_at=now,
        model=parent["model"],
        system_prompt=parent["system_prompt"],
        parent_session_id=parent["id"],
    )
    title = None if parent["title"] is None else sessions.next_title(connection, parent["title"])
    sessions.create_absent(connection, new, title=title)
    transcript.append(connection, child_id, _compacted(rows), now=now, batch=True)
    return True


def _compacted(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a third of the rows at each end, three at most, and a summary of at least one between them."""
    kept = min(_KEPT, len(rows) // 3)
    left_out = len(rows) - 2 * kept
    summary = {
        "role": "assistant",
        "content": f"{SUMMARY_MARK}] Messages left out here: {left_out}.",
        "finish_reason": "stop",
        "display_kind": "hidden",
    }
    return [*rows[:kept], summary, *rows[len(rows) - kept :]]
