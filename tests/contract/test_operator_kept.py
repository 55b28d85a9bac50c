"""What stays of a run: its binding without any text, and only what is said of this very run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from tests.support.hermes_streams import failed
from tests.support.operator_runs import STARTED, Site

MARK = "the-text-of-somebody"
LONG = f"{MARK} " + "x" * 200
ENDS = {"status": "completed", "output": MARK, "last_event": LONG}


@pytest.mark.requirement("hermes:operator:no-text-kept")
@pytest.mark.parametrize(
    "events",
    [
        (STARTED, ("run.completed", {"output": MARK, "messages": [{"content": MARK}]})),
        ((LONG, {"preview": MARK}), ("run.cancelled", {"output": MARK})),
        (
            (
                "approval.request",
                {"command": MARK, "pattern_key": LONG, "choices": [LONG], "allow_permanent": {"x": MARK}},
            ),
        ),
        (("approval.request", {"command": MARK, "pattern_keys": [MARK] * 17}),),
        (STARTED,),
    ],
    ids=["end", "name of an event", "question", "many words", "status"],
)
async def test_a_binding_keeps_no_text_of_its_run(events: tuple[tuple[str, Mapping[str, Any]], ...]) -> None:
    async with Site.open(statuses=(ENDS,)) as site:
        site.streams(*events)
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert MARK in str(outcome.output)
    assert MARK not in str(site.state.values)


@pytest.mark.requirement("hermes:operator:requires-human")
async def test_what_kind_of_thing_is_asked_is_kept() -> None:
    async with Site.open() as site:
        site.streams(("approval.request", {"command": "ls", "pattern_key": "listing", "choices": ["once", "deny"]}))
        await site.run()
    kept = site.state.binding()["pending_approval"]
    assert set(kept) == {"pattern_key", "choices", "sha256"}


@pytest.mark.requirement("hermes:operator:own-run")
@pytest.mark.parametrize(
    "told",
    [
        ("run.completed", {"output": "Not ours."}),
        ("run.failed", {"error": "no"}),
        ("approval.request", {"command": "rm"}),
    ],
)
async def test_an_event_of_another_run_ends_nothing(told: tuple[str, Mapping[str, Any]]) -> None:
    name, members = told
    async with Site.open() as site:
        site.streams((name, {**members, "run_id": "run_2"}))
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert outcome.text == "All four hold."


@pytest.mark.requirement("hermes:operator:own-run", "hermes:operator:unknown-state")
@pytest.mark.parametrize("status", ["completed", "running", "waiting_for_approval"])
async def test_a_status_of_another_run_says_nothing_of_ours(status: str) -> None:
    async with Site.open(statuses=({"status": status, "run_id": "run_2", "output": "Not ours."},)) as site:
        failure = failed(await site.run(), "operator_outcome_unknown")
    assert (failure.uncertain, failure.details["reason"]) == (True, "other_run")


@pytest.mark.requirement("hermes:answer:half-names")
async def test_a_name_that_no_message_can_hold_is_mended() -> None:
    said = {"status": "completed", "output": "Half \ud800.", "half \udc00": [{"\ud83d": 1, "whole \U0001f600": 2}]}
    async with Site.open(statuses=(said,)) as site:
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    result = wire.ActionResult.model_validate(
        {"action_id": "act_1", "status": "completed", "output": outcome.output, "message": []}
    )
    provider = result.wire()["output"]["provider"]
    assert provider["half \ufffd"] == [{"\ufffd": 1, "whole \U0001f600": 2}]
    assert provider["output"] == "Half \ud800."
