"""What the rooms take as arguments instead of reaching for globals: time, new ids, fault points."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from aip_hermes.ids import uuid7_hex

__all__ = ["Clock", "Faults", "NewId", "NoFaults", "SystemClock", "new_id"]


class Clock(Protocol):
    """Time as the project sees it."""

    def now_ms(self) -> int:
        """Return Unix time in milliseconds, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never step back; only differences mean anything."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class NewId(Protocol):
    """Makes a new identifier: the prefix plus 32 hex digits that sort by creation."""

    def __call__(self, prefix: str) -> str: ...


class Faults(Protocol):
    """Named points at which a test stops, delays or kills the process. Production does nothing there."""

    async def reach(self, point: str) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class NoFaults:
    """Production: every point is passed."""

    async def reach(self, point: str) -> None:
        return


def new_id(prefix: str) -> str:
    """Return `prefix` plus the hex digits of a UUID version 7 made now."""
    return prefix + uuid7_hex(time.time_ns() // 1_000_000)
