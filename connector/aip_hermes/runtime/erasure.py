"""What becomes of somebody's text in the store: marked when an action ends, erased when its time or its subject ends.

Text of a transcript is in a result and in chunks only (design D19). Erased, a result keeps its status, its error and
the hash of its output, so that what was answered can still be proven; nothing is ever sent again because of it.
Source: design D23.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aip_hermes import wire
from aip_hermes.contract.handler import Traces
from aip_hermes.database import Connection
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = ["Keeping", "Reason", "erase", "erase_about", "is_due", "kept_result", "mark", "name_subjects"]

Reason = Literal["expired", "deleted", "pruned"]
"""Why text is gone. expired: kept as long as the settings say. deleted: what it was about was deleted. pruned: by a
command."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Keeping:
    """What an end's text is about, and whose text ends with it. text: the output or the chunks are a transcript; text
    that is none, a title for example, goes with its subject but not with time."""

    text: bool = False
    traces: Traces = field(default_factory=Traces)


def mark(
    connection: Connection, stored: Mapping[str, Any], *, tenant: str, action_id: str, keeping: Keeping | None
) -> None:
    """Record that an action's end holds text. keeping: None where nobody can say; then stored chunks decide."""
    if keeping is not None and not keeping.text:
        if "output" in stored:
            name_subjects(connection, keeping.traces.about, tenant=tenant, action_id=action_id)
        return
    address = {"tenant": tenant, "action_id": action_id}
    in_result = keeping is not None and "output" in stored
    if not in_result and not connection.execute(QUERIES["has_chunks"], address):
        return
    connection.execute(QUERIES["mark_text"], address)
    if keeping is not None:
        name_subjects(connection, keeping.traces.about, tenant=tenant, action_id=action_id)


def name_subjects(connection: Connection, subjects: Iterable[str], *, tenant: str, action_id: str) -> None:
    """Record what an action's text is, or will be, about."""
    for subject in subjects:
        connection.execute(QUERIES["name_subject"], {"subject": subject, "tenant": tenant, "action_id": action_id})


def is_due(row: _Row, *, now: int, keep_ms: int) -> bool:
    """Whether an action's text has been kept long enough."""
    return bool(row["holds_text"]) and row["settled_at"] is not None and row["settled_at"] + keep_ms <= now


def erase_about(connection: Connection, subjects: Iterable[str], *, now: int) -> int:
    """Erase every stored text about the subjects, whoever asked for it; return of how many actions."""
    erased = 0
    for subject in sorted(subjects):
        for row in connection.execute(QUERIES["fetch_by_subject"], {"subject": subject}):
            erase(connection, row, reason="deleted", now=now)
            erased += 1
    return erased


def kept_result(connection: Connection, row: _Row) -> Mapping[str, Any] | None:
    """Return what is kept of an action's end, None before it. row: any that names tenant and action_id."""
    address = {"tenant": row["tenant"], "action_id": row["action_id"]}
    rows = connection.execute(QUERIES["fetch_kept_result"], address)
    return from_json(rows[0]["result"]) if rows else None


def erase(connection: Connection, row: _Row, *, reason: Reason, now: int) -> None:
    """Erase a settled action's output and chunks. Idempotent.

    row: any that names tenant and action_id; what is erased is what is kept now, of one action at a time.
    """
    address = {"tenant": row["tenant"], "action_id": row["action_id"]}
    stored = kept_result(connection, row)
    if stored is None:
        return
    left = _left_of(stored, reason=reason, now=now)
    connection.execute(QUERIES["erase_chunks"], address)
    if connection.changes:
        left["chunks_erased"] = wire.rfc3339(now)
    connection.execute(QUERIES["forget_subjects"], address)
    connection.execute(QUERIES["erase_output"], {**address, "result": to_json(left)})


def _left_of(stored: Mapping[str, Any], *, reason: Reason, now: int) -> dict[str, Any]:
    left = {name: value for name, value in stored.items() if name not in ("output", "text")}
    if "output" in stored:
        left["erased"] = {
            "at": wire.rfc3339(now),
            "reason": reason,
            "output_sha256": wire.sha256_hex(stored["output"]),
        }
    if reason == "pruned":
        left["pruned"] = wire.rfc3339(now)
    return left
