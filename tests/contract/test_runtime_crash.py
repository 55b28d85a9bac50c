"""The process ends at a named point; the next start finds a definite state, at most one send, and nothing lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.runtime import FAULT_POINTS, Runtime
from tests.support.runtime_connector import ScriptedTemporary
from tests.support.runtime_site import Crash, Site, action, approval_request, decision, requester, reviewer

CERTAIN, UNCERTAIN, DONE, NOTHING = "runtime.interrupted", "connector.scripted.outcome_unknown", "completed", "unknown"

CRASHES: list[tuple[str, str, str, int]] = [
    # operation, point, what is known after the restart, sends before it
    ("session_chat", "after_claim", CERTAIN, 0),
    ("session_chat", "after_lock", CERTAIN, 0),
    ("session_chat", "after_prepare", CERTAIN, 0),
    ("session_chat", "after_intent", UNCERTAIN, 0),
    ("session_chat", "after_send", UNCERTAIN, 1),
    ("session_chat", "after_answer", UNCERTAIN, 1),
    ("session_chat", "before_settle", UNCERTAIN, 1),
    ("session_chat", "after_settle", DONE, 1),
    ("session_fork", "after_claim", CERTAIN, 0),
    ("session_fork", "after_intent", UNCERTAIN, 0),
    ("session_fork", "after_settle", DONE, 1),
    # Neither a lock nor a read: claim and intent are one commit, so a crash right after it may have sent.
    ("session_create", "after_claim", UNCERTAIN, 0),
    ("session_create", "after_prepare", UNCERTAIN, 0),
    ("session_create", "after_answer", UNCERTAIN, 1),
    ("session_create", "before_settle", UNCERTAIN, 1),
    ("session_create", "after_settle", DONE, 1),
    # A safe read leaves no record until it settles.
    ("session_get", "after_prepare", NOTHING, 0),
    ("session_get", "after_answer", NOTHING, 1),
    ("session_get", "before_settle", NOTHING, 1),
    ("session_get", "after_settle", DONE, 1),
    # Before a decision.
    ("session_delete", "after_claim", CERTAIN, 0),
    ("session_delete", "after_park", "pending_approval", 0),
]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def crash(site: Site, given: wire.Action, point: str) -> None:
    """Run a process that ends at `point`."""
    site.faults.point = point
    async with site.open() as runtime:
        with pytest.raises(Crash):
            await site.submit(runtime, given)


async def known(runtime: Runtime, action_id: str) -> str:
    status = await runtime.status(action_id, requester(), include_result=True)
    if status.result is not None and status.result.error is not None:
        return status.result.error.code
    return status.state


@pytest.mark.requirement("runtime:crash:definite", "runtime:fence:every-exit-settles", "runtime:crash:settled-stays")
@pytest.mark.parametrize(("operation", "point", "expected", "sends"), CRASHES)
async def test_a_crash_leaves_a_definite_state_and_at_most_one_send(
    site: Site, operation: str, point: str, expected: str, sends: int
) -> None:
    given = action(operation, idempotency_key="K")
    await crash(site, given, point)
    assert len(site.connector.sends) == sends
    async with site.open() as runtime, asyncio.timeout(30):
        assert await known(runtime, given.id) == expected
        assert len(site.connector.sends) == sends  # the start sent nothing
        again = await site.submit(runtime, action(operation, idempotency_key="K"))
    if expected in (CERTAIN, NOTHING):
        assert again.action_id != given.id
        assert again.status == ("pending_approval" if operation == "session_delete" else "completed")
    else:
        assert again.action_id == given.id
        assert isinstance(again.output, dict)
        assert again.output["idempotent_replay"] is True
        assert len(site.connector.sends) == sends
    if expected == UNCERTAIN:
        assert again.error is not None
        assert again.error.retryable is False
        assert again.error.details
        assert again.error.details["uncertain_outcome"] is True


@pytest.mark.requirement("runtime:crash:definite")
async def test_every_fault_point_is_crashed_somewhere() -> None:
    assert {point for _, point, _, _ in CRASHES} | {"after_decision", "before_publish"} == set(FAULT_POINTS)


@pytest.mark.requirement("runtime:serial:hold")
async def test_a_turn_lost_in_a_crash_keeps_its_session_closed_from_the_restart_on(site: Site) -> None:
    turn = action("session_chat")
    await crash(site, turn, "after_answer")
    site.clock.advance(50_000)
    async with site.open() as runtime:
        closed = await site.submit(runtime, action("session_fork", idempotency_key="F"))
    assert closed.error is not None
    assert closed.error.details
    assert closed.error.details["previous_uncertain"] == turn.id
    assert closed.error.retry_after_ms == 900_000


async def test_facts_of_the_intent_survive(site: Site) -> None:
    site.connector.facts = {"rows": 7, "title_hash": "ab"}
    for operation in ("session_chat", "session_create"):
        await crash(site, action(operation, idempotency_key="K"), "after_answer")
    rows = await site.rows("SELECT facts FROM actions")
    assert [row["facts"] for row in rows] == ['{"rows":7,"title_hash":"ab"}'] * 2


@pytest.mark.parametrize("point", ["after_claim", "after_intent", "after_answer"])
async def test_an_action_of_a_withdrawn_connector_still_ends(site: Site, point: str) -> None:
    given = action("session_chat")
    await crash(site, given, point)
    await site.edit("UPDATE actions SET connector_id = 'gone'")
    async with site.open() as runtime:
        assert await known(runtime, given.id) == (CERTAIN if point == "after_claim" else "runtime.outcome_unknown")


async def parked(site: Site, runtime: Runtime, **members: Any) -> tuple[wire.Action, wire.ApprovalRequest]:
    given = action("session_delete", **{"idempotency_key": "D", **members})
    return given, approval_request(await site.submit(runtime, given))


@pytest.mark.requirement("runtime:approval:runs-once", "runtime:crash:definite")
@pytest.mark.parametrize(
    ("point", "expected", "sends"),
    [
        ("after_decision", DONE, 1),
        ("after_lock", DONE, 1),
        ("after_prepare", DONE, 1),
        ("after_intent", UNCERTAIN, 0),
        ("after_send", UNCERTAIN, 1),
        ("after_answer", UNCERTAIN, 1),
        ("before_settle", UNCERTAIN, 1),
        ("after_settle", DONE, 1),
    ],
)
async def test_an_approved_action_runs_exactly_once_across_a_crash(
    site: Site, point: str, expected: str, sends: int
) -> None:
    async with site.open() as runtime:
        given, request = await parked(site, runtime)
        site.faults.point = point
        with pytest.raises(Crash):
            await runtime.decide(decision(request), reviewer())
    async with site.open() as runtime, asyncio.timeout(30):
        # The identical decision waits for what the restart resumes, and starts nothing.
        stream = await runtime.decide(decision(request), reviewer())
        assert [event.kind for event in stream.events] == ["aip.approval.granted", "aip.action.resumed_result"]
        assert await known(runtime, given.id) == expected
    async with site.open() as runtime:
        assert await known(runtime, given.id) == expected
    assert len(site.connector.sends) == sends


@pytest.mark.requirement("runtime:approval:runs-once")
async def test_a_resumed_action_whose_endpoint_is_down_fails_definitely_and_the_approval_shows_it(site: Site) -> None:
    async with site.open() as runtime:
        _, request = await parked(site, runtime)
        site.faults.point = "after_decision"
        with pytest.raises(Crash):
            await runtime.decide(decision(request), reviewer())
    site.connector.failures["prepare"] = ScriptedTemporary("connection refused")
    async with site.open() as runtime, asyncio.timeout(30):
        await runtime.decide(decision(request), reviewer())
        view = await runtime.approval(request.id, reviewer(), include_action_status=True)
    assert view.status == "approved"
    assert view.action_status is not None
    assert (view.action_status.state, view.action_status.queued_state) == ("failed", "failed")
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:approval:denied-expired")
async def test_a_denial_before_a_crash_stands(site: Site) -> None:
    async with site.open() as runtime:
        given, request = await parked(site, runtime)
        site.faults.point = "after_decision"
        with pytest.raises(Crash):
            await runtime.decide(decision(request, decision="denied"), reviewer())
    async with site.open() as runtime:
        assert await known(runtime, given.id) == "policy.approval_denied"


@pytest.mark.requirement("runtime:approval:denied-expired")
async def test_an_approval_whose_time_passed_while_nobody_ran_is_expired_at_the_start(site: Site) -> None:
    async with site.open() as runtime:
        given, _ = await parked(site, runtime)
    site.clock.advance(900_000)
    async with site.open():
        pass
    (row,) = await site.rows("SELECT state, parked, result FROM actions")
    assert (row["state"], row["parked"]) == ("failed", None)
    assert "policy.approval_expired" in row["result"]
    assert given.id
