"""What an approval freezes, releases and ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.errors import RequestRefused
from tests.support.runtime_connector import ScriptedRejected, ScriptedTemporary, capability
from tests.support.runtime_site import (
    READING,
    Crash,
    Site,
    action,
    approval_request,
    ask,
    decision,
    error_code,
    requester,
    reviewer,
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.requirement("runtime:approval:asked")
async def test_an_operation_that_needs_approval_is_parked_with_a_frozen_request(site: Site) -> None:
    given = action("session_delete", idempotency_key="D", id="act_parked")
    async with site.open() as runtime:
        pending = await site.submit(runtime, given)
        status = await runtime.status(given.id, requester())
        with pytest.raises(RequestRefused) as not_ready:
            await runtime.result(given.id, requester())
    request = approval_request(pending)
    requested_by = {"id": "agent:example:requester", "kind": "agent"}
    input_hash = wire.sha256_hex(
        {"capability_id": given.capability_id, "input": {"session_id": "s1"}, "transaction": None}
    )
    assert request.policy_snapshot is not None
    policy = request.policy_snapshot.wire()
    assert policy["separation_of_duties"]["requester_must_differ"] is True
    assert request.wire() == {
        "id": request.id,
        "action_id": "act_parked",
        "capability_id": capability("session_delete"),
        "requester": requested_by,
        "subject": requested_by,
        "approver_selector": {"type": "tenant_policy"},
        "reason": f"{policy['reason']} It holds 4 messages.",
        "evidence": [
            {"id": "evidence:input:act_parked", "kind": "input_snapshot", "hash": input_hash, "redacted": True},
            {
                "id": "evidence:policy:act_parked",
                "kind": "policy_decision",
                "hash": wire.sha256_hex(
                    {"action_id": "act_parked", "capability_id": given.capability_id, "approval_policy": policy}
                ),
                "redacted": False,
            },
            {
                "id": "evidence:target:act_parked",
                "kind": "target_snapshot",
                "hash": wire.sha256_hex(site.connector.snapshot),
                "redacted": True,
            },
        ],
        "expires_at": "2030-01-01T00:15:00Z",
        "policy_decision_id": "policy:act_parked",
        "identity": {"tenant": {"id": "tenant-a"}},
        "policy_snapshot": policy,
        "policy_hash": wire.sha256_hex(
            {
                "policy": policy,
                "action_id": "act_parked",
                "capability_id": given.capability_id,
                "requester_id": "agent:example:requester",
                "subject_id": None,
                "input_hash": input_hash,
            }
        ),
        "operator": requested_by,
        "risk": "high",
    }
    assert pending.status == "pending_approval"
    assert pending.output == {
        "requires_human_approval": True,
        "approval_id": request.id,
        "capability_id": given.capability_id,
        "reason": "allowed",
        "approval_request": request.wire(),
    }
    assert pending.error is not None
    assert (pending.error.code, pending.error.category, pending.error.retryable) == (
        "policy.human_approval_required",
        "policy",
        False,
    )
    assert pending.error.details == {
        "capability_id": given.capability_id,
        "risk": "high",
        "requires_human_approval": True,
        "approval_policy": policy,
        "approval_id": request.id,
    }
    assert (status.state, status.queued_state, status.approval_id) == ("pending_approval", "requires_human", request.id)
    assert not_ready.value.code == "action.result_not_ready"
    assert site.connector.seen("describe") == 1
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:asked", "runtime:fence:replay-sends-nothing")
async def test_asking_again_answers_the_same_approval(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        same = await site.submit(runtime, given)
        by_key = await site.submit(runtime, action("session_delete", idempotency_key="D"))
        listed = await runtime.approvals(reviewer())
    assert approval_request(same) == approval_request(by_key) == request
    assert isinstance(by_key.output, dict)
    assert (by_key.action_id, by_key.output["idempotent_replay"]) == (given.id, True)
    assert len(listed.approvals) == 1
    assert site.connector.seen("describe") == 1


@pytest.mark.requirement("runtime:approval:unreadable-target")
@pytest.mark.parametrize("failure", [ScriptedRejected("no such session"), ScriptedTemporary("endpoint down")])
async def test_a_target_that_cannot_be_read_asks_no_approval(site: Site, failure: Exception) -> None:
    site.connector.failures["describe"] = failure
    given = action("session_delete", idempotency_key="D")
    async with site.open() as runtime:
        result = await site.submit(runtime, given)
        assert (await runtime.approvals(reviewer())).approvals == []
        assert await runtime.result(given.id, requester()) == result
    assert result.status == "failed"
    assert result.error is not None
    assert "uncertain_outcome" not in (result.error.details or {})
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:runs-once")
async def test_an_approved_action_runs_in_the_name_of_its_requester_inside_the_decision(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        site.clock.advance(60_000)
        stream = await runtime.decide(decision(request), reviewer())
        result = await runtime.result(given.id, requester())
        status = await runtime.status(given.id, requester())
        by_key = await site.submit(runtime, action("session_delete", idempotency_key="D"))
    (sent,) = site.connector.sends
    assert (sent.action_id, sent.actor.principal_id, sent.actor.kind, sent.actor.tenant_id) == (
        given.id,
        "agent:example:requester",
        "agent",
        "tenant-a",
    )
    assert (dict(sent.input), sent.idempotency_key, sent.attempt) == ({"session_id": "s1"}, "D", 1)
    assert site.connector.described == [site.connector.snapshot]
    granted, resumed = stream.events
    assert (granted.id, granted.kind) == (f"evt_{request.id}_approved_decision", "aip.approval.granted")
    assert granted.data == {"approval_id": request.id, "decision": "approved", "decided_at": "2030-01-01T00:01:00Z"}
    assert (resumed.id, resumed.kind) == (f"evt_{request.id}_approved_result", "aip.action.resumed_result")
    assert resumed.data == {"approval_id": request.id, "action_id": given.id, "status": "completed"}
    assert stream.next_cursor is None
    assert result.status == "completed"
    assert (status.state, status.queued_state, status.result_status) == ("completed", "completed", "completed")
    assert (by_key.action_id, by_key.status) == (given.id, "completed")
    kinds = await site.rows("SELECT kind FROM events ORDER BY seq")
    assert [row["kind"] for row in kinds] == [
        "aip.approval.requested",
        "aip.approval.granted",
        "aip.action.result",
        "aip.approval.resumed_action",
        "aip.action.resumed_result",
    ]
    assert await site.rows("SELECT action_id FROM actions WHERE parked IS NOT NULL") == []


@pytest.mark.requirement("runtime:approval:input-bound")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.action.input.session_id", "s2"),
        ("$.action.input.extra", "x"),
        ("$.action.idempotency_key", "E"),
        ("$.action.capability_id", capability("session_fork")),
        ("$.action.id", 7),
        ("$.action.compliance", "x"),
        ("$.action.observability.span_id", "other"),
        ("$.principal.id", "agent:example:other"),
        ("$.principal.display_name", "Other"),
        ("$.issuer", "elsewhere"),
        ("$.session_id", "sess_other"),
        ("$.correlation_id", "corr_other"),
        ("$.added", 1),
    ],
)
async def test_a_stored_input_that_is_not_the_approved_one_is_not_executed(
    site: Site, path: str, value: object
) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
    await site.edit("UPDATE actions SET parked = json_set(parked, :path, :value)", path=path, value=value)
    async with site.open() as runtime:
        await runtime.decide(decision(request), reviewer())
        result = await runtime.result(given.id, requester())
    assert error_code(result) == "policy.approval_unverified"
    assert result.error is not None
    assert result.error.details
    assert result.error.details["approved_input_hash"] == request.evidence[0].hash
    assert "found_input_hash" in result.error.details
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:input-bound")
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE approvals SET snapshot = json_set(snapshot, '$.message_count', 9)",
        "UPDATE approvals SET snapshot = NULL",
        # Whoever rewrites both sides still can't meet the hash that the decider sent.
        "UPDATE approvals SET request = json_set(request, '$.policy_snapshot.ttl_ms', 1)",
        "UPDATE approvals SET decision = json_set(decision, '$.policy_hash', 'x')",
    ],
)
async def test_a_target_or_policy_that_is_not_the_approved_one_is_not_executed(site: Site, edit: str) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        site.faults.point = "after_decision"
        with pytest.raises(Crash):
            await runtime.decide(decision(request), reviewer())
    await site.edit(edit)
    async with site.open() as runtime, asyncio.timeout(30):
        while (await runtime.status(given.id, requester())).state == "running":
            await asyncio.wait((asyncio.create_task(asyncio.to_thread(int)),))
        result = await runtime.result(given.id, requester())
    assert error_code(result) == "policy.approval_unverified"
    assert site.connector.sends == []


async def test_a_reordered_stored_input_is_still_the_approved_one(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime, input={"session_id": "s1", "session_key": "k"})
    (row,) = await site.rows("SELECT parked FROM actions")
    parked = json.loads(row["parked"])
    parked["action"]["input"] = dict(reversed(list(parked["action"]["input"].items())))
    await site.edit("UPDATE actions SET parked = :parked", parked=json.dumps(parked))
    async with site.open() as runtime:
        await runtime.decide(decision(request), reviewer())
        assert (await runtime.result(given.id, requester())).status == "completed"


@pytest.mark.requirement("runtime:approval:denied-expired")
async def test_a_denial_fails_the_action_and_sends_nothing(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        denier = reviewer(scopes=READING)  # who may not see the input may still say no
        stream = await runtime.decide(decision(request, denier, decision="denied"), denier)
        result = await runtime.result(given.id, requester())
        by_key = await site.submit(runtime, action("session_delete", idempotency_key="D"))
    assert [(event.id, event.kind) for event in stream.events] == [
        (f"evt_{request.id}_denied_decision", "aip.approval.denied"),
        (f"evt_{request.id}_denied_result", "aip.action.approval_terminal"),
    ]
    assert result.error is not None
    assert (result.error.code, result.error.details) == (
        "policy.approval_denied",
        {"approval_id": request.id, "approval_status": "denied"},
    )
    assert (by_key.action_id, by_key.error) == (given.id, result.error)
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:denied-expired")
@pytest.mark.parametrize("first", ["decide", "status", "result", "approval", "approvals", "duplicate", "key"])
async def test_an_approval_that_nobody_decides_expires_before_it_is_shown(site: Site, first: str) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        site.clock.advance(900_000)
        if first == "decide":
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request), reviewer())
            assert refused.value.details["code"] == "policy.approval_expired"
        elif first == "status":
            assert (await runtime.status(given.id, requester())).state == "failed"
        elif first == "result":
            assert error_code(await runtime.result(given.id, requester())) == "policy.approval_expired"
        elif first == "approval":
            assert (await runtime.approval(request.id, reviewer())).status == "expired"
        elif first == "approvals":
            assert (await runtime.approvals(reviewer(), status="pending")).approvals == []
        else:
            again = given if first == "duplicate" else action("session_delete", idempotency_key="D")
            assert error_code(await site.submit(runtime, again)) == "policy.approval_expired"
        status = await runtime.status(given.id, requester(), include_result=True)
        view = await runtime.approval(request.id, reviewer())
    assert (status.state, status.queued_state, status.result_status) == ("failed", "expired", "failed")
    assert view.decision is not None
    assert (view.decision.approver.id, view.decision.decision_id) == (
        "system:aip-runtime",
        f"decision:{request.id}:expired",
    )
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:denied-expired")
async def test_a_duplicate_is_answered_with_an_end_that_came_while_it_was_looked_up(site: Site) -> None:
    async with site.open() as runtime:
        given, _ = await ask(site, runtime)
        site.clock.advance(900_000)
        # The clock ends it between two looks of the duplicate, or before, or after: whichever comes first.
        answers = await asyncio.gather(*(site.submit(runtime, given) for _ in range(20)))
    assert {error_code(answer) for answer in answers} == {"policy.approval_expired"}
