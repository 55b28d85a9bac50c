"""What a runtime does beside its callers: the work that nobody waits for any more, and the loops that nobody asks for.

A loop that breaks is logged and begins again after a rest: what is wrong with one row must end neither the queue nor
the approvals' clock for all. Closing stops the loops first, so that nothing new begins, and gives the rest its time.
Source: design §3, D4; style anchors on the outermost loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

from aip_hermes.ports import Clock
from aip_hermes.runtime.waiting import Overrun, Wake, within

__all__ = ["BROKEN_REST_S", "Background"]

log = structlog.get_logger(__name__)

T = TypeVar("T")

BROKEN_REST_S: Final = 5.0
"""How long a loop that broke rests before it begins again."""


class Background:
    """The tasks of one runtime, from its start to `aclose`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._work: set[asyncio.Task[Any]] = set()
        self._loops: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in a task of its own; whoever holds the task hears of its outcome, should they still listen."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._ended)
        return task

    async def outlast(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns; who is cancelled while it waits leaves it running."""
        wake = Wake()
        task = self.start(wake.around(work))
        task.add_done_callback(wake)  # cancelled before its first step, it comes to no other word
        try:
            await wake.sleep()
            return task.result()
        finally:
            if task.cancelled():
                work.close()

    def start_alone(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """As `start`, for work that nobody listens to: what breaks it is logged."""
        task = self.start(work)
        task.add_done_callback(_reported)
        return task

    def keep(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop until `aclose`. name: for the log. run: ends by cancellation alone."""
        self._loops.add(asyncio.create_task(self._kept(name, run)))

    async def aclose(self, *, wait_ms: int) -> None:
        """End the loops, give the work `wait_ms` to end, cut off what still runs then. Idempotent."""
        loops, self._loops = self._loops, set()
        for loop in loops:
            loop.cancel()
        if loops:
            await asyncio.wait(loops)
        work = [task for task in self._work if task is not asyncio.current_task()]
        if not work:
            return
        try:
            await within(wait_ms / 1000, asyncio.wait(work), clock=self._clock)
        except Overrun:
            running = [task for task in work if not task.done()]
            if not running:  # the last one ended as its time did
                return
            log.warning("runtime.closing_with_running_actions", count=len(running))
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=1.0)

    async def _kept(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await run()
            except Exception as exc:
                log.exception("runtime.loop_broken", loop=name, error_type=type(exc).__name__)
            await self._clock.sleep(BROKEN_REST_S)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.exception()  # whoever listens has it; nobody may be listening any more


def _reported(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("runtime.work_broken", error_type=type(error).__name__, exc_info=error)
