"""Several people decide: votes, denials, revocations, and those who decide at the same moment."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.database import Connection
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Caller, Runtime, approvals
from tests.support.runtime_site import (
    READING,
    Crash,
    Site,
    action,
    ask,
    authority,
    decision,
    error_code,
    requester,
    reviewer,
)

FIRST, SECOND, THIRD = (f"human:example:{name}" for name in ("reviewer", "second", "third"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path, authorities=[authority(name) for name in (FIRST, SECOND, THIRD)])
    site.connector.approval = ApprovalTerms(approvers=2)
    return site


def who(name: str) -> Caller:
    return reviewer(principal=name)


def by(request: wire.ApprovalRequest, name: str, **changes: Any) -> wire.ApprovalDecision:
    """Return an approval by `name` under an id of its own."""
    return decision(request, who(name), **{"decision_id": f"decision:of:{name}", **changes})


async def refusal(runtime: Runtime, given: wire.ApprovalDecision, caller: Caller) -> str:
    with pytest.raises(RequestRefused) as refused:
        await runtime.decide(given, caller)
    assert refused.value.code == "auth.not_authorized"
    rule: str = refused.value.details["code"]
    return rule.removeprefix("policy.")


@pytest.mark.requirement("approval:quorum:counts-different-approvers", "approval:transitions-audited")
async def test_the_action_runs_when_enough_different_people_approved(site: Site) -> None:
    ticket = {"id": "t1", "kind": "external_ticket", "uri": "https://tickets.example/1", "redacted": False}
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        vote = await runtime.decide(by(request, FIRST, evidence=[ticket], reason="first"), who(FIRST))
        pending = await runtime.approval(request.id, who(SECOND), include_action_status=True)
        assert site.connector.sends == []
        end = await runtime.decide(by(request, SECOND, reason="second"), who(SECOND))
        result = await runtime.result(given.id, requester())
    [told] = vote.events
    assert told.kind == "aip.approval.vote_recorded"
    assert told.data is not None
    assert (told.data["approvals"], told.data["approvals_needed"]) == (1, 2)
    assert (pending.status, pending.action_status and pending.action_status.state) == ("pending", "pending_approval")
    assert [event.kind for event in end.events] == ["aip.approval.granted", "aip.action.resumed_result"]
    assert (result.status, len(site.connector.sends)) == ("completed", 1)
    kept = await site.rows("SELECT approver_id, terminal, record FROM approval_decisions ORDER BY terminal")
    assert [(row["approver_id"], row["terminal"]) for row in kept] == [(FIRST, 0), (SECOND, 1)]
    assert [json.loads(row["record"])["reason"] for row in kept] == ["first", "second"]
    assert json.loads(kept[0]["record"])["evidence"] == [ticket]
    audits = await site.rows("SELECT actor_id, record FROM audit WHERE audit_id LIKE 'audit:approval:%'")
    told_by = {(row["actor_id"], json.loads(row["record"])["status"]) for row in audits}
    assert told_by == {("agent:example:requester", "pending"), (FIRST, "pending"), (SECOND, "approved")}


@pytest.mark.requirement("approval:quorum:repeated-vote")
async def test_a_vote_counts_once_however_often_it_is_sent(site: Site) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        first = await runtime.decide(by(request, FIRST), who(FIRST))
        assert await runtime.decide(by(request, FIRST), who(FIRST)) == first
        assert await refusal(runtime, by(request, FIRST, decision_id="another"), who(FIRST)) == "approval_vote_repeated"
        assert await refusal(runtime, by(request, FIRST, reason="other"), who(FIRST)) == "approval_decision_conflict"
        taken = by(request, SECOND, decision_id=f"decision:of:{FIRST}")
        assert await refusal(runtime, taken, who(SECOND)) == "approval_decision_conflict"
        reserved = by(request, SECOND, decision_id=f"decision:{request.id}:expired")
        assert await refusal(runtime, reserved, who(SECOND)) == "approval_decision_id_required"
        assert (await runtime.approval(request.id, who(SECOND))).status == "pending"
    assert site.connector.sends == []


@pytest.mark.requirement("approval:quorum:repeated-vote")
async def test_a_vote_survives_a_restart_and_still_counts_once(site: Site) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        site.faults.point = "after_decision"
        with pytest.raises(Crash):
            await runtime.decide(by(request, FIRST), who(FIRST))
    async with site.open() as runtime:
        [told] = (await runtime.decide(by(request, FIRST), who(FIRST))).events
        assert told.kind == "aip.approval.vote_recorded"
        assert await refusal(runtime, by(request, FIRST, decision_id="another"), who(FIRST)) == "approval_vote_repeated"
        await runtime.decide(by(request, SECOND), who(SECOND))
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("approval:quorum:one-denial-ends")
@pytest.mark.parametrize("denier", [FIRST, SECOND])
async def test_one_denial_ends_it_also_from_who_approved_before(site: Site, denier: str) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        end = await runtime.decide(by(request, denier, decision="denied", decision_id="no"), who(denier))
        assert error_code(await runtime.result(given.id, requester())) == "policy.approval_denied"
        assert await refusal(runtime, by(request, THIRD), who(THIRD)) == "approval_not_pending"
    assert [event.kind for event in end.events] == ["aip.approval.denied", "aip.action.approval_terminal"]
    assert site.connector.sends == []


@pytest.mark.requirement("approval:quorum:at-once")
async def test_of_three_approvals_at_once_two_count_and_the_action_runs_once(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        outcomes = await asyncio.gather(
            *(runtime.decide(by(request, name), who(name)) for name in (FIRST, SECOND, THIRD)), return_exceptions=True
        )
        result = await runtime.result(given.id, requester())
    refused = [outcome for outcome in outcomes if isinstance(outcome, RequestRefused)]
    assert [outcome.details["code"] for outcome in refused] == ["policy.approval_not_pending"]
    assert (result.status, len(site.connector.sends)) == ("completed", 1)


@pytest.mark.requirement("approval:quorum:at-once", "approval:quorum:repeated-vote")
async def test_two_approvals_of_one_person_at_once_are_one(site: Site) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        twice = (by(request, FIRST, decision_id=name) for name in ("a", "b"))
        outcomes = await asyncio.gather(*(runtime.decide(each, who(FIRST)) for each in twice), return_exceptions=True)
        context = await runtime.approval_context(request.id, who(FIRST))
    refused = [outcome for outcome in outcomes if isinstance(outcome, RequestRefused)]
    assert [outcome.details["code"] for outcome in refused] == ["policy.approval_vote_repeated"]
    assert (context["approvals"], context["approvals_needed"], site.connector.sends) == (1, 2, [])


@pytest.mark.requirement("approval:revoked")
@pytest.mark.parametrize(
    ("target", "code"),
    [(None, "approval_revocation_target_required"), ("never", "approval_revocation_target_missing")],
)
async def test_a_revocation_names_an_approval_that_was_given(site: Site, target: str | None, code: str) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        given = by(request, SECOND, decision="revoked", target_decision_id=target)
        assert await refusal(runtime, given, who(SECOND)) == code


@pytest.mark.requirement("approval:revoked")
async def test_a_given_vote_can_be_revoked_while_others_are_missing(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        revoking = by(request, FIRST, decision="revoked", decision_id="back", target_decision_id=f"decision:of:{FIRST}")
        end = await runtime.decide(revoking, who(FIRST))
        assert await runtime.decide(revoking, who(FIRST)) == end
        assert error_code(await runtime.result(given.id, requester())) == "policy.approval_revoked"
        assert (await runtime.approval(request.id, who(FIRST))).status == "revoked"
    assert [event.kind for event in end.events] == ["aip.approval.revoked", "aip.action.approval_terminal"]
    assert site.connector.sends == []


@pytest.mark.requirement("approval:revoked")
async def test_an_approval_whose_action_still_waits_for_its_session_can_be_revoked(site: Site) -> None:
    site.connector.approval = None
    entered, release = asyncio.Event(), asyncio.Event()

    async def slow(call: Call) -> Answer:
        entered.set()
        await release.wait()
        return Answer(output={"ok": True})

    async with site.open() as runtime, asyncio.timeout(30):
        given, request = await ask(site, runtime)
        site.connector.send = slow
        turn = asyncio.create_task(site.submit(runtime, action("session_chat")))
        await entered.wait()
        deciding = asyncio.create_task(runtime.decide(by(request, FIRST), who(FIRST)))
        await site.clock.until_asleep(10)
        revoking = by(
            request, SECOND, decision="revoked", decision_id="back", target_decision_id=f"decision:of:{FIRST}"
        )
        end = await runtime.decide(revoking, who(SECOND))
        granted = await deciding
        release.set()
        await turn
        assert error_code(await runtime.result(given.id, requester())) == "policy.approval_revoked"
        # The session is free: another delete of it runs.
        _, anew = await ask(site, runtime, idempotency_key="E")
        await runtime.decide(by(anew, FIRST), who(FIRST))
    assert [event.kind for event in end.events] == ["aip.approval.revoked", "aip.action.approval_terminal"]
    assert granted.events[0].kind == "aip.approval.granted"
    assert [call.action_id for call in site.connector.sends if call.action_id in (given.id, anew.action_id)] == [
        anew.action_id
    ]


@pytest.mark.requirement("approval:revoked")
async def test_what_was_sent_can_no_longer_be_revoked(site: Site) -> None:
    site.connector.approval = None
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        revoking = by(
            request, SECOND, decision="revoked", decision_id="back", target_decision_id=f"decision:of:{FIRST}"
        )
        assert await refusal(runtime, revoking, who(SECOND)) == "approval_not_pending"
        assert (await runtime.result(given.id, requester())).status == "completed"
        assert (await runtime.approval(request.id, who(FIRST))).status == "approved"


@pytest.mark.requirement("approval:revoked")
async def test_cancelling_a_pending_action_revokes_its_approval_with_the_votes_that_it_has(site: Site) -> None:
    canceller = requester(scopes=READING | {"action:write"})
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        cancelled = await runtime.cancel(given.id, canceller, reason="no longer wanted")
        assert (await runtime.approval(request.id, who(FIRST))).status == "revoked"
        assert await refusal(runtime, by(request, SECOND), who(SECOND)) == "approval_not_pending"
    assert (cancelled.status, site.connector.sends) == ("cancelled", [])


@pytest.mark.requirement("approval:quorum:counts-different-approvers")
async def test_the_view_shows_the_latest_vote_and_a_voter_finds_what_it_voted_on(site: Site) -> None:
    reading = who(FIRST).scopes | {"receipt:read"}
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST, reason="first"), who(FIRST))
        pending = await runtime.approval(request.id, who(SECOND))
        mine = await runtime.approvals(who(SECOND), approver=FIRST)
        none = await runtime.approvals(who(SECOND), approver=SECOND)
        await runtime.decide(by(request, SECOND, reason="second"), who(SECOND))
        ended = await runtime.approval(
            request.id, reviewer(principal=FIRST, scopes=frozenset(reading)), include_receipts=True
        )
        with pytest.raises(RequestRefused) as refused:
            await runtime.approval(request.id, who(FIRST), include_receipts=True)
    assert pending.decision is not None
    assert (pending.status, pending.decision.reason) == ("pending", "first")
    assert ([each.request.id for each in mine.approvals], none.approvals) == ([request.id], [])
    assert ended.decision is not None
    assert (ended.status, ended.decision.reason) == ("approved", "second")
    assert ended.receipt_chain is not None
    assert [receipt.receipt_type for receipt in ended.receipt_chain.receipts] == [
        "policy_decision",
        "approval_requested",
        "approval_granted",
        "result_returned",
    ]
    assert wire.receipt_root(ended.receipt_chain.receipts) == ended.receipt_chain.root_hash
    assert refused.value.code == "auth.not_authorized"


@pytest.mark.requirement("runtime:approval:runs-once", "approval:quorum:at-once")
@pytest.mark.parametrize("point", ["after_decision", "after_lock", "after_prepare"])
async def test_the_last_vote_releases_the_action_once_across_a_crash(site: Site, point: str) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        site.faults.point = point
        with pytest.raises(Crash):
            await runtime.decide(by(request, SECOND), who(SECOND))
    assert site.connector.sends == []
    async with site.open() as runtime, asyncio.timeout(30):
        # The identical decision waits for what it released, and changes nothing.
        stream = await runtime.decide(by(request, SECOND), who(SECOND))
        result = await runtime.result(given.id, requester())
    assert [event.kind for event in stream.events] == ["aip.approval.granted", "aip.action.resumed_result"]
    assert (result.status, len(site.connector.sends)) == ("completed", 1)


@pytest.mark.requirement("approval:revoked")
async def test_a_revocation_survives_a_crash_right_after_it(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(by(request, FIRST), who(FIRST))
        revoking = by(request, FIRST, decision="revoked", decision_id="x", target_decision_id=f"decision:of:{FIRST}")
        site.faults.point = "after_decision"
        with pytest.raises(Crash):
            await runtime.decide(revoking, who(FIRST))
    async with site.open() as runtime:
        assert error_code(await runtime.result(given.id, requester())) == "policy.approval_revoked"
        again = await runtime.decide(revoking, who(FIRST))
    assert [event.kind for event in again.events] == ["aip.approval.revoked", "aip.action.approval_terminal"]
    assert site.connector.sends == []


@pytest.mark.requirement("approval:revoked")
@pytest.mark.parametrize(
    ("point", "counts"), [("after_decision", True), ("after_prepare", True), ("after_intent", False)]
)
async def test_a_revocation_that_is_written_after_the_intent_changes_nothing(
    site: Site, point: str, counts: bool
) -> None:
    site.connector.approval = None
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        site.faults.point = point
        with pytest.raises(Crash):
            await runtime.decide(by(request, FIRST), who(FIRST))
    given = by(request, SECOND, decision="revoked", decision_id="x", target_decision_id=f"decision:of:{FIRST}")

    def late(connection: Connection) -> bool:
        row = approvals.fetch(connection, tenant="tenant-a", approval_id=request.id)
        assert row is not None
        now = site.clock.now_ms()
        return approvals.withdraw(connection, row, given, now=now)

    async with site.store(read_only=False) as database:
        assert await database.write(late) is counts
    [row] = await site.rows("SELECT status FROM approvals")
    [kept] = await site.rows("SELECT state FROM actions")
    assert (row["status"], kept["state"]) == (("revoked", "failed") if counts else ("approved", "running"))
