"""The durable queue of asynchronous actions: one table, one worker, one task per action that runs.

An action is checked when it is submitted, waits as a row, and runs through the same path as a synchronous one. A worker
that dies before the intent leaves it waiting, after the intent the outcome is unknown; a safe read that a worker left
is read again. A failed try is repeated only as `retry.py` says; what has waited too long is ended when its time comes.
The worker sleeps until the next moment at which something is due, and wakes for what this process puts into the queue.
Source: runtime behaviour §4, §11, §14; design D4, D8, D9.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from math import inf
from typing import Any, Final

import structlog

from aip_hermes.contract.handler import Connector
from aip_hermes.database import StoreFailure
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.backlog import Batch, take
from aip_hermes.runtime.failures import CapabilityWithdrawn, Interrupted, QueueDelayExceeded
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.leases import Heartbeat
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.settlement import Ending, LostClaim, settle
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.submission import Resumption, Submission, Taken

__all__ = ["QueueWorker"]

log = structlog.get_logger(__name__)

LONGEST_REST_S: Final = 20.0
"""The worker looks at least that often: a clock may be set, and another worker may have left something."""
REFUSED_REST_S: Final = 1.0
"""How long it rests when the store can't be read."""

_Row = Mapping[str, Any]
Resume = Callable[[_Row, _Row, Taken], Awaitable[object]]


class QueueWorker:
    """Starts waiting actions, of each tenant the oldest first and at most `queue_width` at a time, so that none of them
    waits for another one's. `run` ends by cancellation."""

    def __init__(
        self,
        footing: Footing,
        *,
        pipeline: Pipeline,
        connectors: Mapping[str, Connector],
        approved: Resume,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """connectors: capability id → the connector that offers it. approved: runs an action that an approval released,
        given both rows. start: makes the task of an action that runs."""
        self._footing = footing
        self._pipeline = pipeline
        self._connectors = connectors
        self._approved = approved
        self._start = start
        self._running: Counter[str] = Counter()
        self._looked_at: float = inf
        self._heartbeat = Heartbeat(footing)

    async def run(self) -> None:
        """Work until cancelled; what runs then ends as every other action does."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._heartbeat.run())
            group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            self._footing.queued.clear()
            rest_s = LONGEST_REST_S
            try:
                batch = await self._take()
            except StoreFailure as exc:
                log.warning("queue.store_failed", error_type=type(exc).__name__)
                rest_s = REFUSED_REST_S
            else:
                for row in batch.late:
                    self._begin(row, self._end_late(row))
                for row in batch.due:
                    self._running[row["tenant"]] += 1
                    self._begin(row, self._execute(row)).add_done_callback(partial(self._left, row["tenant"]))
                if batch.next_at is not None:
                    rest_s = min(max(batch.next_at - self._footing.now_ms(), 0) / 1000, rest_s)
            if rest_s > 0:
                await self._rest(rest_s)

    async def _take(self) -> Batch:
        now = self._footing.now_ms()
        set_back, self._looked_at = now < self._looked_at, now
        return await self._footing.database.write(
            lambda connection: take(connection, self._footing, room=self._room, set_back=set_back)
        )

    def _room(self, tenant: str) -> int:
        return self._footing.limits.queue_width - self._running[tenant]

    async def _rest(self, seconds: float) -> None:
        waiting = [
            asyncio.ensure_future(self._footing.queued.wait()),
            asyncio.ensure_future(self._footing.clock.sleep(seconds)),
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waiting:
                wait.cancel()

    def _begin(self, row: _Row, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._start(work)
        self._heartbeat.watch(row, task)
        return task

    def _left(self, tenant: str, task: asyncio.Task[None]) -> None:
        self._running[tenant] -= 1
        self._footing.queued.set()

    async def _execute(self, row: _Row) -> None:
        submission = self._unparked(row)
        if submission is None:
            await self._end_unreadable(row)
        elif row["approval_id"] is not None:
            await self._settling(row, self._resume_approved(row))
        else:
            await self._settling(row, self._pipeline.resume(submission))

    async def _end_late(self, row: _Row) -> None:
        submission = self._unparked(row)
        if submission is None:
            await self._end_unreadable(row)
        else:
            if row["approval_id"] is not None:
                submission = submission.with_changes(resumed=Resumption(approval_id=row["approval_id"], snapshot=None))
            await self._settling(row, self._pipeline.resume(submission, refused=self._too_late(row)))

    async def _resume_approved(self, row: _Row) -> None:
        address = {"tenant": row["tenant"], "approval_id": row["approval_id"]}
        (approval,) = await self._footing.database.read(
            lambda connection: connection.execute(QUERIES["fetch_approval"], address)
        )
        await self._approved(row, approval, _taken(row))

    def _too_late(self, row: _Row) -> ActionFailed:
        """Say why it may not run: its service level, or the end of the approval under which it waited."""
        details: dict[str, Any] = {"action_id": row["action_id"]}
        if row["last_error"] is not None:
            details["last_error"] = from_json(row["last_error"])["code"]
        if row["approval_id"] is None:
            return QueueDelayExceeded(
                "the action waited in the queue for longer than its service level says; nothing was sent",
                details={**details, "max_queue_delay_ms": row["late_at"] - row["due_at"]},
            )
        details["approval_id"] = row["approval_id"]
        connector = self._connectors.get(row["capability_id"])
        if connector is None:
            return CapabilityWithdrawn("the capability was withdrawn while the action waited; nothing was sent")
        message = "the session was busy until the action's approval ended; nothing was sent: ask for a new approval"
        return connector.failure("session_busy", message, details=details, uncertain=False)

    async def _settling(self, row: _Row, work: Awaitable[object]) -> None:
        try:
            await work
        except StoreFailure as exc:
            log.error("queue.action_unsettled", action_id=row["action_id"], error_type=type(exc).__name__)
        except LostClaim:
            log.warning("queue.lease_lost", action_id=row["action_id"], lease_number=row["lease_number"])

    def _unparked(self, row: _Row) -> Submission | None:
        """Return the kept action; None for what is none any more."""
        try:
            submission = Submission.unparked(from_json(row["parked"]), tenant=row["tenant"], attempt=row["attempt"])
        except (ValueError, TypeError, KeyError):
            log.warning("queue.parked_unreadable", action_id=row["action_id"])
            return None
        return submission.with_changes(taken=_taken(row), lease=row["lease_number"])

    async def _end_unreadable(self, row: _Row) -> None:
        """Let an action whose kept input is none end, so that it can be sent again."""
        message = "what was kept of the queued action can't be read; nothing was sent: send the action again"
        address = {"tenant": row["tenant"], "action_id": row["action_id"]}

        async def end() -> None:
            stored = await self._footing.database.write(
                lambda connection: settle(
                    connection,
                    **address,
                    attempt=row["attempt"],
                    lease=row["lease_number"],
                    by_worker=True,
                    ending=Ending(outcome=Interrupted(message)),
                    now=self._footing.now_ms(),
                )
            )
            self._footing.ended(**address, stored=stored)

        await self._settling(row, end())


def _taken(row: _Row) -> Taken:
    return Taken(tries=row["tries"], max_tries=row["max_tries"] or 1)
