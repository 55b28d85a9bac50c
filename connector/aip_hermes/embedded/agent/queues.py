"""One at a time, per key, in the order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

__all__ = ["Queues"]


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock
    users: int = 0
    turns: int = 0


class Queues:
    """Queues that exist as long as somebody stands in them."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    def has_turns(self, key: str) -> bool:
        """Tell whether a turn of this key runs or waits."""
        queue = self._queues.get(key)
        return queue is not None and queue.turns > 0

    @asynccontextmanager
    async def alone(self, key: str, *, turn: bool = True) -> AsyncIterator[None]:
        """Wait until nobody else of this key is inside. turn: counts for `has_turns` while it waits and runs."""
        with self._counted(key, turn=turn) as queue:
            async with queue.lock:
                yield

    @asynccontextmanager
    async def beside(self, key: str) -> AsyncIterator[None]:
        """Enter a turn at once, whoever is inside; it counts for `has_turns`."""
        with self._counted(key, turn=True):
            yield

    @contextmanager
    def _counted(self, key: str, *, turn: bool) -> Iterator[_Queue]:
        queue = self._queues.setdefault(key, _Queue(asyncio.Lock()))
        queue.users += 1
        queue.turns += turn
        try:
            yield queue
        finally:
            queue.users -= 1
            queue.turns -= turn
            if queue.users == 0:
                del self._queues[key]
