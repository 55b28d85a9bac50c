"""The runtime's rules that need no store."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed, AipError, RequestRefused
from aip_hermes.runtime import digests, failures, policy
from aip_hermes.runtime.answers import answer, replay, stored_answer, stored_failure
from aip_hermes.runtime.constraints import check_constraints
from aip_hermes.runtime.waiting import Overrun, within
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_site import action, authority


@pytest.mark.requirement("runtime:codes:table")
@pytest.mark.parametrize(
    ("error", "code", "category", "retryable", "carrier"),
    [
        (failures.ActionIdConflict, "action.id_conflict", "permanent", False, RequestRefused),
        (failures.CapabilityUnknown, "resource.not_found", "permanent", False, RequestRefused),
        (failures.NotAuthorized, "auth.not_authorized", "auth", False, RequestRefused),
        (failures.TenantMismatch, "auth.tenant_mismatch", "auth", False, RequestRefused),
        (failures.ActionNotFound, "action.not_found", "permanent", False, RequestRefused),
        (failures.ResultNotReady, "action.result_not_ready", "temporary", False, RequestRefused),
        (failures.ApprovalNotFound, "approval.not_found", "permanent", False, RequestRefused),
        (failures.ApprovalUnknown, "runtime.handler_failed", "temporary", True, RequestRefused),
        (failures.MessageReplayed, "replay.message_id", "auth", False, RequestRefused),
        (failures.InvalidCursor, "query.invalid_cursor", "permanent", False, RequestRefused),
        (failures.InputInvalid, "action.input_schema_invalid", "permanent", False, ActionFailed),
        (failures.OutputInvalid, "action.output_schema_invalid", "permanent", False, ActionFailed),
        (failures.ModeUnsupported, "execution.mode_unsupported", "policy", False, ActionFailed),
        (failures.TransactionUnsupported, "transaction.unsupported", "policy", False, ActionFailed),
        (failures.KeyRequired, "idempotency.required", "policy", False, ActionFailed),
        (failures.KeyScopeMissing, "idempotency.scope_missing", "policy", False, ActionFailed),
        (failures.KeyConflict, "idempotency.conflict", "policy", False, ActionFailed),
        (failures.KeyInProgress, "idempotency.in_progress", "temporary", True, ActionFailed),
        (failures.HumanApprovalRequired, "policy.human_approval_required", "policy", False, ActionFailed),
        (failures.ApprovalUnverified, "policy.approval_unverified", "policy", False, ActionFailed),
        (failures.ApprovalDenied, "policy.approval_denied", "policy", False, ActionFailed),
        (failures.ApprovalExpired, "policy.approval_expired", "policy", False, ActionFailed),
        (failures.ApprovalRevoked, "policy.approval_revoked", "policy", False, ActionFailed),
        (failures.TimeoutExceeded, "sla.timeout_exceeded", "temporary", False, ActionFailed),
        (failures.MemberRefused, "action.invalid_input", "permanent", False, ActionFailed),
        (failures.Interrupted, "runtime.interrupted", "temporary", True, ActionFailed),
    ],
)
def test_a_code_has_its_published_category_and_carrier(
    error: type[AipError], code: str, category: str, retryable: bool, carrier: type[AipError]
) -> None:
    raised = error("…")
    assert (raised.code, raised.category, raised.retryable) == (code, category, retryable)
    assert isinstance(raised, carrier)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"observability": {"trace_id": "t2"}}, True),
        ({"mode": "sync"}, True),
        ({"identity": {"tenant": {"id": "claimed"}}}, True),
        ({"transaction": {"mode": "execute", "transaction_id": "txn_2"}}, False),
        ({"input": {"body": {"id": "other"}}}, False),
        ({"input": {"body": {"id": "s1"}, "extra": 1}}, False),
        ({"idempotency_key": "K"}, False),
        ({"timeout_ms": 5}, False),
        ({"capability_id": "cap:hermes_agent:other:session_create"}, False),
    ],
)
@pytest.mark.requirement("runtime:duplicate:conflict")
def test_content_is_everything_but_tracing_identity_and_approval(given: dict[str, Any], same: bool) -> None:
    one = action(id="act_1")
    other = action(id="act_1", **given)
    assert (digests.content_hash(one) == digests.content_hash(other)) is same


def test_a_transaction_id_counts_for_the_approval_and_not_for_the_fence() -> None:
    one = action(id="act_1", transaction={"mode": "execute", "transaction_id": "txn_1"})
    other = action(id="act_1", transaction={"mode": "execute", "transaction_id": "txn_2"})
    assert digests.fence_input_hash(one) == digests.fence_input_hash(other)
    assert digests.frozen_input_hash(one) != digests.frozen_input_hash(other)


def test_the_input_hash_follows_the_published_recipe() -> None:
    one = action("session_delete", input={"b": 1, "a": [True, None]})
    text = (
        b'{"capability_id":"cap:hermes_agent:primary:session_delete",'
        b'"input":{"a":[true,null],"b":1},"transaction":null}'
    )
    assert digests.fence_input_hash(one) == digests.frozen_input_hash(one) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("operator", "field", "value", "code"),
    [
        ("eq", "/session_id", "s1", None),
        ("eq", "session_id", "s1", None),
        ("eq", "/session_id", "s2", "failed"),
        ("eq", "/flag", 1, "failed"),
        ("neq", "/session_id", "s2", None),
        ("lt", "/count", 4, None),
        ("lte", "/count", 3, None),
        ("gt", "/count", 3, "failed"),
        ("gte", "/count", 3, None),
        ("gt", "/session_id", 3, "failed"),
        ("contains", "/tags", "b", None),
        ("contains", "/session_id", "s", None),
        ("contains", "/count", 3, "failed"),
        ("max_length", "/tags", 2, None),
        ("max_length", "/session_id", 1, "failed"),
        ("min_length", "/session_id", 2, None),
        ("in", "/session_id", ["s1", "s2"], None),
        ("in", "/session_id", "s1", "failed"),
        ("eq", "/tags/1", "b", None),
        ("eq", "/a~1b", 1, None),
        ("eq", "/missing", 1, "missing_field"),
        ("eq", "/tags/9", "b", "missing_field"),
        ("like", "/session_id", "s1", "failed"),
    ],
)
def test_a_constraint_holds_or_names_what_failed(operator: str, field: str, value: object, code: str | None) -> None:
    given = {"session_id": "s1", "count": 3, "flag": True, "tags": ["a", "b"], "a/b": 1}
    constraint = wire.ApprovalConstraint(field=field, operator=operator, value=value)
    if code is None:
        check_constraints([constraint], given)
        return
    with pytest.raises(failures.NotAuthorized) as refused:
        check_constraints([constraint], given)
    assert refused.value.details["code"] == f"policy.approval_constraint_{code}"


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (("*",), True),
        (("cap:hermes_agent:primary:*",), True),
        (("cap:hermes_agent:*:session_create", "cap:other:*"), True),
        (("cap:hermes_agent:primary:session_get",), False),
        (("CAP:*",), False),
        ((), False),
    ],
)
@pytest.mark.requirement("runtime:checks:invocation")
def test_an_invocation_needs_a_pattern(patterns: tuple[str, ...], allowed: bool) -> None:
    if allowed:
        policy.check_invocation("cap:hermes_agent:primary:session_create", patterns)
        return
    with pytest.raises(failures.NotAuthorized):
        policy.check_invocation("cap:hermes_agent:primary:session_create", patterns)


@pytest.mark.parametrize("kind", ["tenant", "customer", "contact"])
def test_who_only_appears_in_records_may_not_invoke(kind: str) -> None:
    with pytest.raises(failures.NotAuthorized):
        policy.check_kind(wire.Principal.model_validate({"id": "x:1", "kind": kind}))


@pytest.mark.parametrize(
    ("to", "scope", "allowed"),
    [("agent:b", "action:invoke", True), ("agent:c", "action:invoke", False), ("agent:b", "  ", False)],
)
def test_a_delegation_chain_ends_at_the_caller_with_a_scope(to: str, scope: str, allowed: bool) -> None:
    hop = wire.DelegationEntry.model_validate(
        {
            "from": {"id": "human:a", "kind": "human"},
            "to": {"id": to, "kind": "agent"},
            "scope": scope,
            "delegated_at": "2030-01-01T00:00:00Z",
        }
    )
    principal = wire.Principal(id="agent:b", kind="agent")
    if allowed:
        policy.check_delegation([hop], principal)
        return
    with pytest.raises(failures.NotAuthorized):
        policy.check_delegation([hop], principal)


@pytest.mark.parametrize(
    ("selector", "changes", "fits"),
    [
        ({"type": "tenant_policy"}, {}, True),
        ({"type": "tenant_policy"}, {"tenant_policies": ()}, True),
        ({"type": "tenant_policy"}, {"tenant_id": "tenant-b"}, False),
        ({"type": "role", "name": "session-reviewer"}, {}, True),
        ({"type": "role", "name": "admin"}, {}, False),
        ({"type": "group", "name": "g"}, {"groups": ("g",)}, True),
        ({"type": "external_system", "system": "tickets"}, {}, False),
        ({"type": "principal", "id": "human:example:reviewer"}, {}, True),
        ({"type": "principal", "id": "human:other"}, {}, False),
    ],
)
def test_an_authority_fits_a_selector(selector: dict[str, str], changes: dict[str, Any], fits: bool) -> None:
    parsed = wire.ApprovalPolicy.model_validate({"required": True, "approver_selector": selector}).approver_selector
    assert authority(**changes).fits(parsed, tenant="tenant-a") is fits


@pytest.mark.requirement("runtime:fence:replay-sends-nothing")
@pytest.mark.parametrize(
    ("stored", "output"),
    [
        ({"status": "completed", "output": {"id": "x"}}, {"id": "x"}),
        ({"status": "completed", "output": ["x"]}, {}),
        ({"status": "failed", "error": {"code": "c", "message": "m", "category": "connector"}}, {}),
    ],
)
def test_a_replay_is_marked_whatever_the_output_was(stored: dict[str, Any], output: dict[str, Any]) -> None:
    result = replay("act_1", stored, first_seen_at=0, expires_at=None, input_differs=False)
    assert result.action_id == "act_1"
    assert result.output == {
        **output,
        "_aip": {
            "replay": {
                "original_action_id": "act_1",
                "first_seen_at": "1970-01-01T00:00:00Z",
                "expires_at": None,
                "input_differs": False,
            }
        },
        "idempotent_replay": True,
    }


def test_a_replay_keeps_evidence_that_stands_beside_its_mark() -> None:
    stored = {"status": "completed", "output": {"_aip": {"turn": {"persisted": "yes"}}}}
    result = replay("act_1", stored, first_seen_at=0, expires_at=1000, input_differs=True)
    assert isinstance(result.output, dict)
    assert result.output["_aip"]["turn"] == {"persisted": "yes"}
    assert stored == {"status": "completed", "output": {"_aip": {"turn": {"persisted": "yes"}}}}


def test_the_message_parts_are_derived_when_a_result_is_read() -> None:
    stored = stored_answer(Answer(output={"id": "x"}, text="hello"))
    assert stored == {"status": "completed", "output": {"id": "x"}, "text": "hello"}
    assert answer("act_1", stored).wire()["message"] == [
        {"type": "text", "text": "hello", "format": "plain"},
        {"type": "json", "data": {"id": "x"}},
    ]


def test_an_uncertain_failure_says_so_in_its_details() -> None:
    stored = stored_failure(failures.TimeoutExceeded("late", uncertain=True))
    assert stored["error"]["details"] == {"uncertain_outcome": True}


async def test_work_in_time_returns_and_work_over_time_is_ended() -> None:
    clock = ManualClock()
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def quick() -> int:
        return 3

    assert await within(1, quick(), clock=clock) == 3
    waiting = asyncio.create_task(within(1, endless(), clock=clock))
    await clock.until_asleep(1)
    clock.advance(1000)
    async with asyncio.timeout(30):
        with pytest.raises(Overrun):
            await waiting
        await ended.wait()
