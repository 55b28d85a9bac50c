"""Accounting what sessions used. Plain functions of one transaction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES

__all__ = ["Report", "Usage", "account", "account_auxiliary", "account_reply", "by_model", "coalesced"]

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
_COSTS: Final = ("estimated_cost_usd", "actual_cost_usd")
_ROUTE: Final = ("model", "billing_provider", "billing_base_url", "billing_mode")
_LATEST: Final = ("cost_status", "cost_source", "pricing_version")
_MAX_COUNT: Final = 2**53 - 1
_PER_MODEL: Final = (
    *_ROUTE,
    "task",
    *_COUNTS,
    *_COSTS,
    "cost_status",
    "cost_source",
    "first_seen",
    "last_seen",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one turn. What is no possible count, such as one that a store could not add up, counts as none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _count(getattr(self, field.name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What one call, or several of one route, used.

    Counts are tokens, but for api_call_count; costs are US dollars. What is no possible count or cost (below zero,
    beyond 2⁵³, no number) counts as none: a provider said it, and a store could not add it up. absolute: the sums so
    far, and not what comes on top of them.
    """

    session_id: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    api_call_count: int = 0
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    model: str | None = None
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None
    absolute: bool = False

    def __post_init__(self) -> None:
        for name in _COUNTS:
            object.__setattr__(self, name, _count(getattr(self, name)))
        for name in _COSTS:
            object.__setattr__(self, name, _cost(getattr(self, name)))
        for name in ("session_id", *_ROUTE, *_LATEST):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, scrubbed(str(value)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was used."""
        return not any(getattr(self, name) for name in (*_COUNTS, *_COSTS))


def account(connection: Connection, report: Report, *, now: float) -> None:
    """Add a report to its row, and to the sums by model unless it is absolute. A missing row is made.

    The first report fixes model and billing route of the row, later ones fill what is still unknown. What comes late
    for a row that was removed is dropped: accounting brings no session back.
    """
    row = _accounted(connection, report.session_id, now=now)
    if row is None:
        return
    given = {name: getattr(report, name) for name in _ROUTE}
    first = not row["used"]
    route = {name: (given[name] or row[name]) if first else (row[name] or given[name]) for name in _ROUTE}
    values = _values(report)
    connection.execute(QUERIES["set_token_counts" if report.absolute else "add_token_counts"], values)
    connection.execute(QUERIES["write_route"], values | route)
    if not report.absolute and not report.is_empty:
        _add_to_model(connection, replace(report, **{name: given[name] or route[name] for name in _ROUTE}), now=now)


def account_auxiliary(connection: Connection, report: Report, *, task: str, now: float) -> None:
    """Add a report of a side task to the sums by model alone. A missing row is made, a removed one not."""
    if _accounted(connection, report.session_id, now=now) is not None:
        _add_to_model(connection, report, task=task, now=now)


def account_reply(connection: Connection, session_id: str, used: Usage, *, model: str, now: float) -> None:
    """Add a model's reply to a row that is there, and to the sums by model; the row's model stays where it has one."""
    report = Report(session_id=session_id, model=model, api_call_count=1, **asdict(used))
    connection.execute(QUERIES["add_token_counts"], _values(report))
    _add_to_model(connection, report, now=now)


def _add_to_model(connection: Connection, report: Report, *, task: str = "", now: float) -> None:
    """Add a report to the sums by model of a row that is there. task: '' is the conversation itself."""
    taken = {name: getattr(report, name) or "" for name in _ROUTE}
    connection.execute(QUERIES["add_model_usage"], _values(report) | taken | {"task": scrubbed(task), "now": now})


def by_model(connection: Connection, session_id: str) -> list[dict[str, Any]]:
    """Return the sums of a session by model, billing route and task, the first used one first."""
    rows = connection.execute(QUERIES["model_usage_of"], {"id": scrubbed(session_id)})
    return [{name: row[name] for name in _PER_MODEL} for row in rows]


def coalesced(reports: Iterable[Report]) -> list[Report]:
    """Return the same usage in fewer reports: neighbours of one session and one route become one."""
    merged: list[Report] = []
    for report in reports:
        if merged and _alike(merged[-1], report):
            merged[-1] = _together(merged[-1], report)
        else:
            merged.append(report)
    return merged


def _accounted(connection: Connection, session_id: str, *, now: float) -> dict[str, Any] | None:
    asked = {"id": session_id, "now": now}
    rows = connection.execute(QUERIES["accounted_session"], asked)
    if not rows:
        connection.execute(QUERIES["make_accounted"], asked)
        rows = connection.execute(QUERIES["accounted_session"], asked)
    return rows[0] if rows else None


def _alike(one: Report, other: Report) -> bool:
    same = ("session_id", "absolute", *_ROUTE)
    return not one.absolute and all(getattr(one, name) == getattr(other, name) for name in same)


def _together(one: Report, other: Report) -> Report:
    changes: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in _COUNTS}
    for name in _COSTS:
        known = [cost for cost in (getattr(one, name), getattr(other, name)) if cost is not None]
        changes[name] = sum(known) if known else None
    for name in _LATEST:
        changes[name] = getattr(other, name) if getattr(other, name) is not None else getattr(one, name)
    return replace(one, **changes)


def _values(report: Report) -> dict[str, Any]:
    values = {field.name: getattr(report, field.name) for field in fields(report)}
    del values["absolute"]
    return values | {"id": values.pop("session_id")}


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_COUNT:
        return 0
    return int(value)


def _cost(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)
