"""One after the other, and nobody who waits for himself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["Alone"]

_AROUND: Final[ContextVar[tuple[object, ...]]] = ContextVar("_AROUND", default=())
"""The turns that this code is part of: a tool's, those of the agent that the tool belongs to, and so on."""


class Alone:
    """A lock that is taken in the order of arrival."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._running: object | None = None

    @asynccontextmanager
    async def inside(self) -> AsyncIterator[None]:
        """Wait until nobody else is inside. Raises RuntimeError, at once, where this is part of what is inside now, or
        was begun by it: it would wait for itself.
        """
        if self._running is not None and self._running in _AROUND.get():
            raise RuntimeError(
                "AIAgent is in the middle of a turn, and this call is a part of it that would wait for its end; give "
                "the tool or the callback an agent of its own"
            )
        async with self._lock:
            self._running = turn = object()
            before = _AROUND.set((*_AROUND.get(), turn))
            try:
                yield
            finally:
                _AROUND.reset(before)
                self._running = None
