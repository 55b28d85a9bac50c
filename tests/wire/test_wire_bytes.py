"""The bytes of what a server sends, from objects built as the server builds them.

The files under `fixtures/` were written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.errors import ProviderFailed, RequestRefused
from tests.support.wire_objects import EXAMPLES

FIXTURES = Path(__file__).parent / "fixtures"
NOON = wire.parse_rfc3339("2031-02-03T12:00:00Z")
SERVER = wire.Principal(id="service:aip-hermes", kind="service", display_name="AIP for Hermes")
MIRA = wire.Principal(id="human:mira", kind="human")
DELETE = "cap:hermes_agent:attic:session_delete"


class _Unreachable(ProviderFailed, code="connector.wire_bytes.unreachable", retryable=True, component="wire-bytes"):
    pass


class _Unknown(RequestRefused, code="wire_bytes.not_found"):
    pass


def _reply(body: Mapping[str, Any]) -> dict[str, Any]:
    return wire.new_envelope(
        body,
        message_id="msg_reply",
        sent_at_ms=NOON + 250,
        session_id="sess_1",
        correlation_id="corr_1",
        in_response_to="msg_request",
        from_=SERVER,
        to=MIRA,
    ).wire()


def _policy() -> wire.ApprovalPolicy:
    return wire.ApprovalPolicy(
        required=True,
        reason="Deletes a session for good",
        approver_selector=wire.TenantPolicySelector(),
        ttl_ms=900000,
        evidence_requirements=["reason", "input_snapshot", "policy_decision"],
        separation_of_duties=wire.SeparationOfDuties(requester_must_differ=True),
    )


def _request() -> wire.ApprovalRequest:
    return wire.ApprovalRequest(
        id="appr_1",
        action_id="act_1",
        capability_id=DELETE,
        requester=MIRA,
        subject=MIRA,
        operator=MIRA,
        approver_selector=wire.TenantPolicySelector(),
        reason="Deletes a session for good",
        evidence=[
            wire.EvidenceArtifact(id="evidence:input:act_1", kind="input_snapshot", hash="a" * 64, redacted=True),
            wire.EvidenceArtifact(id="evidence:policy:act_1", kind="policy_decision", hash="b" * 64, redacted=False),
        ],
        expires_at=wire.rfc3339(NOON + 900_000),
        policy_decision_id="policy:act_1",
        identity=wire.IdentityContext(tenant=wire.TenantRef(id="attic")),
        policy_snapshot=_policy(),
        policy_hash="c" * 64,
        risk="high",
    )


def _completed() -> dict[str, Any]:
    output = {"object": "hermes.session", "session": {"id": "diary", "title": None, "started_at": 1927000000.5}}
    result = wire.ActionResult(
        action_id="act_1", status="completed", output=output, message=[wire.JsonPart(data=output)]
    )
    return _reply({"action_result": result})


def _failed() -> dict[str, Any]:
    exc = _Unreachable("the endpoint refused the connection", details={"endpoint_id": "attic"}, retry_after_ms=2000)
    result = wire.ActionResult(action_id="act_1", status="failed", error=wire.protocol_error(exc))
    return _reply({"action_result": result})


def _pending() -> dict[str, Any]:
    result = wire.ActionResult(
        action_id="act_1",
        status="pending_approval",
        output={
            "requires_human_approval": True,
            "approval_id": "appr_1",
            "capability_id": DELETE,
            "approval_request": _request().wire(),
        },
        error=wire.ProtocolError(
            code="policy.human_approval_required",
            message="a reviewer has to decide",
            category="policy",
            retryable=False,
            details={"approval_id": "appr_1", "approval_policy": _policy().wire()},
        ),
    )
    return _reply({"action_result": result})


def _error() -> dict[str, Any]:
    body = wire.ErrorBody(error=wire.protocol_error(_Unknown("no such capability")))
    return wire.new_envelope({"error": body}, message_id="msg_reply", sent_at_ms=NOON).wire()


def _approval_request() -> dict[str, Any]:
    return _request().wire()


def _action_status() -> dict[str, Any]:
    here = "/aip/v1/actions/act_1"
    status = wire.ActionStatus(
        action_id="act_1",
        capability_id=DELETE,
        state="pending_approval",
        queued_state="requires_human",
        approval_id="appr_1",
        updated_at=wire.rfc3339(NOON),
        links={"self": here, "result": here + "/result", "cancel": here + "/cancel"},
    )
    return {"action_status": status.wire()}


def _event_stream() -> dict[str, Any]:
    events = [
        wire.Event(
            id="evt_1",
            kind="aip.approval.granted",
            occurred_at=wire.rfc3339(NOON),
            action_id="act_1",
            actor=wire.Principal(id="human:noor", kind="human"),
            data={"approval_id": "appr_1", "decision": "approved", "decided_at": "2031-02-03T12:00:00Z"},
        ),
        wire.Event(
            id="evt_2",
            kind="aip.action.resumed_result",
            occurred_at=wire.rfc3339(NOON + 40),
            action_id="act_1",
            data={"status": "completed", "note": None},
        ),
    ]
    return _reply({"event_stream": wire.EventStream(events=events)})


def _capability() -> dict[str, Any]:
    return wire.Capability(
        id=DELETE,
        name="Hermes Agent session deletion (attic)",
        kind="tool",
        input_schema={"type": "object", "required": ["session_id"], "properties": {"session_id": {"type": "string"}}},
        output_schema={"type": "object"},
        risk="high",
        stability="stable",
        bindings=[wire.Binding.model_validate({"profile": "aip.connector.hermes_agent.v1", "streaming": False})],
        requires_human_approval=True,
        contract=wire.CapabilityContract(
            side_effects=["read", "delete", "external_network"],
            idempotency=wire.IdempotencyContract(
                requirement="required",
                collision_behavior="return_original_result",
                key_scope="capability",
                ttl_ms=86400000,
            ),
            execution=wire.ExecutionContract(
                supports_sync=True,
                supports_async=False,
                supports_streaming=False,
                supports_cancel=False,
                supports_retry=False,
                expected_completion="sync",
                retry_safety="unsafe",
            ),
            data=wire.DataContract(sensitivity="restricted", contains_pii=True, redaction_required=True),
            approval=_policy(),
            sla=wire.ServiceLevelContract(timeout_ms=60000, async_expected=False),
            compensation=wire.CompensationContract(mode="rollback_not_supported", requires_approval=True),
        ),
    ).wire()


@pytest.mark.requirement("wire:envelope:bytes")
@pytest.mark.parametrize(
    ("build", "schema"),
    [
        (_completed, "envelope"),
        (_failed, "envelope"),
        (_pending, "envelope"),
        (_error, "envelope"),
        (_event_stream, "envelope"),
        (_approval_request, "approval_request"),
        (_action_status, "envelope#/$defs/body"),
        (_capability, "capability"),
    ],
    ids=lambda v: v.__name__.strip("_") if callable(v) else None,
)
def test_what_a_server_sends_has_exactly_these_bytes(build: Callable[[], dict[str, Any]], schema: str) -> None:
    value = build()
    assert wire.write_json(value, indent=2) + b"\n" == (FIXTURES / f"{build.__name__.strip('_')}.json").read_bytes()
    assert wire.schema_violations(schema, value) == []


@pytest.mark.requirement("wire:envelope:registry")
def test_all_58_body_keys_are_known_to_registry_and_schema() -> None:
    definitions = wire.load_schema("envelope")["$defs"]
    assert len(wire.MESSAGE_TYPES) == 58
    assert list(definitions["body"]["properties"]) == list(wire.MESSAGE_TYPES)
    assert definitions["message_type"]["enum"] == list(wire.MESSAGE_TYPES.values())
    assert len(set(wire.MESSAGE_TYPES.values())) == 58


@pytest.mark.requirement("wire:envelope:registry")
@pytest.mark.parametrize("key", wire.MESSAGE_TYPES)
def test_an_envelope_of_every_kind_decodes_and_validates(key: str) -> None:
    model = wire.BODY_MODELS.get(key)
    body = EXAMPLES[model.__name__].value if model else {"of": "another issue"}
    envelope = wire.new_envelope({key: body}, message_id="msg_1", sent_at_ms=NOON)
    assert wire.body_key(envelope) == key
    assert isinstance(envelope.content, model or dict)
    raw = envelope.wire()
    assert raw["message_type"] == wire.MESSAGE_TYPES[key]
    assert raw["body"] == {key: body}
    assert wire.envelope_violations(raw) == []
    assert wire.Envelope.model_validate(raw) == envelope


@pytest.mark.requirement("wire:envelope:registry")
@pytest.mark.parametrize(
    ("body", "violation"),
    [
        ({}, "/body: does not have exactly one member"),
        ({"heartbeat": {}, "handshake": {}}, "/body: does not have exactly one member"),
        ({"no_such": {}}, "/body: has the unknown member no_such"),
        ({"heartbeat": []}, "/body/heartbeat: is not of type object"),
        ([], "/body: is not of type object"),
    ],
)
def test_a_body_that_is_not_one_known_member_is_refused(body: Any, violation: str) -> None:
    raw = {**EXAMPLES["Envelope"].value, "body": body}
    assert wire.envelope_violations(raw) == [violation]
    with pytest.raises(ValueError, match="body"):
        wire.Envelope.model_validate(raw)


@pytest.mark.requirement("wire:objects:no-echo", "wire:objects:unknown-members")
@pytest.mark.parametrize(
    ("change", "violations"),
    [
        ({"from": {"id": "human:mira", "kind": "hunter2"}}, ["/from/kind: is none of the allowed values"]),
        ({"from": {"id": "human:mira"}}, ["/from: lacks kind"]),
        ({"from": "hunter2"}, ["/from: is not of type object"]),
        ({"sent_at": 7}, ["/sent_at: is not of type string"]),
        ({"session_id": 7}, ["/session_id: is not of type string or null"]),
        ({"stranger": "hunter2"}, ["/: has the unknown member stranger"]),
        ({"x" * 200: 1}, ["/: has the unknown member " + "x" * 64]),
        (
            {"body": {"action_result": {"action_id": 1, "status": "hunter2", "message": [{"type": "json"}]}}},
            [
                "/body/action_result/action_id: is not of type string",
                "/body/action_result/message/0: lacks data",
                "/body/action_result/status: is none of the allowed values",
            ],
        ),
        (
            {"body": {"action_result": {"action_id": "a", "status": "failed", "message": [{"type": "hunter2"}]}}},
            ["/body/action_result/message/0: is none of the variants"],
        ),
        (
            {"body": {"action_list_request": {"limit": 2**32}}},
            ["/body/action_list_request/limit: is out of range"],
        ),
    ],
)
def test_a_schema_refusal_names_the_place_and_no_value(change: dict[str, Any], violations: list[str]) -> None:
    found = wire.envelope_violations({**EXAMPLES["Envelope"].value, **change})
    assert sorted(found) == violations
    assert "hunter2" not in "".join(found)


@pytest.mark.requirement("wire:objects:no-echo")
def test_a_schema_refusal_has_at_most_sixteen_texts() -> None:
    parts = [{"type": "text", "text": n} for n in range(40)]
    result = {"action_id": "act_1", "status": "completed", "message": parts}
    assert len(wire.schema_violations("action_result", result)) == 16


def test_the_contract_folder_holds_the_schemas() -> None:
    folder = wire.contract_folder()
    assert (folder / "schemas" / "aip" / "envelope.schema.json").is_file()
