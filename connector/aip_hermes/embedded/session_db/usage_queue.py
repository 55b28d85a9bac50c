"""Reports of usage that nobody waits for: a task of its own writes them, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.session_db.usage import Report, coalesced

__all__ = ["UsageQueue"]

log = structlog.get_logger(__name__)

_AT_ONCE = 1000


class UsageQueue:
    """Takes reports at once and hands them on in order, neighbours of one route together.

    write: stores reports in one transaction. What a store can't take now is kept and tried again with the next report
    or flush.
    """

    def __init__(self, write: Callable[[Sequence[Report]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[Report] = []
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, report: Report) -> None:
        """Take a report; it is written soon."""
        self._waiting.append(report)
        self._start()

    async def flush(self, *, timeout_s: float) -> bool:
        """Wait until all that was taken is stored; False where that took too long or the store can't."""
        if self._waiting:
            self._start()
        if self._task is None:
            return True
        done, _ = await asyncio.wait({self._task}, timeout=timeout_s)
        return bool(done) and not self._waiting

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="usage reports")

    async def _run(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            try:
                await self._write(coalesced(taken))
            except StoreFailure as error:
                self._waiting = coalesced([*taken, *self._waiting])
                log.warning("session_db.usage_waits", reports=len(self._waiting), error_type=type(error).__name__)
                return
            except BaseException:
                self._waiting = [*taken, *self._waiting]
                raise
