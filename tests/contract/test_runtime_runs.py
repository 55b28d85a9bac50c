"""A run goes on after it was started: its session stays closed to forks and deletes meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import ActionFailed
from tests.support.runtime_connector import ScriptedRejected
from tests.support.runtime_site import Site, action


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        site = Site(tmp_path)
        site.connector.operations = (*site.connector.operations, "run_start")
        yield site


@pytest.mark.requirement("runtime:serial:runs")
@pytest.mark.parametrize("restart", [False, True])
async def test_a_started_run_keeps_its_session_closed_for_its_time(site: Site, restart: bool) -> None:
    run = action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"})
    fork = action("session_fork", idempotency_key="F")
    async with site.open() as runtime:
        assert (await site.submit(runtime, run)).status == "completed"
        if not restart:
            closed = await site.submit(runtime, fork)
    async with site.open() as runtime:
        if restart:
            closed = await site.submit(runtime, fork)
        assert closed.error is not None
        assert (closed.error.code, closed.error.retry_after_ms) == ("connector.scripted.session_busy", 900_000)
        assert closed.error.details is not None
        assert (closed.error.details["reason"], closed.error.details["started_by"]) == ("closed_by_run", run.id)
        assert (await site.submit(runtime, action("session_chat"))).status == "completed"
        assert site.connector.sends[-1].previous_uncertain is None
        site.clock.advance(900_000)
        assert (await site.submit(runtime, fork)).status == "completed"


@pytest.mark.requirement("runtime:serial:runs")
async def test_a_run_that_was_refused_closes_nothing(site: Site) -> None:
    async with site.open() as runtime:
        site.connector.failures["send"] = ScriptedRejected("no")
        refused = action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"})
        assert (await site.submit(runtime, refused)).status == "failed"
        site.connector.failures.clear()
        assert (await site.submit(runtime, action("session_fork", idempotency_key="F"))).status == "completed"


@pytest.mark.requirement("runtime:serial:run-ends")
@pytest.mark.parametrize("end", ["answered", "failed", "unknown"])
@pytest.mark.parametrize("restart", [False, True])
async def test_a_run_that_is_seen_to_be_over_opens_its_session(site: Site, end: str, restart: bool) -> None:
    site.connector.operations = (*site.connector.operations, "run_status")
    site.connector.send = _of_runs(end)
    run = action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"})
    async with site.open() as runtime:
        await site.submit(runtime, run)
        if not restart:
            await site.submit(runtime, action("run_status", input={"run_id": "run_1"}))
    async with site.open() as runtime:
        if restart:
            await site.submit(runtime, action("run_status", input={"run_id": "run_1"}))
        fork = await site.submit(runtime, action("session_fork", idempotency_key="F"))
    assert fork.status == ("failed" if end == "unknown" else "completed")


@pytest.mark.requirement("runtime:serial:run-ends")
@pytest.mark.parametrize("first", ["run", "uncertain turn"])
async def test_the_end_of_a_run_opens_nothing_that_something_else_closed(site: Site, first: str) -> None:
    site.connector.operations = (*site.connector.operations, "run_status")
    site.connector.send = _of_runs("answered")
    run = action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"})
    turn = action("session_chat")
    async with site.open() as runtime:
        for each in (run, turn) if first == "run" else (turn, run):
            await site.submit(runtime, each)
            site.clock.advance(1)
        await site.submit(runtime, action("run_status", input={"run_id": "run_1"}))
        closed = await site.submit(runtime, action("session_fork", idempotency_key="F"))
        assert closed.error is not None
        assert closed.error.details is not None
        assert closed.error.details["previous_uncertain"] == turn.id
        assert closed.error.details["reason"] == "closed_by_uncertain_turn"
        site.clock.advance(900_000)
        assert (await site.submit(runtime, action("session_fork", idempotency_key="F2"))).status == "completed"


@pytest.mark.requirement("runtime:serial:run-ends")
async def test_an_operator_that_saw_its_run_end_keeps_nothing_closed(site: Site) -> None:
    async def whole_run(call: Call) -> Answer:
        return Answer(output={"status": "completed"}, ends="scripted:run_1")

    site.connector.send = whole_run
    run = action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"})
    async with site.open() as runtime:
        await site.submit(runtime, run)
        assert (await site.submit(runtime, action("session_fork", idempotency_key="F"))).status == "completed"


@pytest.mark.requirement("runtime:serial:run-ends")
async def test_a_turn_during_a_run_is_told_of_the_uncertain_turn_before_it(site: Site) -> None:
    site.connector.send = _of_runs("answered")
    turn, next_turn = action("session_chat"), action("session_chat")
    async with site.open() as runtime:
        await site.submit(runtime, turn)
        site.clock.advance(1)
        await site.submit(runtime, action("run_start", idempotency_key="R", input={"session_id": "s1", "input": "go"}))
        await site.submit(runtime, next_turn)
    assert site.connector.sends[-1].previous_uncertain == turn.id


def _of_runs(end: str) -> Callable[[Call], Awaitable[Answer]]:
    """Play an endpoint whose run `run_1` begins, whose turns end uncertain, and whose status says the run's end."""

    async def send(call: Call) -> Answer:
        operation = call.capability_id.rpartition(":")[2]
        if operation == "run_start":
            return Answer(output={"run_id": "run_1"}, begins="scripted:run_1")
        if operation == "session_chat":
            raise ScriptedRejected("lost", uncertain=True)
        if operation != "run_status" or end == "unknown":
            return Answer(output={"object": "x"})
        if end == "answered":
            return Answer(output={"status": "completed"}, ends="scripted:run_1")
        failure: ActionFailed = ScriptedRejected("it failed")
        failure.ends = "scripted:run_1"
        raise failure

    return send
