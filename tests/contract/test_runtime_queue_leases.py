"""Leases: one owner at a time, renewed while it works, void when its process is gone; and waiting that ends in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import MessageContext, Runtime, RuntimeLimits
from aip_hermes.runtime.queue import LONGEST_REST_S
from tests.support.postgres import FILE_STORE
from tests.support.runtime_queue import ended, events_of, owner, queued, queueing_site
from tests.support.runtime_site import CrashAt, Site, action

HEARTBEAT_S = RuntimeLimits().heartbeat_ms / 1000
TAKEN_OVER = "UPDATE actions SET lease_number = lease_number + 1, lease_owner = 'worker:other'"
LEASE = "SELECT state, tries, lease_owner, lease_number, lease_expires_at FROM actions WHERE action_id = :action_id"


class Gate:
    """A provider that answers when it is told to. sending: it has been reached. left: nobody waits for it any more."""

    def __init__(self) -> None:
        self.sending, self.go_on, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, _: Call) -> Answer:
        self.sending.set()
        try:
            await self.go_on.wait()
        finally:
            self.left.set()
        return Answer(output={"done": True})


@asynccontextmanager
async def opened(site: Site, gate: Gate) -> AsyncIterator[Runtime]:
    """Start the runtime; whatever waits at the gate is let go before it closes."""
    async with site.open() as runtime, asyncio.timeout(30):
        try:
            yield runtime
        finally:
            gate.go_on.set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def site(tmp_path: Path, gate: Gate) -> Site:
    return queueing_site(tmp_path, send=gate)


def lease_of(status: wire.ActionStatus) -> dict[str, Any]:
    assert isinstance(status.lease, dict)
    return status.lease


async def until_lost(runtime: Runtime, given: wire.Action, logs: Sequence[Mapping[str, Any]]) -> None:
    """Wait until the worker says that the action is no longer its own."""
    async with asyncio.timeout(30):
        while not any(entry["event"] == "queue.lease_lost" for entry in logs):
            await runtime.status(given.id, owner())


@pytest.mark.requirement("queue:lease:one-owner")
async def test_what_runs_has_a_lease_that_its_worker_renews(site: Site, gate: Gate) -> None:
    async with opened(site, gate) as runtime:
        given = await queued(runtime)
        await gate.sending.wait()
        first = lease_of(await runtime.status(given.id, owner()))
        assert first["expires_at"] == "2030-01-01T00:00:30Z"
        await site.clock.until_asleep(HEARTBEAT_S)
        site.clock.advance(round(HEARTBEAT_S * 1000))
        while lease_of(await runtime.status(given.id, owner())) == first:
            pass
        renewed = lease_of(await runtime.status(given.id, owner()))
        assert renewed == {**first, "expires_at": "2030-01-01T00:00:37.5Z"}
        gate.go_on.set()
        status = await ended(runtime, given.id)
    assert (status.state, status.lease) == ("completed", None)


@pytest.mark.requirement("queue:lease:one-owner")
@pytest.mark.parametrize("operation", ["session_chat", "session_get"])
async def test_a_lease_that_somebody_else_took_over_settles_nothing(site: Site, gate: Gate, operation: str) -> None:
    async with opened(site, gate) as runtime:
        given = await queued(runtime, operation)
        await gate.sending.wait()
        await site.edit(TAKEN_OVER)
        with capture_logs() as logs:
            gate.go_on.set()
            await until_lost(runtime, given, logs)
        (row,) = await site.rows(LEASE, action_id=given.id)
        assert (row["state"], row["lease_owner"]) == ("running", "worker:other")
        assert await events_of(runtime, given.id) == []


@pytest.mark.requirement("queue:lease:one-owner")
async def test_work_whose_lease_is_gone_stops_at_the_next_heartbeat(site: Site, gate: Gate) -> None:
    async with opened(site, gate) as runtime:
        given = await queued(runtime, "session_get")
        await gate.sending.wait()
        await site.edit(TAKEN_OVER)
        await site.clock.until_asleep(HEARTBEAT_S)
        with capture_logs() as logs:
            site.clock.advance(round(HEARTBEAT_S * 1000))
            await until_lost(runtime, given, logs)
        async with asyncio.timeout(30):
            await gate.left.wait()
        assert (await runtime.status(given.id, owner())).state == "running"


@FILE_STORE
@pytest.mark.requirement("queue:lease:void-at-start")
async def test_a_start_waits_for_no_lease_of_a_process_that_is_gone(tmp_path: Path) -> None:
    site = queueing_site(tmp_path)
    site.faults = CrashAt("after_lock")
    async with site.open() as runtime, asyncio.timeout(30):
        given = await queued(runtime)
        while "after_lock" not in site.faults.reached:
            await runtime.status(given.id, owner())
    (left,) = await site.rows(LEASE, action_id=given.id)
    assert (left["state"], left["tries"]) == ("running", 1)
    assert left["lease_expires_at"] > site.clock.now_ms()
    async with site.open() as runtime:
        assert (await ended(runtime, given.id)).state == "completed"
    (row,) = await site.rows(LEASE, action_id=given.id)
    assert (row["tries"], row["lease_owner"]) == (1, None)
    assert row["lease_number"] > left["lease_number"]


@pytest.mark.requirement("queue:delay:in-time")
async def test_what_waits_too_long_ends_in_time_while_every_worker_is_busy(site: Site, gate: Gate) -> None:
    site.limits = RuntimeLimits(queue_width=1)
    async with opened(site, gate) as runtime:
        first = await queued(runtime)
        await gate.sending.wait()
        second = await queued(runtime, idempotency_key="K")
        await site.clock.until_asleep(10)
        site.clock.advance(9_999)
        assert (await runtime.status(second.id, owner())).state == "queued"
        await site.clock.until_asleep(0.001)
        site.clock.advance(1)
        late = await ended(runtime, second.id)
        assert (await runtime.status(first.id, owner())).state == "running"
        again = await runtime.submit(
            action("session_chat", mode="async", idempotency_key="K"), owner(), MessageContext()
        )
        assert isinstance(again, wire.Ack)
        assert again.action_id != second.id
        gate.go_on.set()
        await ended(runtime, first.id)
    assert late.state == "dead_lettered"
    assert late.result is not None
    assert late.result.error is not None
    assert (late.result.error.code, late.result.error.category, late.result.error.retryable) == (
        "sla.queue_delay_exceeded",
        "policy",
        False,
    )
    assert second.id not in {call.action_id for call in site.connector.sends}


@pytest.mark.requirement("queue:worker:rests")
async def test_an_idle_worker_sleeps_long_and_wakes_for_what_is_put_in(site: Site, gate: Gate) -> None:
    gate.go_on.set()
    async with opened(site, gate) as runtime:
        await site.clock.until_asleep(LONGEST_REST_S)
        given = await queued(runtime)
        assert (await ended(runtime, given.id)).state == "completed"
        await site.clock.until_asleep(LONGEST_REST_S)
