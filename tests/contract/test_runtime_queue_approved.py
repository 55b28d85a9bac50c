"""Approved actions that meet a busy session: they wait in the queue as long as their approval is in force."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import Runtime
from tests.support.runtime_queue import ended, events_of, owner
from tests.support.runtime_site import CrashAt, Site, action, approval_request, ask, decision, reviewer

pytestmark = pytest.mark.requirement("queue:approved:waits-for-session")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@asynccontextmanager
async def busy_session(site: Site, runtime: Runtime) -> AsyncIterator[None]:
    """Let a turn hold the session s1 for as long as the block lasts."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def send(call: Call) -> Answer:
        if call.capability_id.endswith("session_chat"):
            entered.set()
            await release.wait()
        return Answer(output={"ok": True})

    site.connector.send = send
    turn = asyncio.create_task(site.submit(runtime, action("session_chat")))
    await entered.wait()
    try:
        yield
    finally:
        release.set()
        await turn


async def approved_in_vain(site: Site, runtime: Runtime) -> tuple[wire.Action, wire.ApprovalRequest]:
    """Approve a delete and let its first wait for the session run out."""
    given, request = await ask(site, runtime)
    deciding = asyncio.create_task(runtime.decide(decision(request), reviewer()))
    await site.clock.until_asleep(10)
    site.clock.advance(10_000)
    answered = await deciding
    assert [event.kind for event in answered.events] == ["aip.approval.granted"]
    return given, request


def sent(site: Site, given: wire.Action) -> list[int]:
    return [call.attempt for call in site.connector.sends if call.action_id == given.id]


async def test_it_runs_once_when_the_session_is_free(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        async with busy_session(site, runtime):
            given, request = await approved_in_vain(site, runtime)
            status = await runtime.status(given.id, owner())
            assert (status.state, status.queued_state, status.approval_id) == ("queued", "queued", request.id)
            assert isinstance(status.retry, dict)
            assert status.retry["last_error"]["code"] == "connector.scripted.session_busy"
            await site.clock.until_asleep(1)
        site.clock.advance(1000)
        assert (await ended(runtime, given.id)).state == "completed"
        kinds = [kind for kind, _ in await events_of(runtime, given.id)]
        view = await runtime.approval(request.id, reviewer())
    assert sent(site, given) == [2]
    assert view.status == "approved"
    assert kinds.count("aip.action.retry_scheduled") == kinds.count("aip.action.resumed_result") == 1


async def test_a_restart_leaves_it_waiting_with_its_approval(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30), busy_session(site, runtime):
        given, _ = await approved_in_vain(site, runtime)
    async with site.open() as runtime, asyncio.timeout(30):
        assert (await runtime.status(given.id, owner())).state == "queued"
        await site.clock.until_asleep(1)
        site.clock.advance(1000)
        assert (await ended(runtime, given.id)).state == "completed"
    assert sent(site, given) == [2]


async def test_a_crash_of_its_second_attempt_before_the_intent_leaves_it_waiting_too(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        async with busy_session(site, runtime):
            given, _ = await approved_in_vain(site, runtime)
            await site.clock.until_asleep(1)
        site.faults = faults = CrashAt("after_prepare")
    async with site.open() as runtime, asyncio.timeout(30):
        await site.clock.until_asleep(1)
        site.clock.advance(1000)
        while "after_prepare" not in faults.reached:
            await runtime.status(given.id, owner())
    async with site.open() as runtime, asyncio.timeout(30):
        assert (await ended(runtime, given.id)).state == "completed"
    assert sent(site, given) == [2]


async def test_it_fails_when_the_approval_s_time_is_over_and_asks_a_new_one_when_sent_again(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        async with busy_session(site, runtime):
            given, request = await approved_in_vain(site, runtime)
            await site.clock.until_asleep(1)
            site.clock.advance(900_000)
            status = await ended(runtime, given.id)
        assert status.result is not None
        assert status.result.error is not None
        error = status.result.error
        assert (status.state, error.code, error.retryable) == (
            "dead_lettered",
            "connector.scripted.session_busy",
            True,
        )
        again = await site.submit(runtime, given, owner())
        assert (again.status, approval_request(again).id == request.id) == ("pending_approval", False)
    assert sent(site, given) == []


async def test_what_waits_with_its_approval_is_cancelled_at_once(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        async with busy_session(site, runtime):
            given, _ = await approved_in_vain(site, runtime)
            assert (await runtime.cancel(given.id, owner())).status == "cancelled"
        site.clock.advance(1000)
        assert (await ended(runtime, given.id)).state == "cancelled"
    assert sent(site, given) == []
