"""Other actions that wanted the same: what they made or changed is not taken for the work of one that was lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.hermes.reconcile import QuietTimes
from aip_hermes.runtime import reconciliation
from tests.support.reconcile_site import LostAnswers, lost_answers

QUIET_S = 900

WANTED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "create with an id": ("session_create", {"body": {"id": "new-1"}}),
    "create with a title": ("session_create", {"body": {"title": "New one"}}),
    "fork with an id": ("session_fork", {"session_id": "s1", "body": {"id": "f1"}}),
    "fork with a title": ("session_fork", {"session_id": "s1", "body": {"title": "Fork one"}}),
    "response": ("responses", {"input": "Which is it?"}),
    "nameless chat": ("chat", {"prompt": "Which is it?"}),
    "job": ("job_create", {"name": "Yearly", "schedule": "0 3 1 1 *", "prompt": "Summarise the year."}),
}


async def _lost_and_done_by_another(site: LostAnswers, operation: str, values: Mapping[str, Any]) -> Any:
    await site.hermes.create("s1")
    approve = operation == "job_create"
    lost = await site.act(operation, values, cut="before_sending", approve=approve)
    done = await site.act(operation, values, approve=approve)
    assert done.status == "completed"
    return lost


@pytest.mark.requirement("reconcile:rivals", "reconcile:reads-only")
@pytest.mark.parametrize("wanted", WANTED)
async def test_what_another_action_did_is_not_taken_for_the_lost_one(wanted: str, tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        lost = await _lost_and_done_by_another(site, *WANTED[wanted])
        site.clock.advance(QUIET_S)
        verdict = await site.reconcile(lost)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "several_may_be_it")


@pytest.mark.requirement("reconcile:rivals")
async def test_an_action_that_completed_just_before_is_one_of_those_that_may_have_made_it(tmp_path: Path) -> None:
    create = {"body": {"id": "new-1"}}
    async with lost_answers(tmp_path) as site:
        assert (await site.act("session_create", create)).status == "completed"
        lost = await site.act("session_create", create, cut="before_headers")  # refused, and nobody heard it
        assert (await site.reconcile(lost))["reason"] == "several_may_be_it"


@pytest.mark.requirement("reconcile:rivals")
async def test_one_that_is_proven_to_have_done_nothing_stands_in_nobodys_way(tmp_path: Path) -> None:
    create = {"body": {"id": "new-1"}}
    async with lost_answers(tmp_path, quiet=QuietTimes(rows_s=0.0)) as site:
        first = await site.act("session_create", create, cut="before_sending")
        assert (await site.reconcile(first))["verdict"] == "not_applied"
        second = await site.act("session_create", create, cut="mid_body")
        assert (await site.reconcile(second))["verdict"] == "applied"


@pytest.mark.requirement("reconcile:rivals")
async def test_a_title_that_another_action_changed_back_is_not_taken_for_one_that_never_changed(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1", title="First")
        lost = await site.act("session_patch", {"session_id": "s1", "title": "Second"}, cut="before_headers")
        back = await site.act("session_patch", {"session_id": "s1", "title": "First"})
        assert back.status == "completed"
        site.clock.advance(QUIET_S)
        verdict = await site.reconcile(lost)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "changed_by_others")


@pytest.mark.requirement("reconcile:rivals")
async def test_another_action_is_found_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "BESIDE_PAGE", 2)
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        lost = await site.act("session_create", {"body": {"id": "new-1"}}, cut="before_sending")
        for number in range(5):
            await site.act("session_patch", {"session_id": "s1", "title": f"Title {number}"})
        assert (await site.act("session_create", {"body": {"id": "new-1"}})).status == "completed"
        assert (await site.reconcile(lost))["reason"] == "several_may_be_it"


@pytest.mark.requirement("reconcile:rivals", "reconcile:fork:halves")
async def test_a_source_that_somebody_elses_fork_ended_is_no_half_of_the_lost_one(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        lost = await site.act("session_fork", {"session_id": "s1", "body": {"id": "mine"}}, cut="before_sending")
        forked = await site.hermes.client.post("/api/sessions/s1/fork", json={"id": "theirs"})
        assert forked.status_code == 201
        site.clock.advance(QUIET_S)
        verdict = await site.reconcile(lost)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "ended_by_another")
