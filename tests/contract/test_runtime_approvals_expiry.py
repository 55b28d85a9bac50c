"""Approvals whose time is up, several at once, and what a decision meets meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.contract.handler import Call, JsonObject
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime
from tests.support.runtime_connector import ScriptedRejected
from tests.support.runtime_site import (
    READING,
    Site,
    action,
    ask,
    authority,
    caller,
    decision,
    error_code,
    requester,
    reviewer,
)

LIFE_MS = 900_000


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def until_ended(site: Site, runtime: Runtime, action_id: str, *, ms: int) -> None:
    """Move the time and wait until the action's followers are woken; nothing is asked that would end it."""
    async with asyncio.timeout(30), runtime.watching(action_id, requester()) as changed:
        for _ in range(ms // 30_000):
            site.clock.advance(30_000)
        await changed.wait()


@pytest.mark.requirement("approval:expiry:worker", "approval:transitions-audited")
async def test_an_approval_ends_when_its_time_is_up_and_nobody_asks(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await until_ended(site, runtime, given.id, ms=LIFE_MS)
    # Looked at in the store: no query ended it.
    [row] = await site.rows("SELECT status, decided_by FROM approvals")
    [stored] = await site.rows("SELECT state, parked, frees_key FROM actions")
    [key] = await site.rows("SELECT settled FROM idempotency_keys")
    [audit] = await site.rows('SELECT actor_id FROM audit WHERE record LIKE \'%"status":"expired"%\'')
    kinds = [each["kind"] for each in await site.rows("SELECT kind FROM events ORDER BY seq")]
    assert row == {"status": "expired", "decided_by": "system:aip-runtime"}
    assert stored == {"state": "failed", "parked": None, "frees_key": 0}
    assert (key["settled"], audit["actor_id"]) == (1, "system:aip-runtime")
    assert kinds == [
        "aip.approval.requested",
        "aip.approval.expired",
        "aip.action.result",
        "aip.action.approval_terminal",
    ]
    assert request.id


@pytest.mark.requirement("approval:expiry:worker")
async def test_votes_that_did_not_suffice_do_not_keep_an_approval_alive(site: Site) -> None:
    site.connector.approval = ApprovalTerms(approvers=2, ttl_ms=60_000)
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await runtime.decide(decision(request), reviewer())
        await until_ended(site, runtime, given.id, ms=60_000)
        assert error_code(await runtime.result(given.id, requester())) == "policy.approval_expired"
        assert (await runtime.approval(request.id, reviewer())).status == "expired"
    assert site.connector.sends == []


@pytest.mark.requirement("approval:asked-again", "approval:expiry:worker")
async def test_after_an_expiry_a_new_action_asks_anew_and_the_old_one_stays_ended(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        await until_ended(site, runtime, given.id, ms=LIFE_MS)
        by_key = await site.submit(runtime, action("session_delete", idempotency_key="D"))
        with pytest.raises(RequestRefused) as late:
            await runtime.decide(decision(request), reviewer())
        _, anew = await ask(site, runtime, idempotency_key="E")
        await runtime.decide(decision(anew), reviewer())
    assert (by_key.action_id, error_code(by_key)) == (given.id, "policy.approval_expired")
    assert late.value.details["code"] == "policy.approval_expired"
    assert anew.id != request.id
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("approval:independent")
async def test_several_pending_approvals_are_decided_independently(site: Site) -> None:
    async with site.open() as runtime:
        asked = [await ask(site, runtime, idempotency_key=key) for key in "ABC"]
        await runtime.decide(decision(asked[1][1]), reviewer())
        states = [(await runtime.status(given.id, requester())).state for given, _ in asked]
    assert states == ["pending_approval", "completed", "pending_approval"]


CHILDREN = {"session_id": "s1", "orphaned": {"count": 1, "ids": ["c1"]}}


@pytest.mark.requirement("approval:context")
async def test_the_context_is_read_live_each_time_with_the_votes_and_the_frozen_target(site: Site) -> None:
    site.connector.approval = ApprovalTerms(approvers=2)
    answers: list[JsonObject] = [CHILDREN, {**CHILDREN, "orphaned": {"count": 0, "ids": []}}]

    async def children(call: Call) -> JsonObject:
        assert dict(call.input) == {"session_id": "s1"}
        assert call.actor.principal_id == "agent:example:requester"
        return answers.pop(0)

    site.connector.context = children
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        before = await runtime.approval_context(request.id, reviewer())
        await runtime.decide(decision(request), reviewer())
        after = await runtime.approval_context(request.id, requester())
    assert (before["touches"], before["not_available"]) == (CHILDREN, None)
    assert (before["approvals"], before["approvals_needed"], before["decisions"]) == (0, 2, [])
    assert before["target_snapshot"] == site.connector.snapshot
    assert before["read_at"] == "2030-01-01T00:00:00Z"
    assert after["touches"]["orphaned"]["count"] == 0
    [vote] = after["decisions"]
    assert (vote["approver"]["id"], vote["reason"], vote["terminal"]) == (
        "human:example:reviewer",
        "case closed",
        False,
    )
    assert (after["approvals"], site.connector.sends) == (1, [])


async def _nothing(call: Call) -> JsonObject | None:
    return None


async def _refused(call: Call) -> JsonObject | None:
    raise ScriptedRejected("no such session")


async def _broken(call: Call) -> JsonObject | None:
    raise ZeroDivisionError


@pytest.mark.requirement("approval:context")
@pytest.mark.parametrize(
    ("read", "said"),
    [
        (_nothing, "nothing to say"),
        (_refused, "connector.scripted.rejected: no such session"),
        (_broken, "does not declare"),
    ],
)
async def test_what_cannot_be_read_is_said_with_its_reason(site: Site, read: object, said: str) -> None:
    site.connector.context = read  # type: ignore[assignment]
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        found = await runtime.approval_context(request.id, reviewer())
    assert found["touches"] is None
    assert said in found["not_available"]


@pytest.mark.requirement("approval:context")
async def test_an_endpoint_that_does_not_answer_is_waited_for_two_seconds(site: Site) -> None:
    async def never(call: Call) -> JsonObject | None:
        await asyncio.Event().wait()
        return None

    site.connector.context = never
    async with site.open() as runtime, asyncio.timeout(30):
        _, request = await ask(site, runtime)
        asking = asyncio.create_task(runtime.approval_context(request.id, reviewer()))
        await site.clock.until_asleep(2)
        site.clock.advance(2_000)
        found = await asking
    assert found["touches"] is None
    assert "within 2 s" in found["not_available"]


@pytest.mark.requirement("approval:context")
async def test_what_is_decided_is_not_looked_at_any_more(site: Site) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        await runtime.decide(decision(request, decision="denied"), reviewer())
        found = await runtime.approval_context(request.id, reviewer())
    assert (found["status"], found["touches"]) == ("denied", None)
    assert "denied" in found["not_available"]
    assert site.connector.seen("context") == 0


@pytest.mark.requirement("approval:context")
@pytest.mark.parametrize(
    ("by", "code"),
    [
        (reviewer(tenant="tenant-b"), "approval.not_found"),
        (caller("agent:example:other"), "auth.not_authorized"),
        (reviewer(scopes=frozenset({"action:read"})), "auth.not_authorized"),
    ],
)
async def test_the_context_is_for_whom_the_approval_is_for(site: Site, by: object, code: str) -> None:
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.approval_context(request.id, by)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert site.connector.seen("context") == 0


async def test_who_voted_sees_the_approval_also_without_an_authority_later(site: Site) -> None:
    site.connector.approval = ApprovalTerms(approvers=2)
    site.authorities = (authority(), authority("human:example:second"))
    second = reviewer(principal="human:example:second", scopes=READING | {"approval:export", "approval:sensitive"})
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        await runtime.decide(decision(request, second), second)
    site.authorities = (authority(),)
    async with site.open() as runtime:
        assert (await runtime.approval(request.id, second)).status == "pending"


@pytest.mark.requirement("approval:expiry:worker")
async def test_a_short_time_is_kept_however_long_the_clock_meant_to_rest(site: Site) -> None:
    site.connector.approval = ApprovalTerms(ttl_ms=7_000)
    async with site.open() as runtime, asyncio.timeout(30):
        await site.clock.until_asleep(30)  # nothing waits yet
        given, _ = await ask(site, runtime)
        async with runtime.watching(given.id, requester()) as changed:
            await site.clock.until_asleep(7)
            site.clock.advance(7_000)
            await changed.wait()
    assert await site.rows("SELECT status FROM approvals") == [{"status": "expired"}]
