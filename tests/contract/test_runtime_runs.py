"""A run goes on after it was started: its session stays closed to forks and deletes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

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
        assert closed.error.details["previous_uncertain"] == run.id
        assert (await site.submit(runtime, action("session_chat"))).status == "completed"
        assert site.connector.sends[-1].previous_uncertain == run.id
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
