"""Responses, runs, jobs and nameless turns, whose answers are really lost: found by what was sent, or left open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import outcome_of
from aip_hermes.contract import load_operations
from tests.support.embedded_endpoint import GatedModel
from tests.support.hermes_calls import INPUTS
from tests.support.reconcile_site import LostAnswers, lost_answers

QUIET_S = 900

FOUND: Mapping[str, tuple[str, str]] = {
    "chat": ("applied", "reply_stored"),
    "chat_stream": ("applied", "reply_stored"),
    "responses": ("applied", "text_found"),
    "responses_stream": ("applied", "text_found"),
    "response_delete": ("applied", "target_gone"),
    "run_start": ("applied", "run_found"),
    "operator": ("applied", "row_found"),
    "job_create": ("applied", "job_found"),
    "job_update": ("applied", "values_found"),
    "job_delete": ("applied", "target_gone"),
    "job_pause": ("applied", "state_found"),
    "job_resume": ("applied", "state_found"),
    "job_run": ("applied", "run_found"),
}
"""Verdict and reason after the request arrived and its answer was lost."""

MISSED: Mapping[str, tuple[str, str]] = {
    "chat": ("not_applied", "no_row"),
    "chat_stream": ("not_applied", "no_row"),
    "responses": ("indeterminate", "not_found"),
    "responses_stream": ("indeterminate", "not_found"),
    "response_delete": ("indeterminate", "target_found"),
    "run_start": ("indeterminate", "not_found"),
    "operator": ("indeterminate", "not_found"),
    "job_create": ("indeterminate", "not_found"),
    "job_update": ("indeterminate", "values_as_before"),
    "job_delete": ("indeterminate", "target_found"),
    "job_pause": ("indeterminate", "state_missing"),
    "job_resume": ("indeterminate", "state_missing"),
    "job_run": ("indeterminate", "not_found"),
}
"""The same, long after a request that never arrived."""

JOB = {"name": "Yearly", "schedule": "0 3 1 1 *", "prompt": "Summarise the year."}


async def _arranged(site: LostAnswers, operation: str) -> Mapping[str, Any]:
    """Make what an operation addresses; return its input."""
    values = dict(INPUTS[operation]) | {"session_id": "named"} if operation in ("chat", "chat_stream") else {}
    values = {**INPUTS[operation], **values}
    if operation == "job_create":
        return JOB
    if "job_id" in values:
        job = (await site.hermes.client.post("/api/jobs", json=JOB)).json()["job"]
        if operation == "job_resume":
            await site.hermes.client.post(f"/api/jobs/{job['id']}/pause")
        return {**values, "job_id": job["id"]}
    if "response_id" in values:
        made = await site.hermes.client.post("/v1/responses", json={"input": "Earlier"})
        return {**values, "response_id": made.json()["id"]}
    return values


@pytest.mark.requirement("reconcile:verdict:other-operations", "reconcile:reads-only")
@pytest.mark.parametrize("operation", FOUND)
async def test_what_arrived_is_found_by_what_was_sent(operation: str, tmp_path: Path) -> None:
    approved = load_operations()[operation].approval is not None
    model = GatedModel()
    model.gate.set()
    async with lost_answers(tmp_path, model=model) as site:
        values = await _arranged(site, operation)
        model.asked.clear()
        result = await site.act(operation, values, cut="before_headers", approve=approved)
        if operation in ("run_start", "operator"):
            await model.asked.wait()  # what a run was asked is stored by then
        assert outcome_of(result.wire()) == "uncertain"
        verdict = await site.reconcile(result)
        assert (verdict["verdict"], verdict["reason"]) == FOUND[operation]


@pytest.mark.requirement("reconcile:verdict:other-operations", "reconcile:reads-only")
@pytest.mark.parametrize("operation", MISSED)
async def test_what_never_arrived_is_left_open_where_absence_proves_nothing(operation: str, tmp_path: Path) -> None:
    approved = load_operations()[operation].approval is not None
    async with lost_answers(tmp_path) as site:
        values = await _arranged(site, operation)
        result = await site.act(operation, values, cut="before_sending", approve=approved)
        assert outcome_of(result.wire()) == "uncertain"
        assert (await site.reconcile(result))["verdict"] == "indeterminate"
        site.clock.advance(QUIET_S)
        verdict = await site.reconcile(result)
        assert (verdict["verdict"], verdict["reason"]) == MISSED[operation]
        assert "retry_after_ms" not in verdict


@pytest.mark.requirement("reconcile:verdict:other-operations")
@pytest.mark.parametrize("operation", ["chat", "run_start"])
async def test_a_turn_without_a_session_is_found_by_its_text(operation: str, tmp_path: Path) -> None:
    values = {"chat": {"prompt": "Which is it?"}, "run_start": {"input": "Which is it?"}}[operation]
    model = GatedModel()
    model.gate.set()
    async with lost_answers(tmp_path, model=model) as site:
        result = await site.act(operation, values, cut="before_headers")
        await model.asked.wait()
        verdict = await site.reconcile(result)
        assert verdict["verdict"] == "applied"


@pytest.mark.requirement("reconcile:rules:every-operation")
def test_every_operation_that_may_change_something_has_a_rule_and_no_other_one() -> None:
    for row in load_operations().values():
        assert (row.reconcile == "none") == row.read_only, row.name
