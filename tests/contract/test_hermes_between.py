"""What stands between us and an endpoint: proxies of the environment, and answers that somebody compressed."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.exchange import ExchangeFailed, Received, RequestSpec
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import Reply, StubEndpoint

_MIB = 1024 * 1024
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def _name_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in _VARIABLES:
        monkeypatch.setenv(name, url)
        monkeypatch.setenv(name.lower(), url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def _proxy(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield a port where each first request gets `answer` and the connection its end, and what was heard there."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


@pytest.mark.requirement("hermes:transport:proxy-certain")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "proxy"),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "proxy"),
        (b"HTTP/1.1 200 Connection established\r\n\r\n", "tls"),
        (b"", "broken"),
    ],
)
async def test_a_tunnel_that_does_not_open_sent_nothing(
    answer: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(30), _proxy(answer) as (port, heard):
        _name_proxy(monkeypatch, f"http://127.0.0.1:{port}")
        async with connector_of(endpoint_of("https://hermes.example/")) as connector:
            outcome = await attempt(handler_of(connector, "session_create"), call_of("session_create"))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.details["reason"], outcome.details["sent"]) == (reason, False)
    assert (outcome.uncertain, outcome.retryable) == (False, True)
    assert [each.split(b" ")[0] for each in heard] == [b"CONNECT"]


@pytest.mark.requirement("hermes:transport:proxy-certain")
@pytest.mark.parametrize(
    "url",
    ["socks5://127.0.0.1:9", "socks4://127.0.0.1:9", "ftp://127.0.0.1:9", "http://[::1", "http://127.0.0.1:99999"],
)
async def test_a_proxy_that_cannot_be_used_stops_what_goes_there_and_nothing_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _name_proxy(monkeypatch, url)
    async with StubEndpoint() as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        assert (await connector.health())[endpoint_of().id][0]
    async with connector_of(endpoint_of("http://hermes.example/")) as connector:
        outcome = await attempt(handler_of(connector, "session_create"), call_of("session_create"))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.details["reason"], outcome.details["sent"], outcome.uncertain) == ("proxy", False, False)


@pytest.mark.requirement("hermes:errors:name-the-cause")
async def test_a_punycode_name_that_stands_for_none_is_a_name_like_any_other() -> None:
    with pytest.raises(ExchangeFailed) as raised:
        await _asked("http://xn--a.invalid/")
    assert raised.value.reason in ("unresolved", "unreachable")
    assert not raised.value.sent


async def _asked(base_url: str, *, max_json_bytes: int | None = None) -> Received:
    request = RequestSpec(method="GET", target="/health", headers=(), body=None, timeout_s=30.0, mutation=False)
    async with HermesClient(endpoint_of(base_url), max_json_bytes=max_json_bytes) as client:
        return await client.send(request)


@pytest.mark.requirement("hermes:transport:packed-answers")
@pytest.mark.parametrize(
    ("encoding", "body", "outcome"),
    [
        ("gzip", gzip.compress(b'{"a": 1}'), b'{"a": 1}'),
        ("X-GZIP", gzip.compress(b'{"a": 1}'), b'{"a": 1}'),
        ("deflate", zlib.compress(b'{"a": 1}'), b'{"a": 1}'),
        ("gzip", gzip.compress(b'{"a": 1}')[:-9], "broken"),
        ("gzip", b'{"a": 1}', "broken"),
        ("gzip, gzip", b"\x1f\x8b", b"\x1f\x8b"),
        ("br", b"\x1f\x8b", b"\x1f\x8b"),
    ],
)
async def test_a_compressed_answer_is_unpacked_where_it_is_whole(
    encoding: str, body: bytes, outcome: bytes | str
) -> None:
    async with StubEndpoint() as stub:
        stub.on("GET", "/health", Reply(body=body, headers={"content-encoding": encoding}))
        try:
            found: bytes | str = (await _asked(stub.base_url)).body
        except ExchangeFailed as failed:
            found = failed.reason
    assert found == outcome


@pytest.mark.requirement("hermes:transport:packed-answers", "hermes:transport:bounded-answers")
async def test_a_few_bytes_that_stand_for_many_are_too_large_without_being_held() -> None:
    packing = zlib.compressobj(wbits=31)
    packed = b"".join(packing.compress(bytes(_MIB)) for _ in range(200)) + packing.flush()
    assert len(packed) < _MIB
    async with StubEndpoint() as stub:
        stub.on("GET", "/health", Reply(body=packed, headers={"content-encoding": "gzip"}))
        tracemalloc.start()
        try:
            with pytest.raises(ExchangeFailed) as raised:
                await _asked(stub.base_url, max_json_bytes=4 * _MIB)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert raised.value.reason == "too_large"
    assert peak < 40 * _MIB
