"""Somebody else's webhook: takes what is sent and says yes."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["Receiver"]


class Receiver:
    """got: each request as it came, head and body. came: set with the first."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.came = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            self.got.append(head + await reader.readexactly(length))
            self.came.set()
            writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
