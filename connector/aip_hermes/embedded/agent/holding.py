"""The turn lease of a conversation, for one turn.

The question takes it and the last answer lets it go, each in its own transaction, so that a turn that meets nobody pays
nothing for it. Only who finds it taken waits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.session_db import SessionDB

__all__ = ["LEASE_S", "WAIT_S", "LeaseTimeout", "TurnLease", "let_go"]

log = structlog.get_logger(__name__)

LEASE_S: Final = 300.0
WAIT_S: Final = 1800.0
_POLL_S: Final = 0.25
_PATIENCE_S: Final = 30.0


class LeaseTimeout(Exception):
    """Another process has the conversation, and did not let go in time; nothing was changed."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session_turn_lease_timeout:{session_id}")
        self.session_id = session_id


class TurnLease:
    """Inside the block the lease may be taken; afterwards it is free. waited: somebody else had the conversation
    meanwhile, so what was read of it before is old.
    """

    def __init__(
        self, db: SessionDB, session_id: str, holder: str, *, wait_s: float = WAIT_S, lease_s: float = LEASE_S
    ) -> None:
        self.holder = holder
        self.lease_s = lease_s
        self.waited = False
        self._db = db
        self._session_id = session_id
        self._wait_s = wait_s
        self._held = False
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        if self._held:
            await finished(let_go(self._db, self._session_id, self.holder))

    async def take(self) -> None:
        """Take the lease now, waiting for whoever has it. Raises LeaseTimeout, StoreFailure."""
        # From here on it is to be let go of: also where this is cancelled it may have been taken.
        self._held = True
        if not await self._db.try_acquire_session_turn_lease(self._session_id, self.holder, ttl_seconds=self.lease_s):
            await self.wait()
        self.taken()

    async def wait(self) -> None:
        """Wait until it is one's own. Raises LeaseTimeout, StoreFailure."""
        self.waited = True
        if not await self._db.acquire_session_turn_lease(
            self._session_id,
            self.holder,
            ttl_seconds=self.lease_s,
            wait_seconds=self._wait_s,
            poll_interval_seconds=_POLL_S,
            acquire_patience_s=_PATIENCE_S,
        ):
            raise LeaseTimeout(self._session_id)
        self.taken()

    def taken(self) -> None:
        """It is one's own: renew it five times within its time, until the turn is over."""
        self._held = True
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    def released(self) -> None:
        """The last row of the turn let it go."""
        self._held = False

    async def _renew(self) -> None:
        """Renew until cancelled; a lease that is lost is noticed by the next write."""
        while True:
            # Other processes judge a lease by the machine's time, so its renewal waits on that, too.
            await asyncio.sleep(self.lease_s / 5)
            if not self._held:
                return
            try:
                await self._db.refresh_session_turn_lease(self._session_id, self.holder, ttl_seconds=self.lease_s)
            except StoreFailure as exc:
                log.warning("turn.lease_not_renewed", cause=type(exc).__name__)


async def let_go(db: SessionDB, session_id: str, holder: str) -> None:
    """Release the lease where that can be done."""
    # What can't be let go, expires; and a store that its owner closed has nothing to let go of any more.
    with suppress(StoreFailure, RuntimeError):
        await db.release_session_turn_lease(session_id, holder)
