"""An event loop that waits for nobody: its time stands still while anything can be done, then jumps to the next timer.

It is for tests of patience against a server on loopback in the same loop. What was sent there can be read at once, so a
timer comes when everything else has been done, however slow the machine is, and a minute costs nothing. Work in threads
would be overtaken: not for stores, files and name look-ups.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

__all__ = ["run_skipping", "skipping"]

T = TypeVar("T")
P = ParamSpec("P")
_GRACE_S = 0.01
"""What the kernel of a busy machine may need to hand over a byte."""
_STUCK_S = 30.0


def run_skipping(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        return runner.run(work)


def skipping(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Let a test run in such a loop."""

    @functools.wraps(test)
    def run(*args: P.args, **members: P.kwargs) -> None:
        run_skipping(test(*args, **members))

    return run


class _Selector(selectors.SelectSelector):
    """skipped_s: how much time was not waited for."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(_STUCK_S)
            if not ready:
                raise RuntimeError("nothing can happen any more: no timer is set and nobody sends")
            return ready
        ready = super().select(min(timeout, _GRACE_S))
        if not ready:
            self.skipped_s += max(timeout, 0)
        return ready


class _SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._idle = _Selector()
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.skipped_s
