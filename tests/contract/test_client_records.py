"""The client's reading of records, against a server that has some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from aip_hermes.client import AipConnection, PeerError, chain_problems
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    CapabilityId,
    EndpointId,
    IdempotencyKey,
    ReceiptId,
)
from aip_hermes.secret import Secret
from tests.support.runtime_connector import ScriptedConnector, ScriptedOutcomeUnknown, capability
from tests.support.server_serving import REQUESTER
from tests.support.server_streams import streaming_server

TALK, DELETE = CapabilityId(capability("session_chat")), CapabilityId(capability("session_delete"))


@pytest.fixture
def connector() -> ScriptedConnector:
    return ScriptedConnector(tenant="local")


@pytest.fixture
async def connection(tmp_path: Path, connector: ScriptedConnector) -> AsyncIterator[AipConnection]:
    async with asyncio.timeout(60), streaming_server(tmp_path, connector) as client:
        token = Secret(REQUESTER["authorization"].removeprefix("Bearer "))
        async with AipConnection(base_url=str(client.base_url), token=token) as made:
            yield made


async def talk(connection: AipConnection, name: str) -> None:
    values = {"session_id": name, "message": "hi"}
    await connection.call(TALK, values, action_id=ActionId(f"act_{name}"))


@pytest.mark.requirement("records:client")
async def test_actions_are_listed_by_page_and_all_at_once(
    connection: AipConnection, connector: ScriptedConnector
) -> None:
    for name in ("a", "b", "c"):
        await talk(connection, name)
    connector.failures["send"] = ScriptedOutcomeUnknown("?", uncertain=True)
    await talk(connection, "lost")
    first = (await connection.actions(limit=3, include_results=True))["action_list"]
    rest = (await connection.actions(cursor=first["cursor"]))["action_list"]
    uncertain = [each["action_id"] async for each in connection.every_action(outcome="uncertain")]
    everything = [each["action_id"] async for each in connection.every_action(endpoint=EndpointId("primary"))]
    assert [each["action_id"] for each in first["actions"]] == ["act_a", "act_b", "act_c"]
    assert first["total_size"] == 4
    assert all(each["result"]["status"] == "completed" for each in first["actions"])
    assert [each["action_id"] for each in rest["actions"]] == uncertain == ["act_lost"]
    assert everything == ["act_a", "act_b", "act_c", "act_lost"]


@pytest.mark.requirement("records:client")
async def test_the_log_is_read_and_followed(connection: AipConnection) -> None:
    async with aclosing(connection.follow_log(kinds=["aip.action.result"])) as frames:
        following = asyncio.ensure_future(anext(frames))
        await talk(connection, "a")
        followed = (await following).data["event"]
    page = (await connection.event_log(kinds=["aip.action.result"], wait_ms=1000))["event_stream"]
    assert page["events"] == [followed]
    assert (await connection.event_log(cursor=page["next_cursor"]))["event_stream"]["events"] == []


@pytest.mark.requirement("records:client")
async def test_a_chain_is_read_by_both_ids_and_verified_here(connection: AipConnection) -> None:
    asked = await connection.call(
        DELETE, {"session_id": "a"}, action_id=ActionId("act_d"), idempotency_key=IdempotencyKey("d")
    )
    assert asked.result is not None
    approval_id = asked.result["output"]["approval_id"]
    chain = (await connection.receipt_chain(f"approval:{approval_id}"))["receipt_chain"]
    last = chain["receipts"][-1]
    assert (await connection.chain_of_receipt(ReceiptId(last["id"])))["receipt_chain"] == chain
    assert chain_problems(chain) == []
    last["actor"]["id"] = "human:somebody:else"
    assert len(chain_problems(chain)) == 1
    assert chain_problems({"receipts": 7}) != []


@pytest.mark.requirement("records:client")
async def test_the_audit_log_is_read(connection: AipConnection) -> None:
    await talk(connection, "a")
    await talk(connection, "b")
    found = await connection.audit_events(action_id=ActionId("act_b"), since="2020-01-01T00:00:00Z")
    [record] = found["audit_query_result"]["events"]
    assert record["id"] == "audit:action:local:act_b:result"
    with pytest.raises(PeerError) as refused:
        await connection.audit_events(export=True)
    assert refused.value.code == "audit.not_authorized"


MISSING: dict[str, Callable[[AipConnection], Awaitable[object]]] = {
    "session.not_found": lambda connection: connection.aip_session(AipSessionId("sess_1")),
    "transaction.not_found": lambda connection: connection.transaction(plan_id="plan:1"),
    "resource.not_found": lambda connection: connection.resource("resource:x"),
}


@pytest.mark.requirement("records:client")
@pytest.mark.parametrize("code", MISSING)
async def test_what_there_is_none_of_is_refused_by_its_code(code: str) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        error = {"code": code, "message": "none", "category": "permanent", "retryable": False, "severity": "error"}
        return httpx.Response(400, json={"body": {"error": {"error": error}}})

    transport = httpx.MockTransport(answer)
    async with AipConnection(base_url="http://aip.test/", transport=transport) as connection:
        with pytest.raises(PeerError) as refused:
            await MISSING[code](connection)
        assert refused.value.code == code
        with pytest.raises(ValueError, match="exactly one"):
            await connection.transaction(plan_id="p", transaction_id="t")
