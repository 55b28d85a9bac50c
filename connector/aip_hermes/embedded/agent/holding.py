"""The turn lease of a conversation, held for one turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.session_db import SessionDB

__all__ = ["LEASE_S", "WAIT_S", "Held", "LeaseTimeout", "held", "let_go"]

log = structlog.get_logger(__name__)

LEASE_S: Final = 300.0
WAIT_S: Final = 1800.0
_POLL_S: Final = 0.25


class LeaseTimeout(Exception):
    """Another process has the conversation, and did not let go in time; nothing was changed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session_turn_lease_timeout:{session_id}")
        self.session_id = session_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """waited: somebody else had the conversation meanwhile, so what was read of it before is old."""

    holder: str
    waited: bool


@asynccontextmanager
async def held(
    db: SessionDB,
    session_id: str,
    holder: str,
    *,
    wait_s: float = WAIT_S,
    lease_s: float = LEASE_S,
    on_wait: Callable[[float], object] | None = None,
) -> AsyncIterator[Held]:
    """Hold the lease while the block runs, renewed five times within its time. Raises LeaseTimeout, StoreFailure."""
    waited = not await db.try_acquire_session_turn_lease(session_id, holder, ttl_seconds=lease_s)
    if waited:
        log.info("turn.waits_for_lease")
        if not await db.acquire_session_turn_lease(
            session_id,
            holder,
            ttl_seconds=lease_s,
            wait_seconds=wait_s,
            poll_interval_seconds=_POLL_S,
            on_wait=on_wait,
        ):
            raise LeaseTimeout(session_id)
    renewing = asyncio.create_task(_renew(db, session_id, holder, lease_s))
    try:
        yield Held(holder=holder, waited=waited)
    finally:
        renewing.cancel()
        await finished(let_go(db, session_id, holder))


async def _renew(db: SessionDB, session_id: str, holder: str, lease_s: float) -> None:
    """Renew until cancelled; a lease that is lost is noticed by the next write."""
    while True:
        # Other processes judge a lease by the machine's time, so its renewal waits on that, too.
        await asyncio.sleep(lease_s / 5)
        try:
            if not await db.refresh_session_turn_lease(session_id, holder, ttl_seconds=lease_s):
                log.warning("turn.lease_lost")
                return
        except StoreFailure as exc:
            log.warning("turn.lease_not_renewed", cause=type(exc).__name__)


async def let_go(db: SessionDB, session_id: str, holder: str) -> None:
    """Release the lease where that can be done."""
    # What can't be let go, expires; and a store that its owner closed has nothing to let go of any more.
    with suppress(StoreFailure, RuntimeError):
        await db.release_session_turn_lease(session_id, holder)
