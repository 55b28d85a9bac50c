"""check, serial_key, describe, prepare: what happens before anything is sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from aip_hermes.contract import load_operations
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes import HermesConnector
from aip_hermes.ids import EndpointId, TenantId
from aip_hermes.ports import NoFaults
from tests.support.hermes_calls import FakeClock, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_routes import RowsTransport
from tests.support.hermes_stub import KEY, row_of

_OPERATIONS = load_operations()
_C1 = "20261130_205616_082034"


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.requirement("hermes:check:tenant")
@pytest.mark.parametrize("operation", list(_OPERATIONS))
@pytest.mark.parametrize("tenant", [None, TenantId("tenant-b")])
async def test_an_endpoint_of_another_tenant_is_refused_for_every_operation(
    operation: str, tenant: TenantId | None
) -> None:
    call = call_of(operation)
    call = replace(call, actor=replace(call.actor, tenant_id=tenant))
    transport = RowsTransport([row_of("s1")])
    async with connector_of(endpoint_of(tenant_id=TenantId("tenant-a")), transport=transport) as connector:
        with pytest.raises(ActionFailed) as caught:
            handler_of(connector, operation).check(call)
        assert caught.value.code == "connector.hermes_agent.tenant_mismatch"
        handler_of(connector, operation).check(call_of(operation))
    assert transport.asked == []
    assert "tenant-a" not in caught.value.message + repr(caught.value.details)


@pytest.mark.requirement("hermes:check:credential")
@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=list(_OPERATIONS))
async def test_only_health_works_without_a_key(operation: Any) -> None:
    async with connector_of(endpoint_of(key=None), transport=RowsTransport([])) as connector:
        handler = handler_of(connector, operation.name)
        if not operation.auth:
            handler.check(call_of(operation.name))
            return
        with pytest.raises(ActionFailed) as caught:
            handler.check(call_of(operation.name))
    assert caught.value.code == "connector.hermes_agent.missing_credential"
    assert caught.value.frees_key


@pytest.mark.requirement("hermes:serial:one-key-per-session")
async def test_turns_forks_and_deletes_of_a_session_share_one_key() -> None:
    async with connector_of(endpoint_of(turn_timeout_s=42.0), transport=RowsTransport([])) as connector:
        keys = {name: handler_of(connector, name).serial_key(call_of(name)) for name in _OPERATIONS}
    held = {name: key for name, key in keys.items() if key is not None}
    assert {name: key.use for name, key in held.items()} == {
        "session_delete": "exclusive",
        "session_fork": "exclusive",
        "session_chat": "turn",
        "session_chat_stream": "turn",
        "chat": "turn",
        "chat_stream": "turn",
        "run_start": "turn",
    }
    assert {key.key for key in held.values()} == {"hermes_agent:primary:s1"}
    assert all(key.subject == {"endpoint_id": "primary", "session_id": "s1"} for key in held.values())
    assert {key.hold_s for key in held.values()} == {42.0}


@pytest.mark.requirement("hermes:describe:target")
async def test_an_approval_is_about_the_row_as_it_stands() -> None:
    row = row_of("s1", title="Secret plans", message_count=7, end_reason="done", ended_at=2.0)
    async with connector_of(endpoint_of(), transport=RowsTransport([row])) as connector:
        description = await handler_of(connector, "session_delete").describe(call_of("session_delete"))
    assert description is not None
    assert description.snapshot == {
        "session_id": "s1",
        "started_at": 1796071433.5,
        "message_count": 7,
        "ended_at": 2.0,
        "end_reason": "done",
        "title_sha256": _sha("Secret plans"),
    }
    assert json.loads(json.dumps(description.snapshot)) == description.snapshot
    for part in ("s1", "primary", "message count 7", "2026-11-30T", "end reason `done`"):
        assert part in description.summary
    assert "Secret" not in description.summary


@pytest.mark.requirement("hermes:describe:target")
@pytest.mark.parametrize("name", [name for name, row in _OPERATIONS.items() if row.target is None])
async def test_operations_without_a_target_read_nothing_for_a_description(name: str) -> None:
    transport = RowsTransport([row_of("s1")])
    async with connector_of(endpoint_of(), transport=transport) as connector:
        assert await handler_of(connector, name).describe(call_of(name)) is None
    assert transport.asked == []


@pytest.mark.requirement("hermes:prepare:target-changed")
@pytest.mark.parametrize(
    ("now", "changed"),
    [
        ({}, False),
        ({"title": "renamed", "end_reason": "closed", "ended_at": 3.0}, False),
        ({"message_count": 3}, True),
        ({"started_at": 1796071999.0}, True),
        ({"message_count": None}, True),
    ],
)
async def test_a_target_that_changed_since_approval_is_not_sent(now: Mapping[str, Any], changed: bool) -> None:
    transport = RowsTransport([row_of("s1")])
    async with connector_of(endpoint_of(), transport=transport) as connector:
        handler, call = handler_of(connector, "session_delete"), call_of("session_delete")
        description = await handler.describe(call)
        assert description is not None
        transport.rows["s1"] |= now
        if not changed:
            assert (await handler.prepare(call, description.snapshot)).facts["before"]["session_id"] == "s1"
            return
        with pytest.raises(ActionFailed) as caught:
            await handler.prepare(call, description.snapshot)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.target_changed", False)
    assert transport.sent == []


@pytest.mark.requirement("hermes:prepare:superseded")
@pytest.mark.parametrize(
    ("child", "current"),
    [
        (row_of(_C1, parent_session_id="s1"), _C1),
        (row_of("f1", parent_session_id="s1"), None),
        (row_of(_C1, parent_session_id=None), None),
        (None, None),
    ],
)
async def test_a_turn_on_a_compressed_session_names_the_proven_continuation_only(
    child: Mapping[str, Any] | None, current: str | None
) -> None:
    rows = [row_of("s1", end_reason="compression", ended_at=2.0)] + ([] if child is None else [dict(child)])
    transport = RowsTransport(rows, resolves={"s1": rows[-1]["id"]})
    async with connector_of(endpoint_of(), transport=transport) as connector:
        with pytest.raises(ActionFailed) as caught:
            await handler_of(connector, "session_chat").prepare(call_of("session_chat"), None)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.session_superseded", False)
    assert caught.value.details["current_session_id"] == current
    assert transport.sent == []
    assert current is None or current in caught.value.message


@pytest.mark.requirement("hermes:prepare:superseded")
@pytest.mark.parametrize("name", ["session_patch", "session_fork"])
async def test_a_patch_or_fork_of_a_compressed_session_goes_ahead_with_the_reason_as_a_fact(name: str) -> None:
    transport = RowsTransport([row_of("s1", end_reason="compression", ended_at=2.0)])
    async with connector_of(endpoint_of(), transport=transport) as connector:
        prepared = await handler_of(connector, name).prepare(call_of(name), None)
    assert prepared.facts["before"]["end_reason"] == "compression"


@pytest.mark.requirement("hermes:prepare:closed")
async def test_a_turn_on_a_closed_session_follows_the_setting_of_the_endpoint() -> None:
    row = row_of("s1", end_reason="done", ended_at=2.0)
    for on_closed, refused in (("forward", False), ("refuse", True)):
        async with connector_of(endpoint_of(on_closed=on_closed), transport=RowsTransport([row])) as connector:
            handler = handler_of(connector, "session_chat")
            if not refused:
                await handler.prepare(call_of("session_chat"), None)
                continue
            with pytest.raises(ActionFailed) as caught:
                await handler.prepare(call_of("session_chat"), None)
    assert (caught.value.code, caught.value.uncertain) == ("connector.hermes_agent.session_closed", False)


@pytest.mark.requirement("hermes:prepare:facts")
@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        (
            "session_create",
            {"body": {"id": " a ", "title": "  Two   words ", "system_prompt": "secret"}},
            {"new_session_id": "a", "title_sha256": _sha("Two words")},
        ),
        ("session_create", {}, {}),
        ("session_patch", {"session_id": "s1", "title": ""}, {"title_sha256": None}),
        ("session_patch", {"session_id": "s1", "end_reason": "done"}, {"end_reason_sha256": _sha("done")}),
        ("session_fork", {"session_id": "s1", "id": "f1"}, {"new_session_id": "f1"}),
        ("session_delete", {"session_id": "s1"}, {}),
        ("session_chat", {"session_id": "s1", "message": "hi"}, {"text_sha256": _sha("hi"), "text_chars": 2}),
        (
            "session_chat",
            {"session_id": "s1", "message": "é" * 70_000},
            {"text_sha256": _sha("é" * 65_536), "text_chars": 65_536},
        ),
        (
            "session_chat",
            {
                "session_id": "s1",
                "message": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                    {"type": "input_text", "text": "two"},
                ],
            },
            {"text_sha256": _sha("look\n[screenshot]\ntwo"), "text_chars": 21},
        ),
    ],
)
async def test_facts_are_ids_counts_times_and_hashes(
    name: str, values: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    clock = FakeClock()
    transport = RowsTransport([row_of("s1", title="Plans")])
    async with connector_of(endpoint_of(), transport=transport, clock=clock) as connector:
        handler = handler_of(connector, name)
        facts = (await handler.prepare(call_of(name, values), None)).facts
    expected: dict[str, Any] = {"endpoint_id": "primary", "wanted": wanted}
    if handler.operation.prepare == "target":
        expected["read_at_ms"] = clock.now_ms()
        expected["before"] = {
            "session_id": "s1",
            "started_at": 1796071433.5,
            "message_count": 2,
            "ended_at": None,
            "end_reason": None,
            "title_sha256": _sha("Plans"),
        }
    elif handler.operation.prepare != "none":
        expected["read_at_ms"] = clock.now_ms()
        expected["before"] = {
            "session_id": "s1",
            "started_at": 1796071433.5,
            "ended_at": None,
            "end_reason": None,
            "message_count": 2,
            "title_sha256": _sha("Plans"),
            "parent_session_id": None,
            "worked": [None, None, None],
        }
    assert facts == expected
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.requirement("hermes:send:safe-reads-repeat")
async def test_waits_between_reads_grow_and_honour_what_the_endpoint_asks() -> None:
    clock = FakeClock()
    busy = httpx.Response(503, headers={"retry-after": "2"}, json={"error": {"code": "gateway_draining"}})
    async with connector_of(
        endpoint_of(), transport=RowsTransport([], answers={"GET": busy}), clock=clock
    ) as connector:
        handler, call = handler_of(connector, "models"), call_of("models")
        with pytest.raises(ActionFailed) as caught:
            await handler.send(call, await handler.prepare(call, None))
    assert clock.naps == [2.0, 2.0]
    assert caught.value.retry_after_ms == 2000
    assert caught.value.details["provider"]["retry_after_ms"] == 2000


@pytest.mark.requirement("hermes:send:safe-reads-repeat")
@pytest.mark.parametrize(("retry_after", "deadline_in_ms"), [("600", None), ("2", 1500)])
async def test_a_wait_that_is_too_long_is_left_to_the_caller(retry_after: str, deadline_in_ms: int | None) -> None:
    clock = FakeClock()
    transport = RowsTransport([], answers={"GET": httpx.Response(429, headers={"retry-after": retry_after})})
    deadline_ms = None if deadline_in_ms is None else clock.now_ms() + deadline_in_ms
    async with connector_of(endpoint_of(), transport=transport, clock=clock) as connector:
        handler, call = handler_of(connector, "models"), call_of("models", deadline_ms=deadline_ms)
        with pytest.raises(ActionFailed) as caught:
            await handler.send(call, await handler.prepare(call, None))
    assert caught.value.retryable
    assert len(transport.asked) == 1


@pytest.mark.requirement("hermes:connector:offers")
async def test_offers_are_endpoints_in_id_order_and_operations_in_row_order() -> None:
    endpoints = [
        endpoint_of(id=EndpointId("zeta")),
        endpoint_of(id=EndpointId("alpha"), turn_timeout_s=12.5, display_name="Alpha", tenant_id=TenantId("t")),
    ]
    clock = FakeClock()
    async with HermesConnector(endpoints, clock=clock, faults=NoFaults()) as connector:
        offers = connector.offers()
    assert [offer.capability_id for offer in offers] == [
        f"cap:hermes_agent:{endpoint}:{name}" for endpoint in ("alpha", "zeta") for name in _OPERATIONS
    ]
    chat = next(offer for offer in offers if offer.handler.operation.name == "session_chat")
    assert (chat.timeout_ms, chat.reads_first, chat.display_name, chat.tenant_id) == (12_500, True, "Alpha", "t")
    assert all(offer.reads_first is (offer.handler.operation.prepare != "none") for offer in offers)


@pytest.mark.requirement("hermes:connector:offers")
def test_two_endpoints_of_one_id_are_refused() -> None:
    for endpoints in ([], [endpoint_of(), endpoint_of()]):
        with pytest.raises(ValueError, match="endpoint"):
            HermesConnector(endpoints, clock=FakeClock(), faults=NoFaults())


@pytest.mark.requirement("hermes:errors:one-namespace")
@pytest.mark.parametrize(
    ("kind", "category", "retryable"),
    [
        ("session_busy", "temporary", True),
        ("outcome_unknown", "connector", False),
        ("cancelled", "temporary", False),
    ],
)
@pytest.mark.parametrize("uncertain", [True, False])
async def test_what_only_the_runtime_noticed_speaks_in_the_connectors_namespace(
    kind: Any, category: str, retryable: bool, uncertain: bool
) -> None:
    async with connector_of(endpoint_of(), transport=RowsTransport([])) as connector:
        failure = connector.failure(kind, "said so", details={"session_id": "s1"}, uncertain=uncertain)
    assert failure.code == f"connector.hermes_agent.{kind}"
    assert (failure.category, failure.component, failure.uncertain) == (category, "hermes-agent", uncertain)
    assert failure.retryable is (retryable and not uncertain)
    assert failure.details == {
        "operation": "invocation",
        "provider_request_id": None,
        "provider_operation": None,
        "remote_status": None,
        "uncertain_outcome": uncertain,
        "details": None,
        "session_id": "s1",
    }


@pytest.mark.requirement("hermes:errors:no-credentials")
async def test_no_object_of_the_connector_shows_the_key() -> None:
    endpoint = endpoint_of()
    async with connector_of(endpoint, transport=RowsTransport([row_of("s1")])) as connector:
        handler, call = handler_of(connector, "session_chat"), call_of("session_chat")
        prepared = await handler.prepare(call, None)
    for value in (endpoint, connector.offers(), prepared):
        assert KEY not in repr(value)
    assert "What is verified?" not in repr(prepared)
