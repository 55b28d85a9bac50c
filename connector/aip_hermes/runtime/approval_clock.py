"""Ends approvals that nobody decided when their time is up; nobody has to ask for it.

Source: runtime behaviour §9.6, "Expiry"; field report F067; design D2.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from aip_hermes.database import Connection, StoreFailure
from aip_hermes.runtime.expiry import end_overdue
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES

__all__ = ["ApprovalClock"]

log = structlog.get_logger(__name__)

LONGEST_REST_S: Final = 30.0
"""It looks at least that often: a clock may be set, and another process may have asked for an approval."""
REFUSED_REST_S: Final = 1.0


class ApprovalClock:
    """Sleeps until the next approval's time is up, wakes for what this process parks. `run` ends by cancellation."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._footing.parked.clear()
            try:
                rest_s = await self._end_overdue()
            except StoreFailure as exc:
                log.warning("approval.expiry_failed", error_type=type(exc).__name__)
                rest_s = REFUSED_REST_S
            await self._rest(rest_s)

    async def _end_overdue(self) -> float:
        """End what is overdue; return how long to rest, in seconds."""
        now = self._footing.now_ms()
        await end_overdue(self._footing, now=now)

        def next_expiry(connection: Connection) -> int | None:
            next_at: int | None = connection.execute(QUERIES["next_expiry"], {"now": now})[0]["expires_at"]
            return next_at

        next_at = await self._footing.database.read(next_expiry)
        if next_at is None:
            return LONGEST_REST_S
        return min((next_at - self._footing.now_ms()) / 1000, LONGEST_REST_S)

    async def _rest(self, seconds: float) -> None:
        if seconds <= 0:
            return
        waiting = [
            asyncio.ensure_future(self._footing.parked.wait()),
            asyncio.ensure_future(self._footing.clock.sleep(seconds)),
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waiting:
                wait.cancel()
