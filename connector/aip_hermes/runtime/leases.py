"""Who works on an action, and until when nobody else does.

Whatever takes an action into its hands gives it a lease: an owner (this process, since its start), a number and an end.
The number is the fence: it grows with every taking, and only its newest holder records an intent, schedules a try or
settles. The end matters where several workers share a store; a store with one owner voids all leases at its start.
Source: runtime behaviour §14; design D4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from aip_hermes.database import Connection, StoreFailure
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES

__all__ = ["Heartbeat", "fresh", "take", "take_over"]

log = structlog.get_logger(__name__)


def fresh(footing: Footing, *, now: int) -> dict[str, Any]:
    """Return owner and end of a lease that begins now, as query parameters."""
    return {"owner": footing.worker, "until": now + footing.limits.lease_ms}


def take(connection: Connection, footing: Footing, *, tenant: str, action_id: str, now: int) -> None:
    """Take what has begun to run again without the queue: a released action."""
    address = {"tenant": tenant, "action_id": action_id}
    connection.execute(QUERIES["take_lease"], {**address, **fresh(footing, now=now)})


def take_over(connection: Connection, footing: Footing, *, alone: bool) -> list[dict[str, Any]]:
    """Take what somebody was working on and is not any more; return its rows, the oldest first.

    alone: nobody else works on this store, so that no lease of an earlier process counts.
    """
    now = footing.now_ms()
    if alone:
        connection.execute(QUERIES["void_leases"])
    taken = connection.execute(QUERIES["take_over"], {**fresh(footing, now=now), "now": now})
    return sorted(taken, key=lambda row: (row["claimed_at"], row["action_id"]))


class Heartbeat:
    """Renews the leases of this process, all in one statement, and stops the work whose lease was lost.

    Stopped work ends as in a crash: it settles nothing, whoever has the action now does.
    """

    def __init__(self, footing: Footing) -> None:
        self._footing = footing
        self._work: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    def watch(self, row: Mapping[str, Any], task: asyncio.Task[None]) -> None:
        """Keep the lease of a taken row while the task runs."""
        key = (row["tenant"], row["action_id"], row["lease_number"])
        self._work[key] = task
        task.add_done_callback(lambda _: self._work.pop(key, None))

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            await self._footing.clock.sleep(self._footing.limits.heartbeat_ms / 1000)
            if not self._work and not len(self._footing.running):
                continue
            try:
                await self._beat()
            except StoreFailure as exc:
                log.warning("queue.heartbeat_failed", error_type=type(exc).__name__)

    async def _beat(self) -> None:
        working = dict(self._work)
        lease = fresh(self._footing, now=self._footing.now_ms())
        kept = await self._footing.database.write(lambda connection: connection.execute(QUERIES["renew_leases"], lease))
        mine = {(row["tenant"], row["action_id"], row["lease_number"]) for row in kept}
        for key, task in working.items():
            if key not in mine and not task.done():
                log.warning("queue.lease_lost", action_id=key[1], lease_number=key[2])
                task.cancel()
