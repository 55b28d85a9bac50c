"""The operator in the runtime: an approval before it starts, a question that ends its action, an answer by another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes.cli.conformance.people import Crash
from aip_hermes.cli.conformance.site import KitSite
from tests.support.hermes_streams import reply_stream
from tests.support.hermes_stub import RUN, reply_json
from tests.support.operator_runs import ASKS, GONE, STARTED, told

OBJECTIVE = {"objective": "Check the backups."}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[KitSite]:
    async with KitSite.before(tmp_path) as site, asyncio.timeout(30):
        site.provider.on("GET", "/events", GONE)
        yield site


def says(site: KitSite, status: str, **members: object) -> None:
    site.provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, "status": status, **members}))


@pytest.mark.requirement("hermes:operator:requires-human", "hermes:operator:resume")
async def test_a_question_ends_its_action_and_another_one_answers_it(site: KitSite) -> None:
    asking = site.action("operator", input=OBJECTIVE, idempotency_key="ask")
    resume = {"resume": {"source_action_id": asking.id, "choice": "once"}}
    answering = site.action("operator", input=resume, idempotency_key="answer")
    site.provider.on("GET", "/events", reply_stream(told(STARTED, ASKS)), times=1)
    async with site.open() as runtime:
        asked = await site.approved(runtime, asking)
        status = await runtime.status(asking.id, site.caller)
        again = await site.submit(runtime, asking)
        says(site, "completed", output="All four hold.", last_event="run.completed")
        site.provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, "updated_at": 9.5}), times=2)
        answered = await site.approved(runtime, answering)
        kept = await runtime.result(asking.id, site.caller)
    assert (asked.status, asked.error) == ("requires_human", None)
    assert isinstance(asked.output, dict)
    assert asked.output["status"] == "waiting_for_approval"
    assert (status.state, status.result_status, status.queued_state) == (
        "pending_approval",
        "requires_human",
        "requires_human",
    )
    assert status.completed_at is not None
    assert again.output == asked.output
    assert (answered.status, kept.status) == ("completed", "requires_human")
    assert isinstance(answered.output, dict)
    assert (answered.output["source_action_id"], answered.output["status"]) == (asking.id, "completed")
    assert (site.starts("/v1/runs"), site.starts("/approval")) == (1, 1)


@pytest.mark.requirement("action:cancel:ended-question")
async def test_an_action_that_ended_with_a_question_is_over_and_its_cancel_stops_nothing(site: KitSite) -> None:
    asking = site.action("operator", input=OBJECTIVE, idempotency_key="ask")
    site.provider.on("GET", "/events", reply_stream(told(STARTED, ASKS)), times=1)
    async with site.open() as runtime:
        asked = await site.approved(runtime, asking)
        before = await runtime.events(asking.id, site.caller)
        cancelled = await runtime.cancel(asking.id, site.caller)
        after = await runtime.events(asking.id, site.caller)
    assert (asked.status, cancelled.wire()) == ("requires_human", asked.wire())
    assert after.wire()["events"] == before.wire()["events"]
    assert site.starts("/stop") == 0


@pytest.mark.requirement("hermes:operator:one-start")
async def test_nothing_is_started_before_somebody_approved(site: KitSite) -> None:
    action = site.action("operator", input=OBJECTIVE, idempotency_key="run")
    async with site.open() as runtime:
        parked = await site.submit(runtime, action)
    assert parked.status == "pending_approval"
    assert site.provider.arrived == []


@pytest.mark.requirement("hermes:operator:interrupted", "hermes:operator:one-start")
@pytest.mark.parametrize(
    ("point", "status", "code"),
    [
        ("hermes.send.after", "failed", "connector.hermes_agent.operator_outcome_unknown"),
        ("hermes.operator.bound", "completed", None),
    ],
)
async def test_after_a_crash_a_run_is_looked_for_and_never_started_again(
    site: KitSite, point: str, status: str, code: str | None
) -> None:
    action = site.action("operator", input=OBJECTIVE, idempotency_key="run")
    says(site, "completed", output="All four hold.")
    site.endpoint_faults.crash_at = point
    async with site.open() as runtime:
        with contextlib.suppress(Crash):
            await site.approved(runtime, action)
    async with site.open() as runtime:
        found = await site.settled(runtime, action)
        again = await site.submit(runtime, action)
    assert (found.status, found.error.code if found.error else None) == (status, code)
    assert again.status == status
    assert site.starts("/v1/runs") == 1


@pytest.mark.requirement("hermes:operator:cancel")
async def test_a_cancel_stops_the_run_once_and_its_end_is_the_result(site: KitSite) -> None:
    action = site.action("operator", input=OBJECTIVE, idempotency_key="run", mode="streaming")
    says(site, "cancelled")
    site.provider.on("GET", "/events", reply_stream(told(STARTED), behaviour="stall"), times=1)
    async with site.open() as runtime:
        running = asyncio.create_task(site.approved(runtime, action))
        await site.provider.stalled.wait()
        cancelled = await runtime.cancel(action.id, site.caller)
        result = await running
        late = await runtime.cancel(action.id, site.caller)
    assert (cancelled.status, result.status, late.status) == ("cancelled", "cancelled", "cancelled")
    assert cancelled.error is None
    assert isinstance(cancelled.output, dict)
    assert cancelled.output["status"] == "cancelled"
    assert site.starts("/stop") == 1
