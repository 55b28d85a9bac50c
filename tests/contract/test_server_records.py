"""The routes of records: their parameters, long polling, and the kinds of which there are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.ids import ActionId
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.records import EVER, ActionsAsked, AuditAsked
from aip_hermes.server.waiting import until
from tests.support.runtime_connector import ScriptedConnector
from tests.support.server_serving import REQUESTER, action, serving, written_settings
from tests.support.server_site import Site, make_site, write_secret
from tests.support.server_streams import streaming_server

BARE = {
    "/aip/v1/actions": "action_list",
    "/aip/v1/events": "event_stream",
    "/aip/v1/receipts/approval%3Aappr_1": "receipt_chain",
    "/aip/v1/receipts/by-receipt/rcpt_1": "receipt_chain",
    "/aip/v1/audit/events": "audit_query_result",
}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = make_site(tmp_path)
    async with made.client:
        yield made


def refused(response: httpx.Response, *, status: int, code: str) -> None:
    envelope = response.json()
    assert wire.envelope_violations(envelope) == []
    assert (response.status_code, envelope["body"]["error"]["error"]["code"]) == (status, code)


@pytest.mark.requirement("server:wire:schemas", "server:auth:bearer-rules", "server:tenancy:own-tenant")
@pytest.mark.parametrize("path", BARE)
async def test_a_record_is_read_as_the_bare_body_by_a_bearer_of_the_tenant(site: Site, path: str) -> None:
    response = await site.get(path)
    assert response.status_code == 200
    assert list(response.json()) == [BARE[path]]
    assert wire.schema_violations(BARE[path], response.json()[BARE[path]]) == []
    refused(await site.get(path, who=None), status=401, code="auth.native_http_unauthorized")
    refused(await site.get(f"{path}?tenant_id=tenant-b"), status=401, code="auth.tenant_mismatch")


@pytest.mark.requirement("records:list:filters", "records:audit:query")
async def test_parameters_arrive_as_they_are_meant(site: Site) -> None:
    await site.get(
        "/aip/v1/actions?state=failed&outcome=uncertain&capability_id=cap:x&endpoint=primary&session_id=sess_1"
        "&principal_id=human:a&approval_id=appr_1&since=2030-01-01T00:00:00Z&until=2030-01-01T00:00:01%2B00:00"
        "&cursor=offset:3&limit=5000&include_results=true&include_receipts=true&colour=blue"
    )
    await site.get("/aip/v1/actions")
    await site.get(
        "/aip/v1/audit/events?action_id=act_1&session_id=sess_1&principal_id=human:a&from=2030-01-01T00:00:00Z"
        "&limit=0&export=true&include_receipts=true"
    )
    await site.get("/aip/v1/events?kinds=b,a&kind=c&cursor=evt_cursor_7&limit=2")
    listed, plain, audited, log = (fields for _, fields in site.runtime.asked)
    start = wire.parse_rfc3339("2030-01-01T00:00:00Z")
    assert listed["asked"].params(tenant="t", principal=None) == {
        "tenant": "t",
        "principal": None,
        "state": "failed",
        "dead": 0,
        "uncertain": 1,
        "unresolved": None,
        "capability": "cap:x",
        "endpoint": "cap:%:primary:%",
        "session": "sess_1",
        "approval": "appr_1",
        "since": start,
        "until": start + 1000,
    }
    assert (listed["asked"].limit, listed["asked"].cursor) == (1000, "offset:3")
    assert (listed["asked"].include_results, listed["asked"].include_receipts) == (True, True)
    assert plain["asked"] == ActionsAsked()
    expected = {"action_id": ActionId("act_1"), "since": start, "until": EVER, "limit": 1, "export": True}
    assert {name: getattr(audited["asked"], name) for name in expected} == expected
    assert isinstance(audited["asked"], AuditAsked)
    assert log == {"cursor": "evt_cursor_7", "limit": 2, "kinds": ("a", "b", "c")}


@pytest.mark.requirement("server:reads:query")
@pytest.mark.parametrize(
    "path",
    [
        "/aip/v1/actions?state=done",
        "/aip/v1/actions?outcome=perhaps",
        "/aip/v1/actions?endpoint=Not%20One",
        "/aip/v1/actions?session_id=s1",
        "/aip/v1/actions?since=yesterday",
        "/aip/v1/actions?since=2030-01-02T00:00:00Z&until=2030-01-01T00:00:00Z",
        "/aip/v1/actions?include_results=1",
        "/aip/v1/audit/events?from=2030-01-01",
        "/aip/v1/audit/events?action_id=x",
        "/aip/v1/receipts/by-receipt/x",
        "/aip/v1/events?wait_ms=30001",
        "/aip/v1/events?follow=yes",
        "/aip/v1/sessions/s1",
        "/aip/v1/transactions/by-action/x",
    ],
)
async def test_a_malformed_parameter_is_query_invalid(site: Site, path: str) -> None:
    refused(await site.get(path), status=400, code="query.invalid")
    assert site.runtime.asked == []


KINDS = [
    ("GET", "/aip/v1/sessions", {"session_list": {"sessions": []}}),
    ("GET", "/aip/v1/resources", {"resource_list": {"resources": []}}),
    ("GET", "/aip/v1/callback-deliveries", {"callback_delivery_list": {"deliveries": []}}),
    ("GET", "/aip/v1/sessions/sess_1", "session.not_found"),
    ("POST", "/aip/v1/sessions/sess_1/close", "session.not_found"),
    ("POST", "/aip/v1/sessions/sess_1:close", "session.not_found"),
    ("POST", "/aip/v1/sessions/sess_1/resume", "session.not_found"),
    ("POST", "/aip/v1/sessions/sess_1:resume", "session.not_found"),
    ("GET", "/aip/v1/transactions/txn_1", "transaction.not_found"),
    ("GET", "/aip/v1/transactions/by-plan/plan%3A1", "transaction.not_found"),
    ("GET", "/aip/v1/transactions/by-action/act_1", "transaction.not_found"),
    ("GET", "/aip/v1/resources/resource%3Ax", "resource.not_found"),
    ("GET", "/aip/v1/callback-deliveries/cb%3A1", "callback.delivery_not_found"),
]
ANY_SCOPE = '\n[[tokens]]\nfile = "tokens/every"\nprincipal = "human:a:every"\ntenant = "tenant-a"\nscopes = ["*"]\n'


@pytest.mark.requirement("records:empty-kinds")
@pytest.mark.parametrize(("method", "path", "expected"), KINDS, ids=lambda value: str(value)[:40])
async def test_a_kind_of_which_there_is_none_says_so(
    tmp_path: Path, method: str, path: str, expected: dict[str, Any] | str
) -> None:
    write_secret(tmp_path / "tokens" / "every", "token-of-every-0123456789\n")
    site = make_site(tmp_path, extra=ANY_SCOPE)
    async with site.client as client:
        answered = await client.request(method, path, headers=site.bearer("every"))
        without_scope = await client.request(method, path, headers=site.bearer())
    refused(without_scope, status=401, code="auth.not_authorized")
    if isinstance(expected, dict):
        assert (answered.status_code, answered.json()) == (200, expected)
    else:
        refused(answered, status=400, code=expected)


class Held:
    """A provider that answers when it is let."""

    def __init__(self) -> None:
        self.entered, self.let = asyncio.Event(), asyncio.Event()

    async def __call__(self, call: Call) -> Answer:
        self.entered.set()
        await self.let.wait()
        return Answer(output={"n": 1})


def turn(action_id: str) -> dict[str, Any]:
    sent = action(action_id, "session_chat")
    sent["body"]["action"]["input"] = {"session_id": "s", "message": "hi"}
    return sent


WAITING = {
    "/aip/v1/actions/act_1?wait_ms=30000": lambda body: body["action_status"]["state"],
    "/aip/v1/actions/act_1/result?wait_ms=30000": lambda body: body["action_result"]["status"],
}


@pytest.mark.requirement("records:wait")
@pytest.mark.parametrize("path", WAITING)
async def test_a_read_waits_for_the_end_of_what_runs(tmp_path: Path, path: str) -> None:
    provider = Held()
    connector = ScriptedConnector(tenant="local", send=provider)
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        submitted = asyncio.create_task(client.post("/aip/v1/messages", json=turn("act_1")))
        await provider.entered.wait()
        waiting = asyncio.create_task(client.get(path))
        assert (await client.get("/aip/v1/actions/act_1")).json()["action_status"]["state"] == "running"
        provider.let.set()
        assert WAITING[path]((await waiting).json()) == "completed"
        await submitted


@pytest.mark.requirement("records:wait")
async def test_a_wait_for_events_ends_with_the_first_one(tmp_path: Path) -> None:
    connector = ScriptedConnector(tenant="local")
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        end = (await client.get("/aip/v1/events")).json()["event_stream"]["next_cursor"]
        waiting = asyncio.create_task(client.get(f"/aip/v1/events?cursor={end}&wait_ms=30000"))
        await client.post("/aip/v1/messages", json=turn("act_1"))
        events = (await waiting).json()["event_stream"]["events"]
        assert [event["action_id"] for event in events] == ["act_1"]


@pytest.mark.requirement("records:wait")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/aip/v1/actions/act_1?wait_ms=1", None),
        ("/aip/v1/actions/act_nobody?wait_ms=30000", None),
        ("/aip/v1/actions/act_1/result?wait_ms=1", "action.result_not_ready"),
        ("/aip/v1/actions/act_nobody/result?wait_ms=30000", "action.not_found"),
        ("/aip/v1/events?wait_ms=1&kinds=none", None),
    ],
)
async def test_a_wait_ends_when_its_time_is_up_or_nothing_can_come(tmp_path: Path, path: str, code: str | None) -> None:
    provider = Held()
    connector = ScriptedConnector(tenant="local", send=provider)
    async with asyncio.timeout(25), streaming_server(tmp_path, connector) as client:
        submitted = asyncio.create_task(client.post("/aip/v1/messages", json=turn("act_1")))
        await provider.entered.wait()
        answered = await client.get(path)
        provider.let.set()
        await submitted
    if code is None:
        assert answered.status_code == 200
    else:
        assert answered.json()["body"]["error"]["error"]["code"] == code


@pytest.mark.requirement("records:wait")
async def test_a_server_that_stops_ends_a_wait(tmp_path: Path) -> None:
    async with asyncio.timeout(25), serving(written_settings(tmp_path)) as (client, stop):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        headers = f"host: aip\r\nauthorization: {REQUESTER['authorization']}\r\nconnection: close\r\n"
        writer.write(f"GET /aip/v1/events?wait_ms=30000 HTTP/1.1\r\n{headers}\r\n".encode())
        await writer.drain()
        await client.get("/aip/v1/me")
        stop.set()
        answered = await reader.read()
        writer.close()
    assert answered.startswith(b"HTTP/1.1 503 ")
    assert b"gateway.stopping" in answered


class Counting(SystemClock):
    """Counts the rests between two looks and makes each as long as asked."""

    rests = 0
    moment = 0.0

    def monotonic(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self.rests += 1
        self.moment += seconds
        await asyncio.sleep(0)


@pytest.mark.requirement("records:wait")
async def test_waiting_looks_twice_a_second_and_never_in_a_loop() -> None:
    clock, looks = Counting(), 0

    @asynccontextmanager
    async def changed() -> AsyncIterator[asyncio.Event]:
        yield asyncio.Event()

    async def look() -> int:
        nonlocal looks
        looks += 1
        return looks

    async with asyncio.timeout(30):
        found = await until(look, enough=lambda _: False, changed=changed, wait_ms=3000, clock=clock)
    assert (found, clock.rests) == (7, 6)
