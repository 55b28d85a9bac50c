"""What a delete of a session would orphan or take along, read live for whoever decides about it (design D25).

Hermes deletes the sub-agents of a session with it and leaves every other child without a parent. Its interface names a
child's parent and source, not the mark that makes a sub-agent a delegate, so what goes along is said as "may".
Source: Hermes API §3.2, §5.5; session store §5.7, §6.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.hermes.session_rows import Rows

__all__ = ["children_of"]

PAGE: Final = 200
MAX_PAGES: Final = 20
MAX_IDS: Final = 50
_SUBAGENT: Final = "subagent"


async def children_of(rows: Rows, session_id: str) -> JsonObject:
    """Return `{session_id, orphaned, may_be_deleted_too, rows_read, complete}`; each of the two is `{count, ids}`.

    ids: at most 50. complete: every row was listed; the order of a listing moves with every turn, so a busy endpoint
    may show a row twice or not at all even then.
    Raises: HermesFailed, certain.
    """
    listed: dict[str, tuple[str, str | None]] = {}
    complete = False
    read = 0
    for _ in range(MAX_PAGES):
        page = await rows.listed(limit=PAGE, offset=read)
        read += len(page.rows)
        listed |= _edges(page.rows)
        if not page.more:
            complete = True
            break
    orphaned, deleted = _split(session_id, listed)
    return {
        "session_id": session_id,
        "orphaned": {"count": len(orphaned), "ids": orphaned[:MAX_IDS]},
        "may_be_deleted_too": {"count": len(deleted), "ids": deleted[:MAX_IDS]},
        "rows_read": read,
        "complete": complete,
    }


def _edges(found: Sequence[Any]) -> dict[str, tuple[str, str | None]]:
    """Return id → (parent, source) of the rows that have a parent."""
    edges = {}
    for row in found:
        if not isinstance(row, Mapping):
            continue
        child, parent, source = row.get("id"), row.get("parent_session_id"), row.get("source")
        if isinstance(child, str) and isinstance(parent, str) and parent:
            edges[child] = (parent, source if isinstance(source, str) else None)
    return edges


def _split(session_id: str, listed: Mapping[str, tuple[str, str | None]]) -> tuple[list[str], list[str]]:
    """Return who would lose its parent, and which sub-agents, at any depth, may go along."""
    below: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for child, (parent, source) in listed.items():
        below[parent].append((child, source))
    orphaned: list[str] = []
    deleted: list[str] = []
    seen, going = {session_id}, [session_id]
    while going:
        for child, source in below[going.pop()]:
            if child in seen:
                continue
            seen.add(child)
            if source == _SUBAGENT:
                deleted.append(child)
                going.append(child)
            else:
                orphaned.append(child)
    return sorted(orphaned), sorted(deleted)
