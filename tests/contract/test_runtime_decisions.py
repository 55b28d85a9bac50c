"""Who may decide what, and how often."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Caller, approvals
from tests.support.runtime_site import (
    READING,
    REVIEWING,
    Site,
    ask,
    authority,
    caller,
    decision,
    requester,
    reviewer,
)

SECOND = authority("human:example:second")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


Changes = dict[str, Any]
REFUSALS: list[tuple[str, Caller, Changes, str]] = [
    (
        "another approver is named",
        reviewer(),
        {"approver": {"id": "human:x", "kind": "human"}},
        "approver_identity_mismatch",
    ),
    (
        "another kind is named",
        reviewer(),
        {"approver": {"id": "human:example:reviewer", "kind": "agent"}},
        "approver_identity_mismatch",
    ),
    ("no authority", caller("human:example:nobody", scopes=REVIEWING), {}, "approver_unauthorized"),
    ("no decision id", reviewer(), {"decision_id": None}, "approval_decision_id_required"),
    ("a blank decision id", reviewer(), {"decision_id": "  "}, "approval_decision_id_required"),
    ("no policy hash", reviewer(), {"policy_hash": None}, "approval_hash_mismatch"),
    ("another policy hash", reviewer(), {"policy_hash": "0" * 64}, "approval_hash_mismatch"),
    ("authority of another tenant", caller("human:example:abroad", scopes=REVIEWING), {}, "approver_tenant_mismatch"),
    ("the requester", requester(scopes=REVIEWING), {}, "separation_of_duties.requester"),
    ("the requester denies", requester(scopes=REVIEWING), {"decision": "denied"}, "separation_of_duties.requester"),
    ("without the input scopes", reviewer(scopes=READING), {}, "approval_input_not_visible"),
    ("with one of them", reviewer(scopes=READING | {"approval:export"}), {}, "approval_input_not_visible"),
    ("no reason", reviewer(), {"reason": None}, "approval_evidence_missing"),
    ("a revocation of nothing", reviewer(), {"decision": "revoked"}, "approval_revocation_target_required"),
    (
        "a revocation of a vote that is not there",
        reviewer(),
        {"decision": "revoked", "target_decision_id": "d"},
        "approval_revocation_target_missing",
    ),
    (
        "a broken constraint",
        reviewer(),
        {"constraints": [{"field": "/session_id", "operator": "eq", "value": "s2"}]},
        "approval_constraint_failed",
    ),
    (
        "a constraint on nothing",
        reviewer(),
        {"constraints": [{"field": "/x", "operator": "eq", "value": 1}]},
        "approval_constraint_missing_field",
    ),
    # The first violated rule is told.
    ("requester with a wrong hash", requester(), {"policy_hash": "0" * 64, "reason": None}, "approval_hash_mismatch"),
    ("requester without scopes", requester(), {"reason": None}, "separation_of_duties.requester"),
]


@pytest.mark.requirement("runtime:approval:refusals")
@pytest.mark.parametrize(("by", "changes", "rule"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_a_refused_decision_names_its_rule_and_changes_nothing(
    site: Site, by: Caller, changes: Changes, rule: str
) -> None:
    site.authorities = (
        authority(),
        authority("agent:example:requester"),
        authority("human:example:abroad", tenant_id="tenant-b"),
    )
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.decide(decision(request, by, **changes), by)
        view = await runtime.approval(request.id, reviewer(), include_action_status=True)
    assert (refused.value.code, refused.value.details["code"]) == ("auth.not_authorized", f"policy.{rule}")
    assert (view.status, view.decision) == ("pending", None)
    assert view.action_status is not None
    assert view.action_status.state == "pending_approval"
    assert site.connector.sends == []
    assert given.id


@pytest.mark.requirement("runtime:approval:refusals")
@pytest.mark.parametrize("by", [reviewer(tenant="tenant-b"), reviewer(tenant=None)])
async def test_another_tenants_approval_looks_like_an_unknown_one(site: Site, by: Caller) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        found = []
        for approval_id in (request.id, "appr_nowhere"):
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request, by, approval_id=approval_id), by)
            with pytest.raises(RequestRefused) as unseen:
                await runtime.approval(approval_id, by)
            found.append((refused.value.code, refused.value.retryable, unseen.value.code))
    assert found == [("runtime.handler_failed", True, "approval.not_found")] * 2


async def test_without_an_authority_file_every_decision_is_refused(site: Site) -> None:
    site.authorities = ()
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.decide(decision(request), reviewer())
    assert refused.value.details["code"] == "policy.approver_unauthorized"


@pytest.mark.requirement("runtime:approval:identical-decision")
async def test_the_identical_decision_again_answers_the_recorded_outcome(site: Site) -> None:
    site.authorities = (authority(), SECOND)
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        first = await runtime.decide(decision(request), reviewer())
        assert await runtime.decide(decision(request), reviewer()) == first
        for changes, by in (
            ({"reason": "another"}, reviewer()),
            ({"decision": "denied"}, reviewer()),
            ({"decision_id": "decision:example:2"}, reviewer()),
            ({}, reviewer(principal="human:example:second")),
        ):
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request, by, **changes), by)
            assert refused.value.details["code"] == "policy.approval_not_pending"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:approval:decided-when-recorded", "runtime:approval:identical-decision")
@pytest.mark.parametrize("said", ["1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "2030-01-01T00:00:59Z"])
@pytest.mark.parametrize("verdict", ["approved", "denied"])
async def test_a_decision_is_recorded_with_the_time_of_recording(site: Site, said: str, verdict: str) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        site.clock.advance(60_000)
        first = await runtime.decide(decision(request, decision=verdict, decided_at=said), reviewer())
        site.clock.advance(1_000)
        again = decision(request, decision=verdict, decided_at="2030-01-01T00:01:01Z")
        assert await runtime.decide(again, reviewer()) == first
        recorded = (await runtime.approval(request.id, reviewer())).decision
    told = first.events[0].data
    assert recorded is not None
    assert told is not None
    assert recorded.decided_at == told["decided_at"] == "2030-01-01T00:01:00Z"


@pytest.mark.requirement("runtime:approval:runs-once")
async def test_of_two_decisions_at_once_one_counts_and_the_action_runs_at_most_once(site: Site) -> None:
    site.authorities = (authority(), SECOND)
    other = reviewer(principal="human:example:second")
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        outcomes = await asyncio.gather(
            runtime.decide(decision(request), reviewer()),
            runtime.decide(decision(request), reviewer()),
            runtime.decide(decision(request, other, decision="denied", decision_id="decision:2"), other),
            return_exceptions=True,
        )
        view = await runtime.approval(request.id, reviewer())
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(refused) == (1 if view.status == "approved" else 2)
    assert len(site.connector.sends) == (1 if view.status == "approved" else 0)


@pytest.mark.requirement("runtime:approval:in-time")
@pytest.mark.parametrize(("late_ms", "counts"), [(-1, True), (0, False)])
async def test_a_decision_that_is_written_after_the_end_of_its_time_does_not_count(
    site: Site, late_ms: int, counts: bool
) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        assert request.expires_at is not None
        now = wire.parse_rfc3339(request.expires_at) + late_ms

    def late(connection: Connection) -> bool:
        row = approvals.fetch(connection, tenant="tenant-a", approval_id=request.id)
        assert row is not None
        return approvals.conclude(connection, row, decision(request), reserved_until=now, now=now)

    async with site.store(read_only=False) as database:
        assert await database.write(late) is counts
    assert await site.rows("SELECT status FROM approvals") == [{"status": "approved" if counts else "pending"}]
