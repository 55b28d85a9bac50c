"""Waiting with an end, on the injected clock, and what wakes those of this process who wait or follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aip_hermes.ports import Clock, SystemClock

__all__ = ["Finished", "Overrun", "Wake", "Watchers", "within"]

T = TypeVar("T")
_Key = tuple[str, str]


class Overrun(Exception):
    """The time was up first."""


class Wake:
    """Lets one task sleep until the first of several things happens; `asyncio.wait` takes two turns more to say so."""

    def __init__(self) -> None:
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __call__(self, *_: object) -> None:
        """Wake the sleeper, if nothing has."""
        if not self._woken.done():
            self._woken.set_result(None)

    async def sleep(self) -> None:
        """Return when woken, at once if that was before."""
        await self._woken

    def at_end_of(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Run `work`, and wake the sleeper when it ends."""
        if isinstance(work, asyncio.Future):
            work.add_done_callback(self)
            return work
        return asyncio.create_task(self.around(work))

    async def around(self, work: Awaitable[T]) -> T:
        """Return what `work` returns, and wake the sleeper by the way: without a turn of the loop in between."""
        try:
            return await work
        finally:
            self()


async def within(seconds: float, awaitable: Awaitable[T], *, clock: Clock, cancels: bool = True) -> T:
    """Return what `awaitable` returns, or cancel it and raise Overrun after `seconds`. cancels: False lets it go on.

    Whatever was finished at that moment counts: a result in hand is never thrown away. Work that ends by a cancellation
    of its own is an Overrun too: it has no outcome.
    """
    wake = Wake()
    work = wake.at_end_of(awaitable)
    bell = _bell(seconds, wake, clock=clock)
    try:
        await wake.sleep()
        if cancels and not work.done():
            work.cancel()
            # One turn of the loop is what a well-behaved coroutine needs to end.
            await asyncio.wait((work,), timeout=0.5)
        if not work.done() or work.cancelled():
            raise Overrun
        return work.result()
    finally:
        bell.cancel()
        if work.done():
            _ = work.cancelled() or work.exception()  # seen: who was cancelled meanwhile asks no more
        elif cancels:
            work.cancel()


def _bell(seconds: float, wake: Wake, *, clock: Clock) -> asyncio.TimerHandle | asyncio.Future[None]:
    """Return what wakes after `seconds`, to be cancelled: of the machine's clock a timer of the loop, else a task."""
    if type(clock) is SystemClock:
        return asyncio.get_running_loop().call_later(seconds, wake)
    return wake.at_end_of(clock.sleep(seconds))


class Finished:
    """Tells those who wait for an action of this process what became of it, after its commit.

    A waiter registers first and looks at the store second, so no end is missed.
    """

    def __init__(self) -> None:
        self._waiting: dict[_Key, set[asyncio.Future[Mapping[str, Any]]]] = {}

    def register(self, *, tenant: str, action_id: str) -> asyncio.Future[Mapping[str, Any]]:
        """Return a future of the action's stored result; `forget` it when done."""
        future: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((tenant, action_id), set()).add(future)
        return future

    def forget(self, future: asyncio.Future[Mapping[str, Any]], *, tenant: str, action_id: str) -> None:
        """Stop waiting."""
        waiting = self._waiting.get((tenant, action_id))
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[(tenant, action_id)]

    def waited_for(self) -> list[_Key]:
        """Return the tenant and Action ID of each end that somebody waits for."""
        return list(self._waiting)

    def tell(self, *, tenant: str, action_id: str, stored: Mapping[str, Any]) -> None:
        """Hand a committed result to everybody who waits."""
        for future in self._waiting.pop((tenant, action_id), set()):
            if not future.done():
                future.set_result(stored)


class Watchers:
    """Wakes those of this process who follow an action, after each commit that concerns it."""

    def __init__(self) -> None:
        self._events: dict[_Key, set[asyncio.Event]] = {}

    @asynccontextmanager
    async def watching(self, *, tenant: str, action_id: str) -> AsyncIterator[asyncio.Event]:
        """Yield an event that `changed` sets. Clear it before reading, so that nothing is missed."""
        event = asyncio.Event()
        self._events.setdefault((tenant, action_id), set()).add(event)
        try:
            yield event
        finally:
            waiting = self._events[(tenant, action_id)]
            waiting.discard(event)
            if not waiting:
                del self._events[(tenant, action_id)]

    def all_changed(self) -> None:
        """Wake everybody."""
        for events in self._events.values():
            for event in events:
                event.set()

    def changed(self, *, tenant: str, action_id: str) -> None:
        """Wake everybody who follows the action, or all of its tenant's (under the empty id)."""
        for followed in (action_id, ""):
            for event in self._events.get((tenant, followed), ()):
                event.set()
