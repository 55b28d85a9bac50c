"""Connections whose client is slow, leaves a door half open, or never reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Final

import pytest
from starlette.types import Receive, Scope, Send

from aip_hermes.server.listening import listen, serve_asgi
from aip_hermes.server.patience import PatientProtocol
from tests.support.skipping_loop import skipping

LARGE: Final = 64 * 2**20
"""More than the buffers of a connection hold."""

PATIENCE_S: Final = 5
"""Of a loop whose time jumps: nothing here depends on how fast the machine is."""

REQUEST: Final = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"


class Application:
    """Reads the body, then answers with its length, or with a large body; `ended` when it is through."""

    def __init__(self, *, large: bool = False) -> None:
        self.gate = asyncio.Event()
        self.ended = asyncio.Event()
        self._large = large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.ended.set()
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await self.gate.wait()
        content = b"x" * LARGE if self._large else json.dumps(size).encode()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", str(len(content)).encode())],
            }
        )
        for start in range(0, len(content), 2**20):
            piece = content[start : start + 2**20]
            await send({"type": "http.response.body", "body": piece, "more_body": start + 2**20 < len(content)})
        self.ended.set()


@asynccontextmanager
async def served(application: Application) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve, and yield one connection."""
    stop, ready = asyncio.Event(), asyncio.Event()
    with closing(listen("127.0.0.1", 0, advice="")) as listener:
        task = asyncio.create_task(serve_asgi(application, listener, stop=stop, on_ready=lambda _url: ready.set()))
        async with asyncio.timeout(60):
            await ready.wait()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                yield reader, writer
            finally:
                writer.transport.abort()
                application.gate.set()
                stop.set()
                await task


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "patience_s", PATIENCE_S)


@pytest.mark.requirement("server:connection:patience")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbo",
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nbo\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "an endless body"],
)
@skipping
async def test_half_a_request_is_not_waited_for_for_ever(sent: bytes) -> None:
    application = Application()
    application.gate.set()
    async with served(application) as (reader, writer):
        writer.write(sent)
        assert await _until_the_end(reader) == b""


@pytest.mark.requirement("server:connection:patience")
@pytest.mark.usefixtures("impatient")
@skipping
async def test_bytes_that_drip_in_do_not_buy_time() -> None:
    application = Application()
    async with served(application) as (reader, writer):
        ending = asyncio.create_task(_until_the_end(reader))
        while not ending.done():
            writer.write(b"x")
            await asyncio.wait([ending], timeout=PATIENCE_S / 5)
        assert ending.result() == b""


@pytest.mark.requirement("server:connection:patience")
@pytest.mark.usefixtures("impatient")
@skipping
async def test_half_a_request_behind_a_whole_one_is_not_waited_for_either() -> None:
    application = Application()
    application.gate.set()
    async with served(application) as (reader, writer):
        writer.write(REQUEST + REQUEST[:-2])
        heard = await _until_the_end(reader)
    assert heard.count(b"HTTP/1.1 200 OK") == 1
    assert application.ended.is_set()


@pytest.mark.requirement("server:connection:patience")
@pytest.mark.usefixtures("impatient")
@skipping
async def test_an_answer_that_nobody_takes_is_given_up() -> None:
    application = Application(large=True)
    application.gate.set()
    async with served(application) as (_reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST)
        await application.ended.wait()


@pytest.mark.requirement("server:connection:patience")
@pytest.mark.usefixtures("impatient")
@skipping
async def test_the_time_of_an_operation_is_not_the_clients() -> None:
    application = Application()
    async with served(application) as (reader, writer):
        writer.write(REQUEST)
        heard = asyncio.create_task(reader.readuntil(b"\r\n\r\n4"))
        await asyncio.wait([heard], timeout=PATIENCE_S * 3)
        assert not heard.done()
        application.gate.set()
        assert (await heard).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.requirement("server:connection:half-closed")
@skipping
async def test_a_client_that_closed_its_sending_half_hears_the_answer() -> None:
    application = Application()
    async with served(application) as (reader, writer):
        writer.write(REQUEST)
        writer.write_eof()
        heard = asyncio.create_task(_until_the_end(reader))
        await asyncio.wait([heard], timeout=PATIENCE_S)
        application.gate.set()
        assert (await heard).endswith(b"\r\n\r\n4")


@pytest.mark.requirement("server:connection:half-closed")
@skipping
async def test_half_a_request_that_ends_is_closed_at_once() -> None:
    application = Application()
    async with served(application) as (reader, writer):
        writer.write(REQUEST[:-2])
        writer.write_eof()
        assert await _until_the_end(reader) == b""
        await application.ended.wait()


async def _until_the_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
