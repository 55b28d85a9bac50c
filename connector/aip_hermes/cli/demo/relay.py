"""A loopback relay in front of a Hermes endpoint that counts what reaches it.

The demo claims that a refused action sends nothing; only something outside the server under test can prove that. Bytes
pass through unchanged but for the `Host` header. It counts requests by method and path, and keeps nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

__all__ = ["Relay", "Seen", "Unreachable"]

_HEAD_LIMIT = 256 * 1024
_CONNECT_S = 10.0


class Unreachable(Exception):
    """No connection to the endpoint, so nothing was sent to it. The text is the cause."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it reached the endpoint. path: without query, as encoded on the wire."""

    method: str
    path: str


class Relay:
    """Listens on a free loopback port and forwards to `target_url` (scheme, host and port count).

    seen: every request that was passed on. trouble: why the endpoint could not be reached the last time it was tried.
    """

    def __init__(self, target_url: str) -> None:
        target = urlsplit(target_url)
        self._host = target.hostname or "127.0.0.1"
        self._tls = target.scheme == "https"
        self._port = target.port or (443 if self._tls else 80)
        self._authority = target.netloc
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self.seen: list[Seen] = []
        self.trouble: str | None = None

    @property
    def url(self) -> str:
        """Where the relay listens: `http://127.0.0.1:<port>/`."""
        assert self._server is not None  # noqa: S101 - only inside the context
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=_HEAD_LIMIT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def check(self) -> None:
        """Connect to the endpoint once and send nothing. Raises Unreachable."""
        _, writer = await self._connected()
        writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = ssl.create_default_context() if self._tls else None
        try:
            async with asyncio.timeout(_CONNECT_S):
                there = await asyncio.open_connection(self._host, self._port, ssl=context)
        except OSError as error:
            self.trouble = _cause(error)
            raise Unreachable(self.trouble) from None
        self.trouble = None
        return there

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - start_server runs this in a task
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)
        with contextlib.suppress(Unreachable, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            there = await self._connected()
            back = asyncio.create_task(_pump(there[0], writer))
            try:
                await self._requests(reader, there[1])
                there[1].write_eof() if there[1].can_write_eof() else there[1].close()
                await back
            finally:
                back.cancel()
                there[1].close()
        writer.close()

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward request after request; the connector always sends a Content-Length."""
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            lines = head.split(b"\r\n")
            method, target = lines[0].split(b" ")[:2]
            self.seen.append(Seen(method.decode("ascii", "replace"), target.split(b"?")[0].decode("ascii", "replace")))
            length = 0
            for index, line in enumerate(lines[1:], start=1):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"host":
                    lines[index] = b"Host: " + self._authority.encode("ascii")
            writer.write(b"\r\n".join(lines))
            while length:
                part = await reader.read(min(length, 65536))
                if not part:
                    return
                length -= len(part)
                writer.write(part)
                await writer.drain()
            await writer.drain()


def _cause(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_S:.0f} s"
    if isinstance(error, ssl.SSLError):
        return f"no trusted TLS connection ({error.reason or error.strerror})"
    if isinstance(error, socket.gaierror):
        return "the name has no address"
    return os.strerror(error.errno).lower() if error.errno else str(error)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
