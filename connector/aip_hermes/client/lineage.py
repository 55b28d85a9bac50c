"""Which sessions stem from which, as far as rows show it: forks, compressions, delegates.

Source: Hermes sessions §6; Hermes API server §3.2, §5.3; design D15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from aip_hermes.client.hermes_objects import Session
from aip_hermes.client.lifecycle.reading import SessionReads
from aip_hermes.hermes_api import is_continuation_id
from aip_hermes.ids import HermesSessionId

__all__ = ["Branch", "Lineage", "edge_kind", "read_lineage"]

EdgeKind = Literal["root", "fork", "compression", "delegate", "unproven"]

_MAX_STEPS: Final = 100
_SUBAGENT: Final = "subagent"


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """One session of a tree. kind: how it came from its parent; `unproven` where the rows allow two readings."""

    row: Session
    kind: EdgeKind
    children: tuple[Branch, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """root: the oldest ancestor that is there. complete: False where the listing moved while it was read, so that a
    child may be missing."""

    root: Branch
    complete: bool


async def read_lineage(reads: SessionReads, session_id: HermesSessionId) -> Lineage:
    """Read the tree that a session is part of. Raises: NoSuchSession, and the failures of reads."""
    root = await reads.get(session_id)
    for _ in range(_MAX_STEPS):
        parent = None if root.parent_session_id is None else await reads.find(root.parent_session_id)
        if parent is None:
            break
        root = parent
    listing = await reads.every()
    children: dict[str, list[Session]] = {}
    for row in listing.sessions:
        if row.parent_session_id is not None:
            children.setdefault(row.parent_session_id, []).append(row)
    return Lineage(root=_branch(root, "root", children, seen=frozenset()), complete=not listing.changed)


def edge_kind(child: Session, *, parent: Session) -> EdgeKind:
    """Return how a child came from its parent. Marks are not shown by an endpoint, so ids, sources and ends tell."""
    if child.source == _SUBAGENT:
        return "delegate"
    if parent.end_reason == "compression":
        return "compression" if is_continuation_id(child.id) else "unproven"
    return "unproven" if is_continuation_id(child.id) else "fork"


def _branch(row: Session, kind: EdgeKind, children: Mapping[str, Sequence[Session]], *, seen: frozenset[str]) -> Branch:
    below = [] if row.id in seen else children.get(row.id, [])
    ordered = sorted(below, key=lambda child: (child.started_at or 0.0, child.id))
    made = (_branch(child, edge_kind(child, parent=row), children, seen=seen | {row.id}) for child in ordered)
    return Branch(row=row, kind=kind, children=tuple(made))
