"""Connections straight to one origin: HTTP/1.1 on asyncio's transports, the rules of the protocol left to h11.

It stands where httpx would put httpcore, which takes a lock and two or three turns of the event loop for each step of a
request, at both sides of the abstraction over event loops that it offers. A small read takes half of its processor time
here, one on a new connection a third (`bench/connections.py`). Proxies are left to httpx.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import h11
import httpx

from aip_hermes.hermes.dialling import dial

__all__ = ["DirectConnections"]

_Note = Callable[[str, dict[str, Any]], Awaitable[None]]

_MAX_HEAD_BYTES: Final = 100 * 1024
_HIGH_BYTES: Final = 256 * 1024
"""What may wait to be read before the endpoint is made to wait: no answer grows behind a slow reader."""
_MAX_IDLE: Final = 20


class DirectConnections(httpx.AsyncBaseTransport):
    """A pool of connections, each kept for the next request until it was idle for `idle_s`, then closed.

    As many are open as requests are under way: whoever calls bounds that. Of idle ones at most twenty are kept.

    Requests tell their steps by the extension `trace`, as httpcore does: something at once,
    `http11.send_request_headers.started` before the first byte leaves, `http11.send_request_body.complete` when the
    last has left or an answer has come.
    """

    def __init__(self, *, idle_s: float, connect_s: float, tls: ssl.SSLContext) -> None:
        self._idle_s = idle_s
        self._connect_s = connect_s
        self._tls = tls
        tls.set_alpn_protocols(["http/1.1"])
        self._idle: list[tuple[float, _Connection]] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, whose body is read from the connection. Closing it gives that back.

        Raises: httpx.ConnectError, ConnectTimeout, RemoteProtocolError, LocalProtocolError, ReadError.
        """
        note = cast("_Note", request.extensions.get("trace", _unnoted))
        await note("connection.started", {})
        connection = self._kept() or await self._open(request.url)
        try:
            head = await connection.ask(request, note)
        except BaseException:
            connection.abort()
            raise
        answer = _Body(connection, self._give_back)
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=answer)

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when it is given back."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        while self._idle:
            self._idle.pop()[1].abort()

    def _kept(self) -> _Connection | None:
        """Return the connection that was used last, if it may still be used; what may not is closed."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, connection = self._idle.pop()
            if now - since < self._idle_s and connection.quiet():
                return connection
            connection.abort()
        return None

    def _give_back(self, connection: _Connection) -> None:
        if self._closed or len(self._idle) >= _MAX_IDLE or not connection.next_cycle():
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle.append((loop.time(), connection))
        if self._sweep is None:
            self._sweep = loop.call_later(self._idle_s, self._close_old)

    def _close_old(self) -> None:
        """Close what was idle for too long, also where nobody asks any more."""
        loop = asyncio.get_running_loop()
        kept_since = loop.time() - self._idle_s
        while self._idle and self._idle[0][0] <= kept_since:
            self._idle.pop(0)[1].abort()
        self._sweep = loop.call_at(self._idle[0][0] + self._idle_s, self._close_old) if self._idle else None

    async def _open(self, url: httpx.URL) -> _Connection:
        secure = url.scheme == "https"
        host = url.raw_host.decode("ascii")
        port = url.port if url.port is not None else 443 if secure else 80
        try:
            async with asyncio.timeout(self._connect_s):
                connection = await dial(_Connection, host, port, tls=self._tls if secure else None)
        except TimeoutError as exc:
            raise httpx.ConnectTimeout("the connection was not made in time") from exc
        except (OSError, ExceptionGroup) as exc:
            raise httpx.ConnectError("no connection was made") from exc
        # Of TLS, bytes that nobody has read may be its own: the tickets that follow a handshake.
        if not connection.quiet(unread=not secure):
            connection.abort()
            raise httpx.RemoteProtocolError("the endpoint answered, or closed the connection, before it was asked")
        return connection


class _Body(httpx.AsyncByteStream):
    """The body of an answer. ends: what becomes of the connection afterwards."""

    def __init__(self, connection: _Connection, ends: Callable[[_Connection], None]) -> None:
        self._connection: _Connection | None = connection
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        connection = self._connection
        while connection is not None and (part := await connection.part()) is not None:
            yield part

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._ends(connection)


class _Connection(asyncio.Protocol):
    """One connection, used by one request at a time."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._arrived = bytearray()
        self._ended = False
        self._broken: Exception | None = None
        self._paused = False
        self._writable = True
        self._waiter: asyncio.Future[None] | None = None

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        if len(self._arrived) > _HIGH_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._broken = True, exc
        self._wake()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._wake()

    # What the pool asks.

    def quiet(self, *, unread: bool = True) -> bool:
        """Whether nothing came since the last answer: bytes that nobody asked for, which would be taken for the next
        one, or the end. unread: whether what waits to be read counts."""
        if self._ended or self._arrived or self._transport.is_closing():
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not (unread and poll.poll(0))

    async def ask(self, request: httpx.Request, note: _Note) -> h11.Response:
        """Send a request and return the head of its answer, which may come before the request has left whole."""
        with _protocol():
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            parts = [self._http.send(event) for event in (head, h11.Data(data=request.content), h11.EndOfMessage())]
        await note("http11.send_request_headers.started", {})
        self._transport.write(b"".join(part for part in parts if part))
        while not (self._writable or self._arrived or self._ended):
            await self._change()
        await note("http11.send_request_body.complete", {})
        while not isinstance(event := await self._event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError("the connection was closed without an answer")
        return event

    async def part(self) -> bytes | None:
        """Return the next bytes of the body; None at its end."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    def next_cycle(self) -> bool:
        """Make ready for the next request; False where the connection can carry no other one.

        Bytes that came in one piece with the answer's end, and are not of it, would be taken for the next one's answer;
        an endpoint that answered before it had the whole request may not read the rest of it.
        """
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        if self._http.trailing_data[0] or self._transport.get_write_buffer_size():
            return False
        self._http.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    # Inside.

    async def _event(self) -> Any:
        while True:
            with _protocol():
                event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            data = await self._read()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise httpx.RemoteProtocolError("the connection was closed without an answer")
            with _protocol():
                self._http.receive_data(data)

    async def _read(self) -> bytes:
        """Return what arrived, at least one byte; nothing at the end."""
        while not (self._arrived or self._ended):
            await self._change()
        data = bytes(self._arrived)
        self._arrived.clear()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if not data and self._broken is not None:
            raise httpx.ReadError("the connection broke") from self._broken
        return data

    async def _change(self) -> None:
        """Wait until the transport tells anything."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def _unnoted(_event: str, _info: dict[str, Any]) -> None:
    return


@contextmanager
def _protocol() -> Iterator[None]:
    """Turn what h11 refuses into httpx's words for it."""
    try:
        yield
    except h11.LocalProtocolError as exc:
        raise httpx.LocalProtocolError("this is no request that HTTP can carry") from exc
    except h11.RemoteProtocolError as exc:
        raise httpx.RemoteProtocolError("the answer is no HTTP") from exc
