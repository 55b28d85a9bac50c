"""What really goes over the wire: connections, limits, deadlines, proxies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import httpx
import pytest

from aip_hermes.contract import load_capability_file
from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.client import HermesClient
from aip_hermes.hermes.exchange import ExchangeFailed, RequestSpec
from tests.support.hermes_calls import FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import KEY, Reply, StubEndpoint, reply_json, row_of
from tests.support.skipping_loop import skipping

_MAX_JSON_BYTES = load_capability_file().connector.max_json_response_bytes


def _request(method: str = "GET", target: str = "/health", *, timeout_s: float = 5.0) -> RequestSpec:
    return RequestSpec(
        method=method, target=target, headers=(), body=None, timeout_s=timeout_s, mutation=method != "GET"
    )


@pytest.mark.requirement("hermes:transport:ids-are-encoded")
@pytest.mark.parametrize(
    ("session_id", "segment"),
    [
        ("20260406_164014_74b2d1", "20260406_164014_74b2d1"),
        ("api_1796069436_fa077b4a", "api_1796069436_fa077b4a"),
        ("Case:7;v=2", "Case%3A7%3Bv%3D2"),
        ("a.b-c_d~e", "a.b-c_d~e"),
        ("12345", "12345"),
        ("x" * 256, "x" * 256),
        ("sp ace", "sp%20ace"),
        ("a/b", "a%2Fb"),
        ("a/../b", "a%2F..%2Fb"),
        ("%2e%2e", "%252e%252e"),
        ("a?b#c", "a%3Fb%23c"),
        ("票据-é", "%E7%A5%A8%E6%8D%AE-%C3%A9"),
        ("tab\there", "tab%09here"),
        ("...", "..."),
        ("+", "%2B"),
    ],
)
async def test_an_id_reaches_the_endpoint_as_one_encoded_segment(session_id: str, segment: str) -> None:
    async with StubEndpoint([row_of(session_id)]) as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        for name in ("session_get", "session_messages"):
            outcome = await attempt(handler_of(connector, name), call_of(name, {"session_id": session_id}))
            assert isinstance(outcome, Answer)
    assert [request.target for request in stub.arrived] == [
        f"/api/sessions/{segment}",
        f"/api/sessions/{segment}/messages",
    ]


@pytest.mark.requirement("hermes:transport:fresh-connections-for-mutations")
async def test_a_mutation_never_travels_on_a_connection_that_a_read_left_behind() -> None:
    async with StubEndpoint([row_of("s1")]) as stub, HermesClient(endpoint_of(stub.base_url)) as client:
        await client.send(_request())
        await client.send(_request())
        await client.send(_request("PATCH", "/api/sessions/none"))
        await client.send(_request("PATCH", "/api/sessions/none"))
    assert [request.connection for request in stub.arrived] == [1, 1, 2, 2]


@pytest.mark.requirement("hermes:transport:fresh-connections-for-mutations")
async def test_a_connection_idle_for_a_second_carries_reads_only() -> None:
    async with StubEndpoint([row_of("s1")]) as stub, HermesClient(endpoint_of(stub.base_url)) as client:
        for request in (_request(), _request("PATCH", "/api/sessions/none")):
            await client.send(request)
        await asyncio.to_thread(threading.Event().wait, 1.05)  # the pool's own clock can't be handed in
        for request in (_request(), _request("PATCH", "/api/sessions/none")):
            await client.send(request)
    assert [request.connection for request in stub.arrived] == [1, 2, 1, 3]


@pytest.mark.requirement("hermes:transport:bounded-answers")
@pytest.mark.parametrize("announced", [True, False])
async def test_an_answer_over_the_limit_is_refused_by_its_announced_or_its_real_size(announced: bool) -> None:
    async with StubEndpoint() as stub:
        big = Reply(body=b"[" + b"1," * 50_000, declared_length=_MAX_JSON_BYTES + 1 if announced else None)
        stub.on("GET", "/health", big)
        client = HermesClient(endpoint_of(stub.base_url), max_json_bytes=None if announced else 4096)
        async with client:
            with pytest.raises(ExchangeFailed) as caught:
                await client.send(_request())
    assert (caught.value.reason, caught.value.sent, caught.value.status) == ("too_large", True, 200)


@pytest.mark.requirement("hermes:transport:bounded-answers")
async def test_an_answer_of_unannounced_size_is_read_up_to_the_limit_only() -> None:
    read = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += 100
            yield b" " * 100

    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=pieces()))
    async with HermesClient(endpoint_of(), transport=transport, max_json_bytes=4096) as client:
        with pytest.raises(ExchangeFailed) as caught:
            await client.send(_request())
    assert (caught.value.reason, caught.value.sent, caught.value.status) == ("too_large", True, 200)
    assert read == 4100


@pytest.mark.requirement("hermes:transport:bounded-answers")
async def test_a_transcript_over_the_limit_says_what_to_do_and_is_not_asked_again() -> None:
    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("GET", "/messages", Reply(body=b"{}", declared_length=_MAX_JSON_BYTES + 1))
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, "session_messages"), call_of("session_messages"))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == ("connector.hermes_agent.invalid_response", False)
    assert outcome.details["reason"] == "too_large"
    assert len(stub.arrived) == 1


@pytest.mark.requirement("hermes:transport:no-redirects")
async def test_a_redirect_is_not_followed() -> None:
    async with StubEndpoint() as stub, HermesClient(endpoint_of(stub.base_url)) as client:
        stub.on("GET", "/health", Reply(status=302, headers={"location": "/v1/models"}))
        assert (await client.send(_request())).status == 302
    assert [request.target for request in stub.arrived] == ["/health"]


@pytest.mark.requirement("hermes:transport:loopback-meets-no-proxy")
async def test_loopback_traffic_meets_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with StubEndpoint() as stub, HermesClient(endpoint_of(stub.base_url)) as client:
        assert (await client.send(_request())).status == 200


@pytest.mark.requirement("hermes:transport:loopback-meets-no-proxy")
async def test_a_proxy_of_the_environment_is_used_for_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubEndpoint() as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.base_url)
        proxy.on("GET", "/health", reply_json({"status": "ok"}))
        async with HermesClient(endpoint_of("http://hermes.example/")) as client:
            assert (await client.send(_request())).status == 200
    assert proxy.arrived[0].target == "http://hermes.example/health"


@pytest.mark.requirement("hermes:transport:loopback-meets-no-proxy")
@pytest.mark.parametrize("excepted", ["hermes.example", "hermes.example:8642", ".example", "*"])
async def test_a_host_that_the_environment_excepts_meets_no_proxy(
    excepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StubEndpoint() as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.base_url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, excepted)
        async with HermesClient(endpoint_of("http://hermes.example:8642/")) as client:
            with pytest.raises(ExchangeFailed) as refused:
                await client.send(_request())
    assert not refused.value.sent
    assert proxy.arrived == []


@pytest.mark.requirement("hermes:transport:no-cookies")
async def test_no_cookie_is_sent_back() -> None:
    cookie = {"set-cookie": "caller=first; Path=/", "content-type": "application/json"}
    async with StubEndpoint() as stub, HermesClient(endpoint_of(stub.base_url)) as client:
        stub.on("GET", "/health", Reply(status=200, body=b"{}", headers=cookie))
        for _ in range(2):
            assert (await client.send(_request())).status == 200
    assert [request.headers.get("cookie") for request in stub.arrived] == [None, None]


@pytest.mark.requirement("hermes:send:deadline")
@skipping
async def test_a_deadline_before_the_answer_leaves_a_mutation_uncertain() -> None:
    clock = FakeClock()
    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("POST", "/api/sessions", Reply(behaviour="stall"))
        async with connector_of(endpoint_of(stub.base_url), clock=clock) as connector:
            call = call_of("session_create", deadline_ms=clock.now_ms() + 3_000)
            outcome = await attempt(handler_of(connector, "session_create"), call)
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == ("connector.hermes_agent.deadline_exceeded", True)
    assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:send:deadline")
@pytest.mark.parametrize("name", ["session_create", "session_get", "session_patch"])
async def test_a_deadline_that_has_passed_sends_nothing(name: str) -> None:
    clock = FakeClock()
    async with StubEndpoint([row_of("s1")]) as stub, connector_of(endpoint_of(stub.base_url), clock=clock) as connector:
        outcome = await attempt(handler_of(connector, name), call_of(name, deadline_ms=clock.now_ms()))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == ("connector.hermes_agent.deadline_exceeded", False)
    assert stub.arrived == []


@pytest.mark.requirement("hermes:headers:trusted-context")
async def test_a_deadline_that_was_set_after_prepare_still_travels() -> None:
    clock = FakeClock()
    async with StubEndpoint() as stub, connector_of(endpoint_of(stub.base_url), clock=clock) as connector:
        handler = handler_of(connector, "session_create")
        prepared = await handler.prepare(call_of("session_create"), None)
        await handler.send(call_of("session_create", deadline_ms=clock.now_ms() + 60_000), prepared)
    assert stub.arrived[0].headers["x-aip-deadline-unix-ms"] == str(clock.now_ms() + 60_000)


@pytest.mark.requirement("hermes:confirm:two-seconds")
@skipping
async def test_a_read_back_that_hangs_keeps_the_outcome_and_says_so() -> None:
    async with (
        StubEndpoint([row_of("s1")]) as stub,
        connector_of(endpoint_of(stub.base_url), confirm_s=2) as connector,
    ):
        handler, call = handler_of(connector, "session_chat"), call_of("session_chat")
        prepared = await handler.prepare(call, None)
        sent = await handler.send(call, prepared)
        stub.on("GET", "/s1", Reply(behaviour="stall"))
        outcome = await handler.confirm(call, prepared, sent)
    assert isinstance(outcome, Answer)
    assert outcome.text == "Echo"
    assert outcome.output["_aip"]["turn"]["persisted"] == "unknown"
    assert outcome.output["_aip"]["incomplete"]


@pytest.mark.requirement("hermes:health:every-endpoint")
async def test_health_asks_without_a_credential_and_shows_no_address() -> None:
    async with StubEndpoint() as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        (alive, sentence) = (await connector.health())[endpoint_of().id]
        assert alive
        stub.on("GET", "/health", Reply(status=500))
        (alive, trouble) = (await connector.health())[endpoint_of().id]
        assert not alive
    assert "authorization" not in stub.arrived[0].headers
    for text in (sentence, trouble):
        assert str(stub.port) not in text
        assert KEY not in text


@pytest.mark.requirement("hermes:transport:cancelled-leaves-nothing")
async def test_a_cancelled_send_closes_its_connection_and_stays_a_cancellation() -> None:
    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("POST", "/api/sessions", Reply(behaviour="stall"))
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            handler, call = handler_of(connector, "session_create"), call_of("session_create")
            sending = asyncio.create_task(handler.send(call, await handler.prepare(call, None)))
            async with asyncio.timeout(30):
                await stub.stalled.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
    assert len(stub.mutations) == 1
