"""Idempotency keys of completions and responses: kept in memory, for five minutes, a thousand at most."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from aip_hermes.ports import Clock

__all__ = ["Repeats", "fingerprint"]

_KEPT_S: Final = 300.0
_MOST: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    fingerprint: str
    until: float
    task: asyncio.Task[Any]


class Repeats:
    """What was answered under a key. A failure is not kept; another request under a key takes its place."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def once(self, request: Request, mark: str, start: Callable[[], asyncio.Task[Any]]) -> tuple[Any, bool]:
        """Return the outcome and whether it is a repeated one. Equal requests at the same time share one.

        start: begins the work, synchronously. The work goes on when the caller is cancelled.
        """
        key = request.headers.get("idempotency-key", "").strip()
        if not key:
            return await asyncio.shield(start()), False
        now = self._clock.monotonic()
        kept = self._kept.get(key)
        repeated = kept is not None and kept.fingerprint == mark and kept.until > now and not _failed(kept.task)
        if kept is None or not repeated:
            kept = _Kept(fingerprint=mark, until=now + _KEPT_S, task=start())
            self._kept.pop(key, None)
            self._kept[key] = kept
            while len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
        return await asyncio.shield(kept.task), repeated


def fingerprint(route: str, body: Mapping[str, Any], names: tuple[str, ...], *more: str | None) -> str:
    """Return what has to be equal for two requests to be the same one."""
    parts = [route, {name: body.get(name) for name in names}, more]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
