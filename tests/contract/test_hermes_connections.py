"""The connections that are kept between two requests, against an endpoint that does with them what it likes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.exchange import ExchangeFailed, RequestSpec
from tests.support.hermes_calls import endpoint_of
from tests.support.skipping_loop import skipping

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
_HINTS_AND_CHUNKS = (
    b"HTTP/1.1 103 Early Hints\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
)


def _request(target: str = "/health") -> RequestSpec:
    return RequestSpec(method="GET", target=target, headers=(), body=None, timeout_s=30.0, mutation=False)


class _Endpoint:
    """Answers each request with the same bytes. lines: (number of the connection, request line) of each. ended: whether
    the client closed a connection."""

    def __init__(self, answer: bytes) -> None:
        self.lines: list[tuple[int, str]] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.ended = asyncio.Event()
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        number = len(self.writers)
        while head := (await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""):
            self.lines.append((number, head.partition(b"\r\n")[0].decode("ascii")))
            writer.write(self._answer)


@asynccontextmanager
async def _served(answer: bytes) -> AsyncIterator[tuple[_Endpoint, HermesClient]]:
    endpoint = _Endpoint(answer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await endpoint.serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            endpoint.ended.set()
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HermesClient(endpoint_of(f"http://127.0.0.1:{port}/")) as client:
            yield endpoint, client
        for writer in endpoint.writers:
            writer.close()


@pytest.mark.requirement("hermes:transport:quiet-connections-only")
@pytest.mark.parametrize("closes", [False, True])
async def test_a_kept_connection_that_said_something_or_ended_is_left(closes: bool) -> None:
    async with asyncio.timeout(30), _served(_ANSWER) as (endpoint, client):
        await client.send(_request("/one"))
        await client.send(_request("/two"))
        if closes:
            endpoint.writers[0].close()
            await endpoint.writers[0].wait_closed()
        else:
            endpoint.writers[0].write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!")
            await endpoint.writers[0].drain()
        answer = await client.send(_request("/three"))
    assert answer.body == b"{}"
    assert endpoint.lines == [(1, "GET /one HTTP/1.1"), (1, "GET /two HTTP/1.1"), (2, "GET /three HTTP/1.1")]


@pytest.mark.requirement("hermes:transport:quiet-connections-only")
@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (_HINTS_AND_CHUNKS, [1, 1]),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}", [1, 2]),
        (_ANSWER + b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!", [1, 2]),
    ],
)
async def test_what_an_answer_says_about_its_connection_counts(answer: bytes, connections: list[int]) -> None:
    async with asyncio.timeout(30), _served(answer) as (endpoint, client):
        assert [(await client.send(_request())).body for _ in connections] == [b"{}"] * len(connections)
    assert [number for number, _ in endpoint.lines] == connections


@pytest.mark.requirement("hermes:errors:name-the-cause")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nobody_at_any_address_of_a_host_is_a_refusal_that_sent_nothing(host: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        async with HermesClient(endpoint_of(f"http://{host}:{free.getsockname()[1]}/")) as client:
            with pytest.raises(ExchangeFailed) as raised:
                await client.send(_request())
    assert (raised.value.reason, raised.value.sent) == ("refused", False)


@pytest.mark.requirement("hermes:transport:quiet-connections-only")
async def test_what_is_no_http_breaks_the_exchange_and_its_connection() -> None:
    async with asyncio.timeout(30), _served(b"220 mail.example ESMTP\r\n\r\n") as (endpoint, client):
        for _ in range(2):
            with pytest.raises(ExchangeFailed) as raised:
                await client.send(_request())
            assert (raised.value.reason, raised.value.sent) == ("broken", True)
    assert [number for number, _ in endpoint.lines] == [1, 2]


@pytest.mark.requirement("hermes:transport:early-answer")
async def test_an_answer_before_the_request_was_read_is_taken_and_its_connection_left() -> None:
    taken: list[asyncio.StreamWriter] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}")

    # More than the buffers of both sides hold.
    large = RequestSpec(
        method="POST", target="/x", headers=(), body=bytes(32 * 1024 * 1024), timeout_s=30.0, mutation=True
    )
    async with asyncio.timeout(60), await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HermesClient(endpoint_of(f"http://127.0.0.1:{port}/")) as client:
            for _ in range(2):
                assert (await client.send(large)).status == 429
        for writer in taken:
            writer.transport.abort()
    assert len(taken) == 2


@pytest.mark.requirement("hermes:transport:idle-ends")
@skipping
async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with asyncio.timeout(30), _served(_ANSWER) as (endpoint, client):
        await client.send(_request("/one"))
        await endpoint.ended.wait()
        await client.send(_request("/two"))
    assert [number for number, _ in endpoint.lines] == [1, 2]


class _HesitantLoop(asyncio.SelectorEventLoop):
    """Hands a connection out when the other side has greeted."""

    greeted: asyncio.Event

    async def create_connection(self, *args: Any, **members: Any) -> Any:
        made = await super().create_connection(*args, **members)
        await self.greeted.wait()
        return made


@pytest.mark.requirement("hermes:transport:quiet-connections-only", "hermes:answer:certain-is-proven")
@pytest.mark.parametrize(
    "greeting", [_ANSWER, b"220 mail.example ESMTP\r\n", b""], ids=["an answer", "a banner", "the end"]
)
def test_who_answers_before_being_asked_is_asked_nothing(greeting: bytes) -> None:
    async def work() -> None:
        _HesitantLoop.greeted = asyncio.Event()
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(greeting)
            if not greeting:
                writer.write_eof()
            _HesitantLoop.greeted.set()
            said = b""
            with suppress(ConnectionError):  # which the end of a connection with unread bytes is
                said = await reader.read()
            heard.set_result(said)
            writer.close()

        create = RequestSpec(method="POST", target="/x", headers=(), body=b"{}", timeout_s=30.0, mutation=True)
        async with asyncio.timeout(30), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with HermesClient(endpoint_of(f"http://127.0.0.1:{port}/")) as client:
                with pytest.raises(ExchangeFailed) as raised:
                    await client.send(create)
                assert await heard == b""
        assert (raised.value.reason, raised.value.sent) == ("broken", False)

    with asyncio.Runner(loop_factory=_HesitantLoop) as runner:
        runner.run(work())
