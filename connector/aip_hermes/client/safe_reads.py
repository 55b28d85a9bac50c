"""Repeating reads, and nothing else. Source: design D22; style: one client, one send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aip_hermes.client.failures import ClientFailure, HttpFailed, NoAnswer, NotReachable, PeerError
from aip_hermes.ports import Clock

__all__ = ["SafeReads"]

T = TypeVar("T")

_FIRST_WAIT_S: Final = 0.2
_LONGEST_WAIT_S: Final = 5.0


class SafeReads:
    """Tries a read up to `tries` times, waiting 0.2, 0.4, … seconds, or what the server asks, at most 5."""

    def __init__(self, *, tries: int, clock: Clock) -> None:
        if tries < 1:
            raise ValueError("read_tries is at least 1")
        self._tries = tries
        self._clock = clock

    async def __call__(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returns, of its first try that succeeds. Raises: the failure of the last one."""
        tried = 0
        while True:
            try:
                return await read()
            except ClientFailure as failure:
                tried += 1
                asked_s = (failure.retry_after_ms or 0) / 1000
                if tried >= self._tries or not _may_pass(failure) or asked_s > _LONGEST_WAIT_S:
                    raise
                await self._clock.sleep(max(asked_s, min(_FIRST_WAIT_S * 2 ** (tried - 1), _LONGEST_WAIT_S)))


def _may_pass(failure: ClientFailure) -> bool:
    if isinstance(failure, NoAnswer | NotReachable):
        return True
    return isinstance(failure, PeerError | HttpFailed) and (failure.retryable or (failure.http_status or 0) >= 500)
