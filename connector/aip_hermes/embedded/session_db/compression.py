"""Compression of a transcript, in place and into a linked child. Plain functions of one transaction.

Which messages are stored already is decided by their row ids, never by the objects that carry them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import ending, leases, lineage, sessions, titles, transcript
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.errors import (
    CompressionSessionBusyError,
    CompressionSessionClosedError,
    UnknownSession,
)
from aip_hermes.embedded.session_db.model_config import config_of, edge_of, patched_config
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.sessions import NewSession
from aip_hermes.hermes_api import LINEAGE_MARKERS

__all__ = ["SUMMARY_MARK", "archive_and_compact", "compact_in_place", "publish_child", "rotate"]

SUMMARY_MARK: Final = "[CONTEXT COMPACTION"
"""How the text of a summary row begins."""

_KEPT: Final = 3


def archive_and_compact(
    connection: Connection,
    session_id: str,
    compacted: Sequence[Mapping[str, Any]],
    *,
    now: float,
    watermark: int | None = None,
    covered: Collection[int] = (),
    lock_holder: str | None = None,
    model_config_patch: Mapping[str, Any] | None = None,
    into_compressed: bool = False,
) -> list[int]:
    """Hide the live rows as compacted and let `compacted` stand in their place; returns the row ids that are live now.

    compacted: messages by column names, or as a conversation has them. watermark: the newest row that was compressed;
    later rows follow the compacted ones, except those that are among them by row id (`_row_id`) and those that are
    `covered`: compressed, too. The counters are those of the live rows.
    Raises ValueError for nothing to put there, UnknownSession, CompressionSessionClosedError, and what
    check_compression_lock raises; then nothing has changed.
    """
    session_id = scrubbed(session_id)
    if not compacted:
        raise ValueError("a compaction without messages would empty the transcript")
    row = sessions.fetch(connection, session_id)
    if row is None:
        raise UnknownSession(session_id)
    if row["end_reason"] == "compression" and not into_compressed:
        raise CompressionSessionClosedError(session_id, tip=lineage.compression_tip(connection, session_id))
    leases.check_compression_lock(connection, session_id, lock_holder, now=now)
    late = _late(connection, session_id, compacted, watermark, covered)
    connection.execute(QUERIES["hide_compacted"], {"session_id": session_id})
    connection.execute(QUERIES["restart_counters"], {"id": session_id})
    rows = [*map(_live, compacted), *map(_live, late)]
    ids = transcript.append(connection, session_id, rows, now=now, batch=True, into_compressed=into_compressed)
    if model_config_patch:
        config = patched_config(row["model_config"], model_config_patch)
        edge = edge_of(config, parent=row["parent_session_id"])
        connection.execute(QUERIES["write_config"], {"id": session_id, "model_config": config, "edge": edge})
    _forget_failures(connection, session_id)
    return ids


def publish_child(
    connection: Connection,
    parent_id: str,
    child_id: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    now: float,
    watermark: int | None = None,
    covered: Collection[int] = (),
    lock_holder: str | None = None,
) -> list[int]:
    """End the parent as `compression` and insert its child with `messages`: who it belongs to, title `… #2`.

    The parent's rows stay as they are; its live rows after `watermark` follow in the child, as above. A title that its
    number would make too long is shortened. Returns the row ids of the child.
    Raises ValueError for an empty handoff, UnknownSession, CompressionSessionBusyError for a parent that has ended or a
    lock that was lost, SessionExists for a child id that is taken; then nothing has changed.
    """
    parent_id = scrubbed(parent_id)
    if not messages:
        raise ValueError("a child without messages would lose the conversation")
    parent = sessions.fetch(connection, parent_id)
    if parent is None:
        raise UnknownSession(parent_id)
    if parent["ended_at"] is not None:
        raise CompressionSessionBusyError(parent_id, f"Session {parent_id} has ended ({parent['end_reason']})")
    leases.check_compression_lock(connection, parent_id, lock_holder, now=now)
    late = _late(connection, parent_id, messages, watermark, covered)
    ending.end(connection, parent_id, reason="compression", at=now)
    new = NewSession(
        id=child_id,
        source=parent["source"],
        started_at=now,
        model=parent["model"],
        model_config=_unmarked(parent["model_config"]),
        system_prompt=parent["system_prompt"],
        parent_session_id=parent_id,
    )
    sessions.create_absent(connection, new, title=titles.continued_title(connection, parent["title"]))
    rows = [*map(_live, messages), *map(_live, late)]
    ids = transcript.append(connection, child_id, rows, now=now, batch=True)
    _forget_failures(connection, parent_id)
    return ids


def compact_in_place(connection: Connection, session_id: str, *, now: float) -> bool:
    """Compact in place with a summary that only counts; False, and nothing changes, where there is no live row."""
    rows = transcript.messages(connection, session_id)
    if not rows:
        return False
    archive_and_compact(connection, session_id, _compacted(rows), now=now, into_compressed=True)
    return True


def rotate(connection: Connection, session_id: str, *, child_id: str, now: float) -> bool:
    """Go on in a child with a summary that only counts; False, and nothing changes, where there is no live row or the
    row has ended. Raises SessionExists for a child id that is taken.
    """
    parent = sessions.fetch(connection, session_id)
    rows = transcript.messages(connection, session_id)
    if parent is None or parent["ended_at"] is not None or not rows:
        return False
    publish_child(connection, session_id, child_id, _compacted(rows), now=now)
    return True


def _late(
    connection: Connection,
    session_id: str,
    given: Sequence[Mapping[str, Any]],
    watermark: int | None,
    covered: Collection[int],
) -> list[dict[str, Any]]:
    if watermark is None:
        return []
    known = {*covered, *(message.get("_row_id") for message in given)}
    rows = transcript.messages(connection, session_id, after_id=watermark)
    return [row for row in rows if row["id"] not in known]


def _live(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "active": 1, "compacted": 0}


def _forget_failures(connection: Connection, session_id: str) -> None:
    connection.execute(QUERIES["forget_compression_failures"], {"id": session_id})


def _unmarked(config: str | None) -> dict[str, Any]:
    """Return the configuration without what makes a row a branch: a continuation is none."""
    return {name: value for name, value in config_of(config).items() if name not in LINEAGE_MARKERS}


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
