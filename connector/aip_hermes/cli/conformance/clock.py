"""A clock that moves when somebody says so."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from itertools import count
from typing import Any

__all__ = ["ManualClock"]


class ManualClock:
    """Starts at 2030-01-01. Who sleeps wakes when the time is moved past its end."""

    def __init__(self, now_ms: int = 1_893_456_000_000) -> None:
        self._now_ms = now_ms
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._changed = asyncio.Event()

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        # It sleeps from now on, not from the turn in which a task of it begins: the time may be moved in between.
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_ms + seconds * 1000, next(self._order), future))
        self._changed.set()
        return _until(future)

    def advance(self, ms: int) -> None:
        """Move the time and wake whose sleep is over."""
        self._now_ms += ms
        while self._sleepers and self._sleepers[0][0] <= self._now_ms:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)

    def sleeping(self, seconds: float) -> int:
        """Return how many sleep until that far from now."""
        wanted = round(seconds * 1000)
        return sum(1 for end, _, future in self._sleepers if round(end - self._now_ms) == wanted and not future.done())

    async def until_asleep(self, seconds: float, *, number: int = 1) -> None:
        """Wait until that many sleep that long."""
        async with asyncio.timeout(30):
            while self.sleeping(seconds) < number:
                self._changed.clear()
                await self._changed.wait()


async def _until(future: asyncio.Future[None]) -> None:
    await future
