"""Against a real hermes-agent (see conftest.py)."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from aip_hermes.cli.demo.theatre import theatre
from aip_hermes.cli.demo.walk import Walk
from aip_hermes.client import AipConnection
from aip_hermes.ids import ActionId, CapabilityId, IdempotencyKey
from aip_hermes.ports import new_id
from tests.real.conftest import Endpoint

pytestmark = pytest.mark.real


@pytest.mark.requirement("real:lifecycle")
async def test_the_lifecycle_holds_and_surprises_are_told(endpoint: Endpoint) -> None:
    async with theatre(endpoint_url=endpoint.url, key_file=endpoint.key_file, keep=False) as (stage, _):
        steps = await Walk(stage).run(lambda _: None)
    assert [step.failure for step in steps if step.failure] == []
    assert any("with its child" in note for step in steps for note in step.notes)


async def call(connection: AipConnection, operation: str, input: dict[str, Any]) -> dict[str, Any]:
    reply = await connection.call(
        CapabilityId(f"cap:hermes_agent:primary:{operation}"),
        input,
        action_id=ActionId(new_id("act_")),
        idempotency_key=IdempotencyKey(new_id("key_")),
    )
    assert reply.result is not None
    return reply.result


@pytest.mark.requirement("real:half-fork")
async def test_a_half_fork_is_uncertain_and_says_what_stands_there(endpoint: Endpoint) -> None:
    run = secrets.token_hex(4)
    async with theatre(endpoint_url=endpoint.url, key_file=endpoint.key_file, keep=False) as (stage, _):
        for identity, title in ((f"taken-{run}", f"Taken {run}"), (f"source-{run}", f"Source {run}")):
            created = await call(stage.requester, "session_create", {"body": {"id": identity, "title": title}})
            assert created["status"] == "completed"
        fork = {"session_id": f"source-{run}", "body": {"id": f"child-{run}", "title": f"Taken {run}"}}
        answer = await call(stage.requester, "session_fork", fork)
    assert answer["status"] == "failed"
    details = answer["error"]["details"]
    assert details["uncertain_outcome"] is True
    assert details["provider"]["code"] == "invalid_title"
    assert details["reconciliation"]["fork"]["state"] == "partial"
    assert details["reconciliation"]["fork"]["child"]["parent_session_id"] == f"source-{run}"


@pytest.mark.requirement("real:stream")
async def test_a_streamed_turn_ends_with_one_done_and_the_stored_text(endpoint: Endpoint) -> None:
    identity = f"streamed-{secrets.token_hex(4)}"
    async with theatre(endpoint_url=endpoint.url, key_file=endpoint.key_file, keep=False) as (stage, _):
        await call(stage.requester, "session_create", {"body": {"id": identity}})
        answer = await call(
            stage.requester, "session_chat_stream", {"session_id": identity, "message": "What is known?"}
        )
        assert answer["status"] == "completed", answer
        output = answer["output"]
        page = await stage.requester.get(
            f"/aip/v1/actions/{answer['action_id']}/chunks", {"limit": 1000}, expected="action_events"
        )
        rows = (await call(stage.requester, "session_messages", {"session_id": identity}))["output"]["data"]
    chunks = page["action_events"]["chunks"]
    assert [chunk["sequence"] for chunk in chunks] == list(range(len(chunks)))
    assert [chunk["kind"] for chunk in chunks].count("done") == 1
    assert chunks[-1]["kind"] == "done"
    assert output["terminal"] is True
    assert output["_aip"]["turn"]["persisted"] == "yes"
    assert output["text"] == rows[-1]["content"]
