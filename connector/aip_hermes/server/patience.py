"""How long a server waits for one connection: to send a request, and to take an answer; and what it says to bytes that
are no request.

uvicorn waits for ever for the rest of a request, drops the answer when a client has closed its sending half, and
answers what it can't read with a line of text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from aip_hermes.server.joined import JoinedAnswers

__all__ = ["REQUEST_S", "PatientProtocol", "Unreadable"]

REQUEST_S: Final = 60.0
"""For a whole request from its first byte (of a new connection: from its beginning), and for each stalled answer."""


_MAX_HEAD_BYTES: Final = 64 * 1024

Unreadable = Callable[[], bytes]
"""Returns the JSON text that answers bytes which are no HTTP request."""


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with an end to waiting."""

    patience_s: float = REQUEST_S
    unreadable: Unreadable | None = None

    @classmethod
    def answering(cls, unreadable: Unreadable | None) -> type[PatientProtocol]:
        """Return the protocol that says this to bytes which are no request; None: as uvicorn does."""
        return cls if unreadable is None else type(cls.__name__, (cls,), {"unreadable": staticmethod(unreadable)})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = JoinedAnswers(h11.SERVER, self.config.h11_max_incomplete_event_size or _MAX_HEAD_BYTES)
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

    def send_400_response(self, msg: str) -> None:
        if self.unreadable is None:
            super().send_400_response(msg)
            return
        body = self.unreadable()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        for part in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(part) or b"")
        self.transport.close()

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
