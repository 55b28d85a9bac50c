"""How full the store is: what an operator looks at, for one tenant or for all."""

from __future__ import annotations

from dataclasses import dataclass

from aip_hermes.database import Connection
from aip_hermes.runtime.store import QUERIES

__all__ = ["StoreFigures", "figures"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreFigures:
    """Actions: all that are kept; those in a state; stuck: running although their time is up; uncertain: settled with
    an outcome that nobody knows."""

    actions: int
    queued: int
    running: int
    pending: int
    stuck: int
    uncertain: int


def figures(connection: Connection, *, now: int) -> StoreFigures:
    """Count over the whole store; it reads every action once. now: Unix milliseconds."""
    return StoreFigures(**connection.execute(QUERIES["store_figures"], {"now": now})[0])
