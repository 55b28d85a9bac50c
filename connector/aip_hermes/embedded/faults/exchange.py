"""One request and its answer, in the hands of a fault."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aip_hermes.ports import Clock

__all__ = ["COMPRESSION", "LATE_S", "LOCKED_S", "Exchange"]

COMPRESSION: Final = "aip_hermes.compression"
"""Where the scope of a request says that its turn begins with a compression: `in-place` or `rotating`."""

LATE_S: Final = 10.0
"""How long what comes late is held back, in seconds."""

LOCKED_S: Final = 16.0
"""How long somebody else holds the store's write lock, in seconds: as long as Hermes itself waits for it."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """app: what would answer. failed: what answers for a failure. clock: for what is late. store: the file behind the
    application; None where it has none."""

    app: ASGIApp
    failed: Callable[[Exception], ASGIApp]
    scope: Scope
    receive: Receive
    send: Send
    clock: Clock
    store: Path | None = None

    async def carried_out(self) -> list[Message]:
        """Let the request be carried out to its end and return the answer instead of sending it."""
        kept: list[Message] = []

        async def keep(message: Message) -> None:
            kept.append(message)

        await self.app(self.scope, self.receive, keep)
        return kept

    async def answered_through(self, change: Callable[[Message], Message | None]) -> None:
        """Answer, with each part of the answer changed on its way; None: it is left out."""

        async def send(message: Message) -> None:
            changed = change(message)
            if changed is not None:
                await self.send(changed)

        await self.app(self.scope, self.receive, send)

    async def request_body(self) -> bytes:
        """Take the whole body; the application can't read it any more."""
        body = bytearray()
        while True:
            message = await self.receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(body)

    def hang_up(self) -> None:
        """End the connection now. Nothing in ASGI asks for that, so the server's own transport is taken, where there
        is a server.
        """
        if (transport := self._transport) is not None:
            transport.abort()

    async def end(self) -> None:
        """Return once the connection is over. Raises ConnectionResetError to a caller in this process."""
        if self._transport is None:
            raise ConnectionResetError("the endpoint ended the connection")
        await self.until_left()

    async def until_left(self) -> None:
        """Wait for the end of the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    @asynccontextmanager
    async def store_locked(self) -> AsyncGenerator[None, None]:
        """Hold the write lock of the store, as another process does, until the block ends or LOCKED_S is over."""
        if self.store is None:
            yield
            return
        held = sqlite3.connect(f"file:{self.store}?mode=rw", uri=True, isolation_level=None, check_same_thread=False)
        with closing(held):
            await asyncio.to_thread(held.execute, "BEGIN IMMEDIATE")
            opening = asyncio.create_task(self._open_after(held))
            try:
                yield
            finally:
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)

    async def _open_after(self, held: sqlite3.Connection) -> None:
        await self.clock.sleep(LOCKED_S)
        held.execute("ROLLBACK")

    @property
    def _transport(self) -> Any:
        return getattr(getattr(self.send, "__self__", None), "transport", None)
