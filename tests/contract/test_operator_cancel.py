"""Stopping a run: once, followed to its end, and unknown where the end does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.contract.handler import Answer, Prepared
from aip_hermes.hermes.operator import OperatorPolicy
from tests.support.hermes_calls import call_of
from tests.support.hermes_streams import failed, reply_stream
from tests.support.hermes_stub import Arrived, Reply, reply_json
from tests.support.operator_runs import ENDED, GONE, STARTED, Site, told
from tests.support.runtime_clock import ManualClock

CALL = call_of("operator")
RUNS: Mapping[str, Any] = {"status": "running"}


def stopping(site: Site, *then: Mapping[str, Any], reply: Reply | None = None) -> list[bool]:
    """Let a stop be taken, and the status say `then` from then on. Returns whether each stop had been noted before."""
    noted: list[bool] = []

    def stop(_request: Arrived) -> Reply:
        noted.append(site.state.binding()["cancel_requested"])
        site.statuses = list(then)
        return reply or reply_json({"run_id": "run_1", "status": "stopping"})

    site.stub.on("POST", "/stop", stop)
    return noted


@pytest.mark.requirement("hermes:operator:cancel")
@pytest.mark.parametrize("streamed", [True, False], ids=["events", "status"])
async def test_a_run_under_way_is_stopped_once_and_followed_to_its_end(streamed: bool) -> None:
    async with Site.open(statuses=(RUNS,)) as site:
        noted = stopping(site, {"status": "stopping"}, {"status": "cancelled", "last_event": "run.cancelled"})
        if streamed:
            site.stub.on("GET", "/events", reply_stream(told(STARTED), behaviour="stall"), times=1)
        sending = asyncio.create_task(site.run())
        await site.kept.first.wait()
        evidence = await site.handler.cancel(CALL, Prepared(), state=site.state)
        outcome = await sending
        late = await site.handler.cancel(CALL, Prepared(), state=site.state)
    assert (evidence["stopped"], evidence["ended"]) == (True, True)
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.output["status"]) == (True, "cancelled")
    assert noted == [True]
    assert len(site.posts("/stop")) == 1
    assert late["stopped"] is False
    assert site.state.binding()["status"] == "cancelled"


@pytest.mark.requirement("hermes:operator:cancel")
async def test_a_run_that_ended_meanwhile_keeps_its_end() -> None:
    async with Site.open(statuses=(RUNS,)) as site:
        stopping(site, {"status": "completed", "output": "All four hold."}, reply=GONE)
        sending = asyncio.create_task(site.run())
        await site.kept.first.wait()
        evidence = await site.handler.cancel(CALL, Prepared(), state=site.state)
        outcome = await sending
    assert (evidence["stopped"], evidence["ended"]) == (False, True)
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.text) == (False, "All four hold.")


@pytest.mark.requirement("hermes:operator:cancel")
async def test_a_run_that_does_not_end_in_time_is_unknown() -> None:
    clock = ManualClock()
    policy = OperatorPolicy(poll_interval_ms=1_000, cancel_grace_ms=1_000)
    async with Site.open(clock=clock, policy=policy, statuses=(RUNS,)) as site:
        stopping(site, {"status": "stopping"})
        sending = asyncio.create_task(site.run())
        await clock.until_asleep(1)
        cancelling = asyncio.create_task(site.handler.cancel(CALL, Prepared(), state=site.state))
        for _ in range(4):
            await clock.until_asleep(0.25)
            clock.advance(250)
        outcome, evidence = await sending, await cancelling
    failure = failed(outcome, "operator_outcome_unknown")
    assert (failure.uncertain, failure.details["reason"]) == (True, "cancellation_outcome_unknown")
    assert evidence["stopped"] is True
    assert site.state.binding()["status"] == "outcome_unknown"
    assert len(site.posts("/stop")) == 1


@pytest.mark.requirement("hermes:operator:cancel")
async def test_a_run_that_asks_while_it_is_stopped_is_not_waited_for() -> None:
    asks = {"status": "waiting_for_approval", "last_event": "approval.request"}
    async with Site.open(statuses=(RUNS,)) as site:
        stopping(site, asks, {"status": "cancelled"})
        sending = asyncio.create_task(site.run())
        await site.kept.first.wait()
        await site.handler.cancel(CALL, Prepared(), state=site.state)
        outcome = await sending
    assert isinstance(outcome, Answer)
    assert outcome.cancelled


@pytest.mark.requirement("hermes:operator:cancel")
async def test_a_run_without_a_name_can_not_be_stopped() -> None:
    clock = ManualClock()
    async with Site.open(clock=clock, policy=OperatorPolicy(cancel_grace_ms=1_000)) as site:
        site.stub.on("POST", "/v1/runs", Reply(behaviour="stall"))
        sending = asyncio.create_task(site.run())
        await site.stub.stalled.wait()
        cancelling = asyncio.create_task(site.handler.cancel(CALL, Prepared(), state=site.state))
        await clock.until_asleep(1)
        clock.advance(1_000)
        evidence = await cancelling
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    assert evidence["stopped"] is False
    assert site.posts("/stop") == []


@pytest.mark.requirement("hermes:operator:cancel")
async def test_an_end_that_is_being_kept_is_left_alone() -> None:
    async with Site.open() as site:
        site.streams(ENDED)
        await site.run()
        evidence = await site.handler.cancel(CALL, Prepared(), state=site.state)
    assert evidence["stopped"] is False
    assert site.posts("/stop") == []


@pytest.mark.requirement("hermes:operator:cancel", "hermes:operator:ends")
async def test_an_end_that_was_kept_first_wins_and_is_not_stopped() -> None:
    async with Site.open(statuses=(RUNS,)) as site:
        sending = asyncio.create_task(site.run())
        await site.kept.first.wait()
        key, (_, version) = next(iter(site.state.values.items()))
        first = site.state.binding() | {"status": "completed", "output_sha256": "0" * 64}
        while await site.state.compare_and_set(key, expected=version, value=first) is None:
            version = site.state.values[key][1]
        evidence = await site.handler.cancel(CALL, Prepared(), state=site.state)
        site.statuses = [{"status": "completed", "output": "Told by the endpoint."}]
        outcome = await sending
    assert (evidence["stopped"], evidence["ended"]) == (False, True)
    assert site.posts("/stop") == []
    assert isinstance(outcome, Answer)
    assert outcome.text == "Told by the endpoint."
