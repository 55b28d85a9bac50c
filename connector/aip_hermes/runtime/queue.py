"""The durable queue of asynchronous actions: one table, one worker, no retry.

An action is checked when it is submitted, waits as a row, and runs through the same path as a synchronous one. It is
sent at most once: a worker that dies before the intent leaves it waiting, after the intent the outcome is unknown. A
safe read has no intent: one that a worker left is read again.
Source: runtime behaviour §4; design D4, D8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from aip_hermes.database import Connection, StoreFailure
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.failures import Interrupted, QueueDelayExceeded
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.submission import Submission

__all__ = ["QueueWorker"]

log = structlog.get_logger(__name__)

LOOK_S = 1.0
"""How long the worker rests before it looks for work that nobody told it of."""


class QueueWorker:
    """Starts waiting actions, oldest first, at most `queue_width` at a time. `run` ends by cancellation."""

    def __init__(
        self, footing: Footing, *, pipeline: Pipeline, start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    ) -> None:
        """start: makes the task of an action that runs."""
        self._footing = footing
        self._pipeline = pipeline
        self._start = start
        self._width = asyncio.Semaphore(footing.limits.queue_width)
        self._longest_wait_ms = footing.limits.queue_delay_ms

    async def run(self) -> None:
        """Work until cancelled; what runs then ends as every other action does."""
        while True:
            await self._width.acquire()
            row = await self._next()
            self._start(self._execute(row)).add_done_callback(self._done)

    async def _next(self) -> Mapping[str, Any]:
        while True:
            self._footing.queued.clear()
            try:
                rows = await self._footing.database.write(self._take)
            except StoreFailure as exc:
                log.warning("queue.store_failed", error_type=type(exc).__name__)
                rows = []
            if rows:
                return rows[0]
            waiting = [
                asyncio.ensure_future(self._footing.queued.wait()),
                asyncio.ensure_future(self._footing.clock.sleep(LOOK_S)),
            ]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waiting:
                    wait.cancel()

    def _take(self, connection: Connection) -> list[dict[str, Any]]:
        return connection.execute(QUERIES["take_queued"], {"now": self._footing.now_ms()})

    async def _execute(self, row: Mapping[str, Any]) -> None:
        try:
            submission = Submission.unparked(from_json(row["parked"]), tenant=row["tenant"], attempt=row["attempt"])
        except (ValueError, TypeError, KeyError):
            log.warning("queue.parked_unreadable", action_id=row["action_id"])
            await self._end_unreadable(row)
            return
        waited_ms = self._footing.now_ms() - row["queued_at"]
        refused: ActionFailed | None = None
        if waited_ms > self._longest_wait_ms:
            refused = QueueDelayExceeded(
                f"the action waited {waited_ms} ms in the queue, longer than its service level says; nothing was sent",
                details={"action_id": row["action_id"], "max_queue_delay_ms": self._longest_wait_ms},
            )
        try:
            await self._pipeline.resume(submission, refused=refused)
        except StoreFailure as exc:
            log.error("queue.action_unsettled", action_id=row["action_id"], error_type=type(exc).__name__)

    async def _end_unreadable(self, row: Mapping[str, Any]) -> None:
        """Let an action whose kept input is none end, so that it can be sent again."""
        message = "what was kept of the queued action can't be read; nothing was sent: send the action again"
        await self._footing.database.write(
            lambda connection: settle(
                connection,
                tenant=row["tenant"],
                action_id=row["action_id"],
                attempt=row["attempt"],
                ending=Ending(outcome=Interrupted(message)),
                now=self._footing.now_ms(),
                new_id=self._footing.new_id,
            )
        )

    def _done(self, task: asyncio.Task[None]) -> None:
        self._width.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("queue.worker_broken", error_type=type(error).__name__, exc_info=error)
