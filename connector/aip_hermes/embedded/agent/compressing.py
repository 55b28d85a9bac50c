"""A compression that was asked for, at the beginning of a turn."""

from __future__ import annotations

from dataclasses import dataclass

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.compression import compact_in_place, rotate
from aip_hermes.ports import Clock

__all__ = ["Compression", "compressed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compression:
    """child_id: the row that a rotating compression makes; None: in place, and the id stays."""

    child_id: str | None = None


async def compressed(db: SessionDB, session_id: str, wanted: Compression, *, clock: Clock) -> str:
    """Compress in one transaction and return the id of the row that the conversation goes on in.

    A row without messages, and for a rotation one that has ended, stays as it is.
    """
    now, child_id = clock.now_ms() / 1000, wanted.child_id
    if child_id is None:
        await db.write(lambda c: compact_in_place(c, session_id, now=now))
        return session_id
    return child_id if await db.write(lambda c: rotate(c, session_id, child_id=child_id, now=now)) else session_id
