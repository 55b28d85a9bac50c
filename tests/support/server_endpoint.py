"""The smallest Hermes: one session that can be read and deleted, behind a gate, on a free port of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

__all__ = ["GatedEndpoint"]

SESSION: Final[dict[str, Any]] = {
    "object": "hermes.session",
    "session": {"id": "s", "source": "api_server", "message_count": 0, "started_at": 1.0, "ended_at": None},
}
DELETED: Final[dict[str, Any]] = {"object": "hermes.session.deleted", "id": "s", "deleted": True}


class GatedEndpoint:
    """requests: request lines, in order. entered: a session was asked for. gate: the answer waits for it."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GatedEndpoint]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        try:
            yield self
        finally:
            self.gate.set()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line = head.partition("\r\n")[0]
            self.requests.append(line.removesuffix(" HTTP/1.1"))
            body: dict[str, Any] = {"status": "ok", "platform": "hermes-agent"}
            if " /api/sessions/" in line:
                self.entered.set()
                await self.gate.wait()
                body = DELETED if line.startswith("DELETE") else SESSION
            data = json.dumps(body).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                + f"content-length: {len(data)}\r\n\r\n".encode()
                + data
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
