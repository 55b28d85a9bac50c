"""Ends approvals whose time is up, each in a write of its own: one that can't be ended keeps no other from its end.

Source: runtime behaviour §9.6, "Expiry"; field report F067; design D2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog

from aip_hermes.database import Connection, StoreFailure, StoreUnavailable
from aip_hermes.runtime import approvals
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES

__all__ = ["catch_up", "end_overdue", "overdue"]

log = structlog.get_logger(__name__)

TRIED_AGAIN_MS: Final = 30_000
"""How long an approval that could not be ended is left alone."""

_Row = Mapping[str, Any]


def overdue(connection: Connection, footing: Footing, *, now: int) -> Sequence[_Row]:
    """Return up to a hundred approvals to end now; those that could not be ended a moment ago are passed over."""
    passed = 0
    while rows := connection.execute(QUERIES["fetch_overdue"], {"now": now, "passed": passed}):
        due = [row for row in rows if footing.not_ended.get(row["approval_id"], now) <= now]
        if due:
            return due
        passed += len(rows)
    return ()


async def end_overdue(footing: Footing, *, now: int) -> None:
    """End every approval whose time was up at `now`, tell who waits for its action, log what can't be ended.

    Raises: StoreUnavailable when the store takes no write at all; what was ended before stays ended.
    """
    while due := await footing.database.read(partial(overdue, footing=footing, now=now)):
        # Writes that wait share one commit, and each is undone alone.
        writes = (footing.database.write(partial(_end, row=row, now=now)) for row in due)
        ends = await asyncio.gather(*writes, return_exceptions=True)
        for row, end in zip(due, ends, strict=True):
            if isinstance(end, BaseException):
                _leave(footing, row, end, now=now)
            else:
                _tell(footing, row, end)


async def catch_up(footing: Footing) -> None:
    """As `end_overdue`, now, for a read: it is answered from what there is, also where nothing can be written."""
    try:
        await end_overdue(footing, now=footing.now_ms())
    except StoreFailure as exc:
        log.warning("approval.expiry_failed", error_type=type(exc).__name__)


def _end(connection: Connection, *, row: _Row, now: int) -> approvals.Ended | None:
    return approvals.expire(connection, row, now=now)


def _leave(footing: Footing, row: _Row, failure: BaseException, *, now: int) -> None:
    """Pass over what is broken in itself; what stops every write goes on to the caller."""
    if not isinstance(failure, Exception):
        raise failure
    if isinstance(failure, StoreUnavailable) and failure.kind != "corrupt":
        raise failure
    footing.not_ended[row["approval_id"]] = now + TRIED_AGAIN_MS
    log.error(
        "approval.not_ended",
        approval_id=row["approval_id"],
        action_id=row["action_id"],
        error_type=type(failure).__name__,
        exc_info=failure,
    )


def _tell(footing: Footing, row: _Row, ended: approvals.Ended | None) -> None:
    footing.not_ended.pop(row["approval_id"], None)
    if ended is None:
        return
    footing.ended(tenant=ended.tenant, action_id=ended.action_id, stored=ended.stored)
    log.info("approval.expired", action_id=ended.action_id)
