"""Long polling: look, and while there is nothing to say wait for a commit, at most as long as the caller asked.

Woken by commits of this process, with a look every half second for those of another one. A server that stops cancels
who waits, after its drain; nobody is told of an end that was not reached. Source: AIP HTTP surface §5.2, §7.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from aip_hermes.ports import Clock

__all__ = ["LOOK_S", "first_of", "until"]

LOOK_S: Final = 0.5
"""How long a reader waits for a commit that another process may have made."""

T = TypeVar("T")


async def until(
    look: Callable[[], Awaitable[T]],
    *,
    enough: Callable[[T], bool],
    changed: Callable[[], AbstractAsyncContextManager[asyncio.Event]],
    wait_ms: int | None,
    clock: Clock,
) -> T:
    """Return what `look` finds, as soon as it is `enough` or `wait_ms` have passed; at once where none are given.

    changed: gives an event that is set after each commit that concerns the reader.
    """
    if not wait_ms:
        return await look()
    end = clock.monotonic() + wait_ms / 1000
    async with changed() as event:
        while True:
            event.clear()
            found = await look()
            left_s = end - clock.monotonic()
            if enough(found) or left_s <= 0:
                return found
            await first_of(event.wait(), clock.sleep(min(LOOK_S, left_s)))


async def first_of(*waits: Any) -> None:
    """Wait for one of them, and end the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
