"""Following through silence: how long the client waits for a sign of life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from aip_hermes.client import (
    Patience,
)
from tests.support.client_streams import (
    NoWaiting,
    chunk,
    connected,
    followed,
    name_of,
    page,
    terminal,
)
from tests.support.skipping_loop import skipping


@asynccontextmanager
async def _streaming(answer: Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve in this loop: `answer` gets the head of a request; then the connection lasts until the client leaves."""
    handling = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.append(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        await answer(head, writer)
        await reader.read()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*filter(None, handling))


@pytest.mark.requirement("client:follow:idle")
@skipping
async def test_a_silent_stream_is_left() -> None:
    heads = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(terminal("c1") if b"cursor" in head else page("c1", chunk(0)))

    async with _streaming(answer) as url, connected(url, clock=NoWaiting()) as connection:
        frames = await followed(connection, patience=Patience(idle_s=5))
    assert [name_of(frame) for frame in frames] == ["chunk 0", "position c1", "terminal c1"]
    assert len(heads) == 2


@pytest.mark.requirement("client:follow:idle")
@skipping
async def test_a_comment_is_a_sign_of_life() -> None:
    heads = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        for _ in range(4):
            writer.write(b": keep-alive\n\n")
            await asyncio.sleep(3)
        writer.write(terminal("c1"))

    async with _streaming(answer) as url, connected(url) as connection:
        frames = await followed(connection, patience=Patience(idle_s=5))
    assert [frame.kind for frame in frames] == ["terminal"]
    assert len(heads) == 1
