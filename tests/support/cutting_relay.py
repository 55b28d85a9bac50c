"""A relay in front of an endpoint that loses answers: it passes a request on, or not, and breaks the connection off.

What reaches the endpoint is counted outside of everything under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit

__all__ = ["CUTS", "Cut", "CuttingRelay"]

Cut = Literal["before_sending", "before_headers", "mid_headers", "mid_body", "after_last_byte", "while_running"]
CUTS: Final[tuple[Cut, ...]] = ("before_sending", "before_headers", "mid_headers", "mid_body", "after_last_byte")
"""Where the connection to the client breaks. before_sending: the endpoint never saw the request. while_running: the
endpoint has the request, and has not answered. The others: it answered, and so much of that reached the client."""


class CuttingRelay:
    """Listens on a free loopback port. cut: what happens to the next request that may change something, once.

    passed: method and path of every request that the endpoint was given. ended: set whenever the endpoint answered a
    request whose client had been left.
    """

    def __init__(self, target_url: str) -> None:
        target = urlsplit(target_url)
        self._there = (target.hostname or "127.0.0.1", target.port or 80)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut: Cut | None = None
        self.passed: list[tuple[str, str]] = []
        self.ended = asyncio.Event()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    @property
    def mutations(self) -> list[tuple[str, str]]:
        """What reached the endpoint and may have changed something."""
        return [each for each in self.passed if each[0] != "GET"]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_listening(self) -> None:
        """Refuse every connection from now on, as an endpoint that is down."""
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    body = await reader.readexactly(_length(head))
                    if not await self._relay(head, body, writer):
                        return
        finally:
            writer.close()

    async def _relay(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> bool:
        method, target = head.split(b" ", 2)[:2]
        cut, changes = None, method != b"GET"
        if changes:
            cut, self.cut = self.cut, None
        if cut == "before_sending":
            _reset(writer)
            return False
        self.passed.append((method.decode(), target.decode().partition("?")[0]))
        if cut == "while_running":
            _reset(writer)
        answer_head, answer_body = await self._exchange(head, body)
        if cut is None:
            writer.write(answer_head + answer_body)
            await writer.drain()
            return True
        kept = {
            "before_headers": b"",
            "mid_headers": answer_head[: len(answer_head) // 2],
            "mid_body": answer_head + answer_body[: len(answer_body) // 2],
            "after_last_byte": answer_head + answer_body,
        }
        if cut == "while_running":
            self.ended.set()
            return False
        writer.write(kept[cut])
        await writer.drain()
        if cut == "after_last_byte":
            writer.close()
        else:
            _reset(writer)
        return False

    async def _exchange(self, head: bytes, body: bytes) -> tuple[bytes, bytes]:
        """Pass a request on, on a connection of its own; return the answer, whole."""
        reader, writer = await asyncio.open_connection(*self._there)
        try:
            writer.write(head + body)
            await writer.drain()
            answer_head = await reader.readuntil(b"\r\n\r\n")
            return answer_head, await _body(answer_head, reader)
        finally:
            writer.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if b"transfer-encoding: chunked" not in head.lower():
        return await reader.readexactly(_length(head))
    whole = b""
    while not whole.endswith(b"0\r\n\r\n"):
        part = await reader.read(65_536)
        if not part:
            break
        whole += part
    return whole


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
