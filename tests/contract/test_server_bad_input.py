"""Whatever is sent to whatever route: an error envelope or the plain answer, no fault of ours, no growth.

Every route of the application is asked, so that a new one is covered by being there.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.routing import Route
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.app import build_app
from tests.support.raw_http import Answered, RawServer
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import serving, written_settings
from tests.support.server_site import write_secret

KNOWN: Final = (
    '\n[[tokens]]\nfile = "tokens/known"\nprincipal = "human:local:known"\ntenant = "local"\nscopes = ["*"]\n'
)
BEARER: Final = b"authorization: Bearer known-0123456789\r\n"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
WITH_BODY: Final = ("/aip/v1/messages", "/aip/v1/actions", "/cancel", "/reconcile")
"""Routes, or ends of them, that read a body. The others that take a POST say first that there is no such thing."""

BODIES: Final = {
    "nothing": b"",
    "a piece": b'{"aip_version": "1.0"',
    "null": b"null",
    "a list": b"[]",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep and whole": b"[" * 5_000 + b"]" * 5_000,
    "no UTF-8": b'{"reason":"\xff"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"reason":"a"}'.encode("utf-16"),
    "a member twice": b'{"reason":"a","reason":"b"}',
    "a huge integer": b'{"reason":' + b"9" * 100_000 + b"}",
    "a huge float": b'{"reason":1e99999}',
    "no number": b'{"reason":NaN}',
    "a lone surrogate": b'{"reason":"\\ud800"}',
    "zeros": bytes(1_000),
    "an unknown member": b'{"unknown":1}',
    "many members": json.dumps({f"m{number}": number for number in range(20_000)}).encode(),
}
SEGMENTS: Final = (
    "%00", "%ff", "%ed%a0%80", "..", "%2e%2e", "a%2fb", "%0a%0d", "%1b[31m", "{x}", "a" * 8_000, "act_" + "9" * 300,
    "%F0%9F%98%80",
)  # fmt: skip
QUERIES: Final = (
    "limit=99999999999999999999", "limit=-1", "limit=1e3", "cursor=%ff", "cursor=evt_cursor_999999999999999999",
    "cursor=offset:999999999999999", "cursor=aev_cursor_999999999999999999_999999999999999999", "cursor=%1b[31m",
    "wait_ms=99999999", "from=0000-00-00T00:00:00Z", "from=9999-12-31T23:59:59Z&to=0001-01-01T00:00:00Z", "kinds=,,",
    "follow=yes", "tenant_id=x", "principal_id=%00", "a=%zz", "&" * 5_000, "a" * 20_000, "state=nonsense",
    "text=" + "a" * 3_000,
)  # fmt: skip
NO_REQUESTS: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /aip/v1/actions/\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: abc\r\n\r\n",
    b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
    b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
    b"POST /aip/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
)


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as entries:
        yield entries


@pytest.fixture
async def server(tmp_path: Path, logged: list[Any]) -> AsyncIterator[RawServer]:
    write_secret(tmp_path / "tokens" / "known", "known-0123456789")
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        endpoint.gate.set()
        settings = written_settings(tmp_path, endpoint_url=endpoint.url, extra=KNOWN)
        routes = [route for route in build_app(settings).routes if isinstance(route, Route)]
        client, _ = await stack.enter_async_context(serving(settings))
        table = [(method, route.path) for route in routes for method in sorted((route.methods or set()) - {"HEAD"})]
        yield RawServer(address=(client.base_url.host, client.base_url.port or 0), table=tuple(table))


def filled(path: str, segment: str = "act_1") -> bytes:
    return re.sub(r"\{\w+\}", lambda _: segment, path).encode()


def fault(answered: Answered, *, at: str, plain: bool) -> str | None:
    """Say what is wrong with an answer. plain: it may be one without an error."""
    told = f"{at}: {answered.status} {answered.body[:80]!r}"
    if answered.status >= 500 and answered.code != "action.result_not_ready":
        return told
    if answered.code is not None:
        # The catalogue has an error shape of its own.
        whole = "/capabilities" in at or wire.envelope_violations(json.loads(answered.body)) == []
        return None if whole and answered.status >= 400 else told
    return None if plain and answered.status == 200 else told


@pytest.mark.requirement("server:bad-input:enveloped")
async def test_a_bad_body_is_refused_by_every_route_that_reads_one(server: RawServer, logged: list[Any]) -> None:
    faults = []
    for method, path in server.table:
        reads = method == "POST" and path.endswith(WITH_BODY)
        # Who reads no body closes on one that is still coming, and then not every answer arrives.
        for name, body in ((name, body) for name, body in BODIES.items() if reads or len(body) < 1_000):
            answered = await server.ask(method, filled(path), BEARER, body=body)
            empty = name == "nothing" and path.endswith(WITH_BODY[2:])
            plain = method == "GET" or empty
            faults.append(fault(answered, at=f"{method} {path} with {name}", plain=plain))
    assert [one for one in faults if one is not None] == []
    assert [entry for entry in logged if entry["event"] == "server.failed"] == []


@pytest.mark.requirement("server:bad-input:enveloped")
@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_refused_by_every_route_that_reads_one(
    server: RawServer, announced: bool
) -> None:
    body = b" " * (1_048_576 + 1)
    for method, path in server.table:
        if method == "POST" and path.endswith(WITH_BODY):
            answered = await server.ask(method, filled(path), BEARER, body=body, announced=announced)
            assert (path, answered.status, answered.code) == (path, 413, "envelope.too_large")


@pytest.mark.requirement("server:bad-input:enveloped")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx", "\x80"])
async def test_a_body_of_another_media_type_is_refused_by_every_route_that_reads_one(
    server: RawServer, kind: str
) -> None:
    for method, path in server.table:
        if method == "POST" and path.endswith(WITH_BODY):
            answered = await server.ask(method, filled(path), BEARER, body=b'{"reason": null}', kind=kind)
            assert (path, answered.status, answered.code) == (path, 415, "envelope.content_type.unsupported")


@pytest.mark.requirement("server:bad-input:enveloped")
async def test_a_method_that_a_route_does_not_take_is_refused_with_those_that_it_takes(server: RawServer) -> None:
    for path in {path for _, path in server.table}:
        taken = {method for method, other in server.table if other == path}
        # A template may stand before a wider one: `…:close` is also the id of a session.
        wider = {method for method, other in server.table if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", other), path)}
        for method in sorted(set(METHODS) - taken - wider):
            answered = await server.ask(method, filled(path), BEARER)
            assert (path, method, answered.status) == (path, method, 405)
            assert answered.code == "route.method_not_allowed"
            assert taken <= set(answered.headers["allow"].split(", "))


@pytest.mark.requirement("server:bad-input:enveloped")
async def test_odd_paths_and_queries_are_refused_or_answered(server: RawServer, logged: list[Any]) -> None:
    faults = []
    for method, path in server.table:
        targets = [filled(path, segment) for segment in SEGMENTS] if "{" in path else []
        targets += [filled(path) + b"?" + query.encode() for query in QUERIES]
        for target in targets:
            answered = await server.ask(method, target, BEARER)
            plain = method == "GET" or path.endswith(WITH_BODY[2:])
            faults.append(fault(answered, at=f"{method} {path} as {target[:60]!r}", plain=plain))
    assert [one for one in faults if one is not None] == []
    assert [entry for entry in logged if entry["event"] == "server.failed"] == []


@pytest.mark.requirement("server:bad-input:enveloped")
@pytest.mark.parametrize("sent", NO_REQUESTS)
async def test_bytes_that_are_no_request_get_an_envelope_too(server: RawServer, sent: bytes) -> None:
    answered = await server.send(sent)
    assert (answered.status, answered.code) == (400, "envelope.decode.invalid")
    assert wire.envelope_violations(json.loads(answered.body)) == []


@pytest.mark.requirement("server:bad-input:unknown-callers")
async def test_who_is_not_known_has_no_long_text_decoded(server: RawServer) -> None:
    for size, code in ((60_000, "envelope.decode.invalid"), (70_000, "auth.native_http_unauthorized")):
        answered = await server.ask("POST", b"/aip/v1/messages", b"", body=b"[" * size)
        assert answered.code == code


def resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.mark.requirement("server:bad-input:no-growth")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what a process has in memory is read from /proc")
async def test_refusing_keeps_nothing(server: RawServer) -> None:
    large = [b"[" * 500_000, json.dumps([{}] * 60_000).encode(), b'["' + b"\\u0041" * 60_000, b" " * 1_100_000]
    posted = [path for method, path in server.table if method == "POST" and path.endswith(WITH_BODY)]

    async def refused() -> None:
        for path in posted:
            for body in large:
                answered = await server.ask("POST", filled(path), BEARER, body=body)
                assert answered.status in (400, 413)

    await refused()
    before = resident_mb()
    for _ in range(4):
        await refused()
    assert resident_mb() - before < 12
