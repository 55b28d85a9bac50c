"""Queued actions that fail: tried again as declared, else dead letters, never again after an uncertain end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime import MessageContext, Runtime
from aip_hermes.runtime.cancel_requests import LOOK_S
from tests.support.runtime_connector import ScriptedCredential, ScriptedRejected, ScriptedTemporary
from tests.support.runtime_queue import ended, events_of, owner, queued, queueing_site
from tests.support.runtime_site import CrashAt, Site, action

DOWN = ScriptedTemporary("connection refused")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return queueing_site(tmp_path, failures={"send": DOWN})


def retry_of(status: wire.ActionStatus) -> dict[str, Any]:
    assert isinstance(status.retry, dict)
    return status.retry


async def waiting_again(site: Site, runtime: Runtime, action_id: str, *, seconds: float) -> wire.ActionStatus:
    """Wait until the next try is that far away."""
    await site.clock.until_asleep(seconds)
    status = await runtime.status(action_id, owner())
    assert (status.state, status.queued_state, status.result_status) == ("queued", "queued", None)
    return status


@pytest.mark.requirement("queue:retry:declared", "queue:retry:back-off", "queue:dead-letter:readable")
async def test_a_safe_read_is_tried_three_times_and_is_a_dead_letter_then(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get")
        for attempts, seconds in ((1, 1), (2, 2)):
            status = await waiting_again(site, runtime, given.id, seconds=seconds)
            retry = retry_of(status)
            assert (retry["attempts"], retry["max_attempts"]) == (attempts, 3)
            assert retry["last_error"]["code"] == DOWN.code
            assert retry["next_attempt_at"] > retry["last_attempted_at"]
            site.clock.advance(seconds * 1000)
        status = await ended(runtime, given.id)
        result = await runtime.result(given.id, owner())
    assert (status.state, status.queued_state, status.result_status) == ("dead_lettered", "failed", "failed")
    retry = retry_of(status)
    assert (retry["attempts"], retry["dead_letter_reason"]) == (3, "connection refused")
    assert retry["last_error"] == (result.error.wire() if result.error else None)
    assert status.result == result
    assert result.error is not None
    assert (result.error.code, result.error.category, result.error.retryable) == (DOWN.code, "temporary", True)
    assert [call.attempt for call in site.connector.sends] == [1, 2, 3]


@pytest.mark.requirement("queue:retry:declared")
async def test_a_try_that_succeeds_ends_the_action(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get")
        await waiting_again(site, runtime, given.id, seconds=1)
        site.connector.failures.clear()
        site.clock.advance(1000)
        status = await ended(runtime, given.id)
    assert (status.state, status.retry) == ("completed", None)
    assert len(site.connector.sends) == 2


@pytest.mark.requirement("queue:retry:declared", "queue:retry:certain-only", "queue:dead-letter:readable")
@pytest.mark.parametrize(
    ("operation", "failure"),
    [
        pytest.param("session_chat", DOWN, id="a mutation is not declared repeatable"),
        pytest.param("session_create", DOWN, id="nor is a keyed one"),
        pytest.param("session_get", ScriptedRejected("no such session"), id="final"),
        pytest.param("session_get", ScriptedCredential("the key was refused"), id="outside the request, and final"),
        pytest.param("session_get", ScriptedTemporary("lost", uncertain=True), id="uncertain"),
        pytest.param("session_chat", ScriptedTemporary("lost", uncertain=True), id="uncertain mutation"),
        pytest.param("session_get", ScriptedTemporary("down", retryable=False), id="said not to be retryable"),
    ],
)
async def test_what_may_not_be_tried_again_ends_at_once(site: Site, operation: str, failure: ActionFailed) -> None:
    site.connector.failures["send"] = failure
    async with site.open() as runtime:
        given = await queued(runtime, operation, idempotency_key="K")
        status = await ended(runtime, given.id)
    assert (status.state, status.result_status, retry_of(status)["attempts"]) == ("dead_lettered", "failed", 1)
    assert status.result is not None
    assert status.result.error is not None
    assert status.result.error.code == failure.code
    assert isinstance(status.result.error.details, dict | None)
    assert (status.result.error.details or {}).get("uncertain_outcome", False) is failure.uncertain
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("queue:retry:back-off")
@pytest.mark.parametrize(
    ("asked_ms", "waits_ms"), [(7_000, 7_000), (250, 250), (0, 1_000), (None, 1_000), (90_000, 30_000)]
)
async def test_what_the_provider_asks_for_is_waited(site: Site, asked_ms: int | None, waits_ms: int) -> None:
    site.connector.failures["send"] = ScriptedTemporary("busy", retry_after_ms=asked_ms)
    async with site.open() as runtime, asyncio.timeout(30):
        given = await queued(runtime, "session_get")
        while (status := await runtime.status(given.id, owner())).retry is None:
            pass
        assert wire.parse_rfc3339(retry_of(status)["next_attempt_at"]) == site.clock.now_ms() + waits_ms
        while waits_ms > 0:
            await site.clock.until_asleep(min(waits_ms, 20_000) / 1000)
            assert len(site.connector.sends) == 1
            site.clock.advance(min(waits_ms, 20_000))
            waits_ms -= 20_000
        while len(site.connector.sends) < 2:
            await runtime.status(given.id, owner())


@pytest.mark.requirement("queue:retry:durable")
async def test_a_restart_neither_forgets_nor_adds_a_try(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get")
        before = await waiting_again(site, runtime, given.id, seconds=1)
    async with site.open() as runtime:
        after = await waiting_again(site, runtime, given.id, seconds=1)
        assert after == before
        assert len(site.connector.sends) == 1
        site.clock.advance(1000)
        await waiting_again(site, runtime, given.id, seconds=2)
        site.clock.advance(2000)
        assert retry_of(await ended(runtime, given.id))["attempts"] == 3
    assert len(site.connector.sends) == 3


@pytest.mark.requirement("queue:retry:durable")
async def test_a_try_that_a_crash_cuts_off_is_not_counted(site: Site) -> None:
    site.faults = CrashAt("before_settle")
    async with site.open() as runtime:
        given = await queued(runtime, "session_get")
        async with asyncio.timeout(30):
            while "before_settle" not in site.faults.reached:
                await runtime.status(given.id, owner())
    async with site.open() as runtime:
        status = await waiting_again(site, runtime, given.id, seconds=1)
    assert retry_of(status)["attempts"] == 1
    assert len(site.connector.sends) == 2


@pytest.mark.requirement("queue:retry:told", "queue:dead-letter:readable")
async def test_tries_and_the_end_are_events_and_wake_a_follower(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_get", mode="async")
        async with runtime.watching(given.id, owner()) as changed:
            await runtime.submit(given, owner(), MessageContext())
            for seconds in (1, 2):
                await changed.wait()
                changed.clear()
                await waiting_again(site, runtime, given.id, seconds=seconds)
                site.clock.advance(seconds * 1000)
            await changed.wait()
        await ended(runtime, given.id)
        events = await events_of(runtime, given.id)
    kinds = [kind for kind, _ in events]
    assert kinds == [*["aip.action.retry_scheduled"] * 2, "aip.action.result", "aip.action.worker_result"]
    assert events[0][1] == {
        "attempt": 1,
        "attempts": 1,
        "last_attempted_at": "2030-01-01T00:00:00Z",
        "next_attempt_at": "2030-01-01T00:00:01Z",
        "error_code": DOWN.code,
    }
    assert events[-1][1] == {
        "status": "failed",
        "attempt": 3,
        "attempts": 3,
        "dead_lettered": True,
        "error_code": DOWN.code,
    }


@pytest.mark.requirement("queue:retry:key-waits")
async def test_key_and_action_id_are_under_way_between_two_tries(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get", idempotency_key="K")
        await waiting_again(site, runtime, given.id, seconds=1)
        for again in (given, action("session_get", mode="async", idempotency_key="K")):
            answered = await runtime.submit(again, owner(), MessageContext())
            assert isinstance(answered, wire.Ack)
            assert answered.action_id == given.id
        assert len(site.connector.sends) == 1


@pytest.mark.requirement("queue:dead-letter:again")
async def test_a_dead_letter_whose_failure_binds_nobody_is_queued_again(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get", idempotency_key="K")
        for seconds in (1, 2):
            await waiting_again(site, runtime, given.id, seconds=seconds)
            site.clock.advance(seconds * 1000)
        assert (await ended(runtime, given.id)).state == "dead_lettered"
        assert isinstance(await runtime.submit(given, owner(), MessageContext()), wire.Ack)
        status = await waiting_again(site, runtime, given.id, seconds=1)
        assert retry_of(status)["attempts"] == 1
        site.connector.failures.clear()
        site.clock.advance(1000)
        assert (await ended(runtime, given.id)).state == "completed"
    assert [call.attempt for call in site.connector.sends] == [1, 2, 3, 4, 5]


@pytest.mark.requirement("queue:cancel:between-tries")
async def test_what_waits_for_another_try_is_cancelled_at_once(site: Site) -> None:
    async with site.open() as runtime:
        given = await queued(runtime, "session_get")
        await waiting_again(site, runtime, given.id, seconds=1)
        assert (await runtime.cancel(given.id, owner())).status == "cancelled"
        site.clock.advance(1000)
        assert (await ended(runtime, given.id)).state == "cancelled"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("queue:cancel:between-tries")
async def test_a_cancel_that_comes_while_a_try_fails_is_the_end(site: Site) -> None:
    """The try has its failure in hand when somebody asks: that failure, or the cancel, and no further try."""
    settled = asyncio.Event()

    class Asking(CrashAt):
        async def reach(self, point: str) -> None:
            if point == "before_settle":
                cancelling.append(asyncio.create_task(runtime.cancel(given.id, owner())))
            if point == "after_settle":
                settled.set()

    cancelling: list[asyncio.Task[wire.ActionResult]] = []
    given = action("session_get", mode="async")
    site.faults = Asking()
    async with site.open() as runtime, asyncio.timeout(30):
        await runtime.submit(given, owner(), MessageContext())
        await settled.wait()  # before that, time that passes would only end the patience of who asked
        began = site.clock.now_ms()
        while not cancelling[0].done():
            await runtime.status(given.id, owner())
            if site.clock.now_ms() == began and site.clock.sleeping(LOOK_S):
                site.clock.advance(round(LOOK_S * 1000))  # once: the next try is not due by then
        assert (await cancelling[0]).status in ("cancelled", "failed")
        assert (await ended(runtime, given.id)).state in ("cancelled", "dead_lettered")
