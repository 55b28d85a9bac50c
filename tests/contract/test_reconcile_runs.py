"""A run that was to stop or to hear an answer, whose answer is really lost: told by the run itself, or left open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import outcome_of
from aip_hermes.contract import load_operations
from aip_hermes.embedded import OfflineModel
from tests.support.cutting_relay import Cut
from tests.support.embedded_endpoint import GatedModel
from tests.support.reconcile_site import LostAnswers, lost_answers

QUIET_S = 900
ASKING = 'call: record_command {"command": "ls -l"}'
"""What makes the offline model call the tool that asks before it records."""

Look = tuple[str, str]

FATES: list[tuple[str, Cut, Look, Look]] = [
    ("run_stop", "before_headers", ("applied", "state_found"), ("applied", "state_found")),
    ("run_stop", "before_sending", ("indeterminate", "state_missing"), ("indeterminate", "state_missing")),
    # Which answer a run heard, and whose, no read tells.
    ("run_approval", "before_headers", ("indeterminate", "answer_unseen"), ("indeterminate", "answer_unseen")),
    ("run_approval", "before_sending", ("indeterminate", "may_be_under_way"), ("not_applied", "still_waits")),
]


async def _run(site: LostAnswers, values: Mapping[str, Any], status: str) -> str:
    """Start a run behind the relay and wait until it has come to `status`, which stays."""
    run_id: str = (await site.hermes.client.post("/v1/runs", json=values)).json()["run_id"]
    async with asyncio.timeout(30):
        while (await site.hermes.client.get(f"/v1/runs/{run_id}")).json()["status"] != status:
            pass
    return run_id


@pytest.mark.requirement("reconcile:verdict:runs", "reconcile:reads-only")
@pytest.mark.parametrize(("operation", "cut", "at_once", "later"), FATES)
async def test_what_became_of_a_run_is_told_by_the_run(
    tmp_path: Path, operation: str, cut: Cut, at_once: Look, later: Look
) -> None:
    stops = operation == "run_stop"
    async with lost_answers(tmp_path, model=GatedModel() if stops else OfflineModel()) as site:
        if stops:
            values = {"run_id": await _run(site, {"input": "What is verified?"}, "running")}
        else:
            values = {"run_id": await _run(site, {"input": ASKING}, "waiting_for_approval"), "choice": "deny"}
        approved = load_operations()[operation].approval is not None
        result = await site.act(operation, values, cut=cut, approve=approved)
        assert outcome_of(result.wire()) == "uncertain"
        found = await site.reconcile(result)
        assert (found["verdict"], found["reason"]) == at_once
        site.clock.advance(QUIET_S)
        found = await site.reconcile(result)
        assert (found["verdict"], found["reason"]) == later
