"""How long a server waits for one connection: to send a request, and to take an answer.

uvicorn waits for ever for the rest of a request, and drops the answer when a client has closed its sending half.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["REQUEST_S", "PatientProtocol"]

REQUEST_S: Final = 60.0
"""For a whole request from its first byte (of a new connection: from its beginning), and for each stalled answer."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with an end to waiting."""

    patience_s: float = REQUEST_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sending: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether to stay: a client that closed its sending half behind a whole request waits for the answer.

        An answer that has begun is either about to be written whole or a stream, whose follower then has left.
        """
        if not self._answering() or self.cycle.response_started:
            return False
        self.cycle.keep_alive = False
        return True

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The next request may have begun behind the last one; the idle time between two is the keep-alive's.
        if self.cycle.more_body and not self.cycle.response_complete:
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._taking is None:
            self._taking = self.loop.call_later(self.patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._taking = _stop(self._taking)

    def connection_lost(self, exc: Exception | None) -> None:
        self._sending, self._taking = _stop(self._sending), _stop(self._taking)
        super().connection_lost(exc)

    def _answering(self) -> bool:
        """Whether a whole request has arrived and its answer has not left."""
        if self.cycle is None:  # before the first request, whatever is declared
            return False
        return not self.cycle.more_body and not self.cycle.response_complete

    def _watch(self) -> None:
        if self._answering():
            self._sending = _stop(self._sending)
        elif self._sending is None:
            self._sending = self.loop.call_later(self.patience_s, self.transport.abort)


def _stop(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Return what takes the place of `timer`: nothing."""
    if timer is not None:
        timer.cancel()
    return None
