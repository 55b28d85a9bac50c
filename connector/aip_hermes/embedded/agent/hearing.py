"""Tells a caller's function the text as it comes, whether it is a plain function or an async one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

import structlog

from aip_hermes.embedded.agent.events import AgentEvent, TextDelta
from aip_hermes.embedded.agent.finishing import being_cancelled

__all__ = ["Hearing"]

log = structlog.get_logger(__name__)


class Hearing:
    """One turn's text for one function. What that function raises ends the telling, never the turn."""

    def __init__(self, callback: Callable[[str], object] | None) -> None:
        self._callback = callback
        self._later: asyncio.Queue[object] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None

    def hear(self, event: AgentEvent) -> None:
        """Listen to the turn; returns at once."""
        if self._callback is None or not isinstance(event, TextDelta):
            return
        try:
            answer = self._callback(event.text)
        except Exception as exc:  # whatever a caller's function does: the turn goes on
            self._stop(exc)
            return
        if inspect.isawaitable(answer):
            self._later.put_nowait(answer)
            if self._pump is None:
                self._pump = asyncio.create_task(self._await_all())

    async def ended(self) -> None:
        """Wait until everything was told."""
        if self._pump is not None:
            self._later.put_nowait(None)
            await self._pump

    def left(self) -> None:
        """The turn is over: nothing more is told."""
        self._callback = None
        self._drop()
        if self._pump is not None:
            self._pump.cancel()

    async def _await_all(self) -> None:
        while (awaitable := await self._later.get()) is not None:
            try:
                await awaitable  # type: ignore[misc]
            except asyncio.CancelledError as exc:
                if being_cancelled():
                    raise
                self._stop(exc)
                return
            except Exception as exc:  # as above
                self._stop(exc)
                return

    def _stop(self, exc: BaseException) -> None:
        log.warning("agent.stream_callback_failed", cause=type(exc).__name__)
        self._callback = None
        self._drop()

    def _drop(self) -> None:
        """Let go of what is not awaited any more."""
        while not self._later.empty():
            if inspect.iscoroutine(waiting := self._later.get_nowait()):
                waiting.close()
