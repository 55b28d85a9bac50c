"""How a connection comes about: hosts with several addresses, and callers that stop waiting at any moment."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.connections import DirectConnections
from aip_hermes.hermes.exchange import ExchangeFailed, RequestSpec
from tests.support.hermes_calls import endpoint_of
from tests.support.own_certificate import server_context

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
_NOBODY = "127.0.0.3"
_HOST = "several.example"
_STEPS = 40
"""Turns of the event loop, more than a request with its connection takes."""


class _KnowingLoop(asyncio.SelectorEventLoop):
    """Knows one host by itself. addresses: of that host."""

    addresses: tuple[str, ...] = ()

    async def getaddrinfo(self, host: Any, port: Any, **members: Any) -> Any:
        if host != _HOST:
            return await super().getaddrinfo(host, port, **members)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (each, port, 0, 0))
            if ":" in each
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in self.addresses
        ]


@asynccontextmanager
async def _listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(_ANSWER)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1], writers
        for writer in writers:
            writer.close()


async def _asked(host: str, port: int) -> str:
    """Return the answer, or why there is none."""
    request = RequestSpec(method="POST", target="/x", headers=(), body=None, timeout_s=30.0, mutation=True)
    async with HermesClient(endpoint_of(f"http://{host}:{port}/")) as client:
        try:
            return (await client.send(request)).body.decode("ascii")
        except ExchangeFailed as failed:
            return "sent" if failed.sent else failed.reason


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.requirement("hermes:transport:any-address", "hermes:errors:name-the-cause")
@pytest.mark.parametrize(
    ("addresses", "outcome"),
    [
        (("127.0.0.1",), "{}"),
        ((_NOBODY, "127.0.0.1"), "{}"),
        ((_NOBODY, _NOBODY, "127.0.0.1", _NOBODY), "{}"),
        ((_NOBODY, "127.0.0.4"), "refused"),
        (("::1", _NOBODY), "refused"),
        (("255.255.255.255", _NOBODY), "refused"),
    ],
)
def test_the_first_address_that_answers_is_taken_and_refusals_stay_refusals(
    addresses: tuple[str, ...], outcome: str
) -> None:
    class Loop(_KnowingLoop):
        pass

    Loop.addresses = addresses

    async def work() -> None:
        async with asyncio.timeout(30), _listening() as (port, writers):
            assert await _asked(_HOST, port) == outcome
            assert len(writers) == (outcome == "{}")

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(work())


@pytest.mark.requirement("hermes:transport:any-address")
def test_an_address_that_hesitates_does_not_hold_up_the_next_one() -> None:
    class Loop(_KnowingLoop):
        addresses = ("127.0.0.2", "127.0.0.1")

    async def work() -> None:
        with socket.socket() as hesitating:
            async with asyncio.timeout(30), _listening() as (port, _):
                # Nobody takes connections from its queue; once that is full, others wait in vain.
                hesitating.bind(("127.0.0.2", port))
                hesitating.listen(0)
                queued = [socket.socket() for _ in range(4)]
                for each in queued:
                    each.setblocking(False)
                    each.connect_ex(("127.0.0.2", port))
                assert await _asked(_HOST, port) == "{}"
                for each in queued:
                    each.close()

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(work())


@pytest.mark.requirement("hermes:transport:cancelled-leaves-nothing")
@pytest.mark.parametrize("kind", ["plain", "tls", "several addresses"])
def test_whoever_is_cancelled_at_any_step_leaves_no_connection_open(kind: str, tmp_path: Path) -> None:
    class Loop(_KnowingLoop):
        addresses = (_NOBODY, "127.0.0.1")

    presented = server_context(tmp_path) if kind == "tls" else None
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    host = _HOST if kind == "several addresses" else "127.0.0.1"

    async def ask(port: int) -> bytes:
        pool = DirectConnections(idle_s=30.0, connect_s=30.0, tls=trusting)
        try:
            scheme = "https" if kind == "tls" else "http"
            answer = await pool.handle_async_request(httpx.Request("GET", f"{scheme}://{host}:{port}/x"))
            return await answer.aread()
        finally:
            await pool.aclose()

    async def work() -> None:
        async with asyncio.timeout(60), _listening(presented) as (port, _):
            assert await ask(port) == b"{}"
            before = _open_files()
            for steps in range(_STEPS):
                asking = asyncio.create_task(ask(port))
                for _ in range(steps):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
            assert await ask(port) == b"{}"
            while _open_files() > before:  # noqa: ASYNC110  nobody tells when the kernel has closed both ends
                await asyncio.sleep(0)

    gc.disable()  # it would close what is forgotten
    try:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(work())
    finally:
        gc.enable()
