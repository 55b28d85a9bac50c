"""Headers come from trusted context; the four identities stay apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Actor, Call
from aip_hermes.hermes.failures import InputRefused
from aip_hermes.hermes.request import map_call
from aip_hermes.ids import AipSessionId, IdempotencyKey, PrincipalId
from tests.support.hermes_calls import INPUTS, call_of, endpoint_of
from tests.support.hermes_stub import KEY

_OPERATIONS = load_operations()


def _headers(call: Call) -> dict[str, bytes]:
    operation = _OPERATIONS[call.capability_id.rsplit(":", 1)[1]]
    headers = map_call(operation=operation, endpoint=endpoint_of(), call=call).request.headers
    assert len({name.lower() for name, _ in headers}) == len(headers)
    return dict(headers)


@pytest.mark.requirement("hermes:headers:trusted-context")
def test_a_call_with_everything_sends_each_header_once() -> None:
    call = call_of(
        "session_chat",
        {**INPUTS["session_chat"], "session_key": "family-é"},
        aip_session_id=AipSessionId("sess_1"),
        trace_id="trace-1",
        deadline_ms=1_796_071_500_000,
        delegation_chain=({"principal": "human:ünal"},),
    )
    assert _headers(call) == {
        "Accept": b"application/json",
        "Authorization": b"Bearer " + KEY.encode(),
        "Content-Type": b"application/json",
        "X-Hermes-Session-Key": "family-é".encode(),
        "Idempotency-Key": b"key-1",
        "X-AIP-Session-Id": b"sess_1",
        "X-AIP-Correlation-Id": b"trace-1",
        "X-AIP-Delegation-Chain": '[{"principal":"human:ünal"}]'.encode(),
        "X-AIP-Principal-Id": b"human:ada",
        "X-AIP-Tenant-Id": b"tenant-a",
        "X-AIP-Authentication-Issuer": b"test-issuer",
        "X-AIP-Trace-Id": b"trace-1",
        "X-AIP-Deadline-Unix-Ms": b"1796071500000",
    }


@pytest.mark.requirement("hermes:headers:trusted-context")
def test_a_payload_can_set_no_header() -> None:
    claimed: Mapping[str, Any] = {
        "_aip": {"session_id": "sess_evil", "correlation_id": "corr_evil", "actor": "human:eve"},
        "idempotency_key": "evil",
    }
    call = call_of("session_chat", {**INPUTS["session_chat"], **claimed})
    headers = _headers(call)
    assert headers["X-AIP-Correlation-Id"] == b"corr_1"
    assert headers["X-AIP-Principal-Id"] == b"human:ada"
    assert headers["Idempotency-Key"] == b"key-1"
    assert not any(b"evil" in value or b"eve" in value for value in headers.values())
    request = map_call(operation=_OPERATIONS["session_chat"], endpoint=endpoint_of(), call=call).request
    assert request.body is not None
    assert not any(claim in request.body for claim in (b"evil", b"eve", b"_aip"))


@pytest.mark.requirement("hermes:headers:idempotency-key")
@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=list(_OPERATIONS))
def test_the_key_of_the_action_travels_with_mutations_only(operation: Any) -> None:
    headers = _headers(call_of(operation.name))
    assert headers.get("Idempotency-Key") == (None if operation.read_only else b"key-1")
    assert "Idempotency-Key" not in _headers(replace(call_of(operation.name), idempotency_key=None))


@pytest.mark.requirement("hermes:headers:no-session-id")
@pytest.mark.parametrize("name", [name for name, row in _OPERATIONS.items() if row.session_place != "header"])
def test_no_route_but_completions_gets_a_session_id_in_a_header(name: str) -> None:
    assert not _OPERATIONS[name].path.startswith("/v1/chat")
    named = {"session_id": "票据-é"} if "session_id" in INPUTS[name] else {}
    assert "X-Hermes-Session-Id" not in _headers(call_of(name, {**INPUTS[name], **named}))


@pytest.mark.requirement("hermes:request:session-where-it-is-read")
@pytest.mark.parametrize("session_id", ["s1", "票据-é", "sp ace", "x" * 256, "20260406_164014_74b2d1"])
def test_a_chat_names_its_session_in_the_header(session_id: str) -> None:
    headers = _headers(call_of("chat", {"prompt": "hi", "session_id": session_id}))
    assert headers["X-Hermes-Session-Id"] == session_id.encode()
    assert "X-Hermes-Session-Id" not in _headers(call_of("chat", {"prompt": "hi"}))


@pytest.mark.requirement("hermes:headers:session-key-is-explicit")
def test_no_memory_scope_is_sent_that_was_not_given() -> None:
    assert "X-Hermes-Session-Key" not in _headers(call_of("session_chat"))


@pytest.mark.requirement("hermes:headers:health-is-anonymous")
def test_a_route_without_authentication_learns_nothing_about_the_caller() -> None:
    assert _headers(call_of("health")) == {"Accept": b"application/json"}


@pytest.mark.requirement("hermes:headers:health-is-anonymous")
def test_a_stream_is_asked_for_as_events() -> None:
    assert _headers(call_of("session_chat_stream"))["Accept"] == b"text/event-stream"
    assert _headers(call_of("session_chat"))["Accept"] == b"application/json"


@pytest.mark.requirement("hermes:headers:limits")
@pytest.mark.parametrize(
    "members",
    [
        {"trace_id": "a\r\nX-Evil: 1"},
        {"trace_id": "a\x00"},
        {"trace_id": " a"},
        {"trace_id": "\ud800"},
        {"trace_id": "x" * 16_385},
        {"actor": Actor(principal_id=PrincipalId("human:ada"), kind="human", tenant_id=None, issuer="")},
        {"delegation_chain": tuple({"principal": "p" * 1000} for _ in range(20))},
    ],
)
def test_a_value_that_no_header_carries_is_refused_before_sending(members: Mapping[str, Any]) -> None:
    with pytest.raises(InputRefused):
        _headers(call_of("session_get", **members))


@pytest.mark.requirement("hermes:headers:idempotency-key")
def test_the_longest_key_is_sent_whole() -> None:
    key = IdempotencyKey("~" * 255)
    assert _headers(call_of("session_create", idempotency_key=key))["Idempotency-Key"] == b"~" * 255
