"""Asynchronous actions: checked at once, waiting durably, run once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.runtime import MessageContext, RuntimeLimits
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_queue import ended, owner, queued, queueing_site
from tests.support.runtime_site import Crash, CrashAt, action


@pytest.mark.requirement("runtime:queue:acknowledged", "runtime:queue:runs-once")
async def test_a_queued_action_runs_once_and_keeps_its_result(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    async with site.open() as runtime:
        given = await queued(runtime)
        status = await ended(runtime, given.id)
        assert (status.state, status.queued_state, status.result_status) == ("completed", "completed", "completed")
        again = await runtime.submit(given, owner(), MessageContext())
        assert isinstance(again, wire.ActionResult)
    assert len(site.connector.sends) == 1
    rows = await site.rows("SELECT parked FROM actions")
    assert [row["parked"] for row in rows] == [None]


@FILE_STORE
@pytest.mark.requirement("runtime:queue:crash", "runtime:queue:runs-once")
async def test_it_waits_from_its_claim_on_whoever_is_there_to_acknowledge_it(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    site.faults, site.limits = CrashAt("after_claim"), RuntimeLimits(queue_width=0)
    given = action("session_chat", mode="async")
    async with site.open() as runtime:
        with pytest.raises(Crash):
            await runtime.submit(given, owner(), MessageContext())
        assert (await runtime.status(given.id, owner())).state == "queued"
    site.limits = RuntimeLimits()
    async with site.open() as runtime:
        assert (await ended(runtime, given.id)).state == "completed"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:queue:acknowledged")
async def test_what_is_wrong_is_refused_at_once(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    async with site.open() as runtime:
        bad = action("session_chat", mode="async", input={"session_id": "s1"})
        answered = await runtime.submit(bad, owner(), MessageContext())
        assert isinstance(answered, wire.ActionResult)
        assert answered.error is not None
        assert answered.error.code == "action.input_schema_invalid"
        assert (await runtime.status(bad.id, owner())).state == "unknown"
        unsupported = action("session_fork", mode="async", idempotency_key="k")
        refused = await runtime.submit(unsupported, owner(), MessageContext())
        assert isinstance(refused, wire.ActionResult)
        assert refused.error is not None
        assert refused.error.code == "execution.mode_unsupported"
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:queue:acknowledged")
async def test_who_asks_again_while_it_waits_is_told_that_it_waits(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(_: Any) -> Answer:
        await go_on.wait()
        return Answer(output={"done": True})

    site = queueing_site(tmp_path, send=slow)
    async with site.open() as runtime:
        given = await queued(runtime, idempotency_key="k1")
        for again in (given, action("session_chat", mode="async", idempotency_key="k1")):
            answered = await runtime.submit(again, owner(), MessageContext())
            assert isinstance(answered, wire.Ack)
            assert answered.action_id == given.id
        go_on.set()
        assert (await ended(runtime, given.id)).state == "completed"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("runtime:queue:crash", "runtime:queue:runs-once")
@pytest.mark.parametrize(
    ("point", "state", "sends"),
    [("after_lock", "completed", 1), ("after_prepare", "completed", 1), ("after_intent", "dead_lettered", 0)],
)
async def test_a_crash_of_the_worker_leaves_a_definite_state(
    tmp_path: Path, point: str, state: str, sends: int
) -> None:
    site = queueing_site(tmp_path)
    site.faults = CrashAt(point)
    async with site.open() as runtime:
        given = await queued(runtime)
        async with asyncio.timeout(30):
            while point not in site.faults.reached:
                await runtime.status(given.id, owner())
    async with site.open() as runtime:
        status = await ended(runtime, given.id)
    if site.shared is not None and sends:
        # Its lease outlasts the time that it may wait: certain, and nothing was sent.
        assert status.result is not None
        assert status.result.error is not None
        assert (status.result.error.code, site.connector.sends) == ("sla.queue_delay_exceeded", [])
        return
    assert status.state == state
    assert len(site.connector.sends) == sends
    if state == "dead_lettered":
        assert status.result is not None
        assert status.result.error is not None
        assert isinstance(status.result.error.details, dict)
        assert status.result.error.details["uncertain_outcome"] is True


@pytest.mark.requirement("runtime:queue:crash")
async def test_an_input_that_can_no_longer_be_read_ends_certain(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    site.faults = CrashAt("after_lock")
    async with site.open() as runtime:
        given = await queued(runtime)
        async with asyncio.timeout(30):
            while "after_lock" not in site.faults.reached:
                await runtime.status(given.id, owner())
    await site.edit("UPDATE actions SET parked = '{}'")
    async with site.open() as runtime:
        status = await ended(runtime, given.id)
        assert status.result is not None
        assert status.result.error is not None
        assert (status.result.error.code, status.result.error.retryable) == ("runtime.interrupted", True)
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:queue:delay")
async def test_who_waited_too_long_fails_and_sends_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    site = queueing_site(tmp_path)
    site.clock = clock
    site.faults = CrashAt("after_lock")
    async with site.open() as runtime:
        given = await queued(runtime)
        async with asyncio.timeout(30):
            while "after_lock" not in site.faults.reached:
                await runtime.status(given.id, owner())
    clock.advance(10_001)
    async with site.open() as runtime:
        status = await ended(runtime, given.id)
        assert status.result is not None
        assert status.result.error is not None
        assert status.result.error.code == "sla.queue_delay_exceeded"
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:queue:delay")
async def test_of_many_that_waited_too_long_none_runs_after_all(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    site.limits = RuntimeLimits(queue_width=0)
    async with site.open() as runtime:
        given = [(await queued(runtime, input={"session_id": f"s{n}", "message": "hi"})).id for n in range(70)]
    site.clock.advance(10_001)
    site.limits = RuntimeLimits()
    async with site.open() as runtime:
        found = [await ended(runtime, action_id) for action_id in given]
    codes = {status.result.error.code for status in found if status.result is not None and status.result.error}
    assert codes == {"sla.queue_delay_exceeded"}
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:queue:cancel")
async def test_cancelling_what_waits_sends_nothing(tmp_path: Path) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Answer:
        started.set()
        await go_on.wait()
        return Answer(output={"done": True})

    site = queueing_site(tmp_path, send=slow)
    async with site.open() as runtime:
        first = await queued(runtime)
        await started.wait()
        waiting = await queued(runtime)
        cancelled = await runtime.cancel(waiting.id, owner())
        assert cancelled.status == "cancelled"
        go_on.set()
        assert (await ended(runtime, first.id)).state == "completed"
        assert (await ended(runtime, waiting.id)).state == "cancelled"
    assert len(site.connector.sends) == 1


def test_a_crash_is_no_exception_that_a_worker_could_swallow() -> None:
    assert not issubclass(Crash, Exception)
