"""How full the store is: what an operator looks at."""

from __future__ import annotations

from dataclasses import dataclass

from aip_hermes.database import Connection
from aip_hermes.runtime.store import QUERIES

__all__ = ["Load", "StoreFigures", "figures", "load"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Actions that are not settled: in the queue, running, waiting for a decision."""

    queued: int
    running: int
    pending: int


def load(connection: Connection, *, tenant: str | None) -> Load:
    """Count what is unfinished, of one tenant (empty: those without one) or of all; reads nothing else."""
    return Load(**connection.execute(QUERIES["load_figures"], {"tenant": tenant})[0])
