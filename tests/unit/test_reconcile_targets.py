"""The rules about runs, jobs and responses that are addressed by their id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.support.hermes_stub import JOB, RUN
from tests.support.reconcile_rules import INTENT_S, LATER, SOON, ReadOnlyEndpoint, after

GONE = httpx.Response(404, json={"error": {"message": "no", "code": "run_not_found"}})
STRANGE = httpx.Response(404, content=b"404: Not Found", headers={"content-type": "text/plain"})


def _facts(before: Mapping[str, Any], **wanted: Any) -> Mapping[str, Any]:
    return {"endpoint_id": "primary", "wanted": wanted, "before": dict(before), "read_at_ms": 1}


def _at(path: str, answer: Mapping[str, Any] | httpx.Response) -> ReadOnlyEndpoint:
    given = answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=dict(answer))
    return ReadOnlyEndpoint(broken={path: given})


@pytest.mark.requirement("reconcile:rules:targets", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("now", "outcome", "reason"),
    [
        ({**RUN, "status": "stopping"}, "applied", "state_found"),
        ({**RUN, "status": "cancelled"}, "applied", "state_found"),
        ({**RUN, "status": "completed"}, "indeterminate", "state_missing"),
        (RUN, "indeterminate", "state_missing"),
        ({**RUN, "status": "cancelled", "created_at": 1.0}, "indeterminate", "another_target"),
        (GONE, "indeterminate", "target_gone"),
        (STRANGE, "indeterminate", "endpoint_not_read"),
    ],
)
async def test_a_run_that_was_to_stop(now: Mapping[str, Any] | httpx.Response, outcome: str, reason: str) -> None:
    verdict = await after("run_stop", _at("/v1/runs/run_1", now), facts=_facts({**RUN, "run_id": "run_1"}), values={})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.requirement("reconcile:rules:targets", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("now", "seconds", "outcome", "reason"),
    [
        (RUN, SOON, "indeterminate", "may_be_under_way"),
        (RUN, LATER, "not_applied", "still_waits"),
        ({**RUN, "status": "running", "updated_at": 2.0}, LATER, "indeterminate", "answer_unseen"),
        ({**RUN, "updated_at": 2.0}, LATER, "indeterminate", "answer_unseen"),  # it waits for another answer now
        (GONE, LATER, "indeterminate", "target_gone"),
    ],
)
async def test_a_run_that_was_to_hear_an_answer(
    now: Mapping[str, Any] | httpx.Response, seconds: float, outcome: str, reason: str
) -> None:
    facts = _facts({**RUN, "run_id": "run_1"}, run_id="run_1")
    verdict = await after("run_approval", _at("/v1/runs/run_1", now), facts=facts, seconds=seconds, values={})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.requirement("reconcile:rules:targets", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("planned", "now", "outcome", "reason"),
    [
        (3_600, {"last_run_at": INTENT_S + 1}, "applied", "run_found"),
        (3_600, {"next_run_at": INTENT_S}, "applied", "run_found"),
        (3_600, {"last_run_at": INTENT_S - 60}, "indeterminate", "not_found"),
        (30, {"last_run_at": INTENT_S + 30}, "indeterminate", "due_by_itself"),
    ],
)
async def test_a_job_that_was_to_run_at_once(planned: float, now: Mapping[str, Any], outcome: str, reason: str) -> None:
    before = {**JOB, "job_id": JOB["id"], "next_run_at": INTENT_S + planned, "last_run_at": None}
    job = {**JOB, "next_run_at": INTENT_S + planned, "last_run_at": None, **now}
    endpoint = _at(f"/api/jobs/{JOB['id']}", {"job": job})
    verdict = await after("job_run", endpoint, facts=_facts(before), values={})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
