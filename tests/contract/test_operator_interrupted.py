"""What becomes of an operator's action that a crash interrupted: it is taken up again by reading, never by sending."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.hermes.operator.binding import Binding
from aip_hermes.hermes.operator.objective import fingerprint
from aip_hermes.ids import ActionId, EndpointId
from tests.support.hermes_calls import call_of
from tests.support.hermes_streams import failed
from tests.support.hermes_stub import reply_json
from tests.support.operator_runs import ENDED, GONE, STARTED, Site
from tests.support.runtime_site import Crash

WAITS = {"status": "waiting_for_approval", "last_event": "approval.request", "updated_at": 10.5}
ENDS = {"status": "completed", "output": "All four hold.", "last_event": "run.completed", "updated_at": 13.0}


class Crashing:
    """Ends the process at a point. passed: those before."""

    def __init__(self, point: str) -> None:
        self.point: str | None = point

    async def reach(self, point: str) -> None:
        if point == self.point:
            self.point = None
            raise Crash(point)


async def bound(site: Site, **members: Any) -> None:
    """Store the binding that an earlier process left."""
    mark = fingerprint(call_of("operator"), endpoint_id=EndpointId("primary"))
    plain = {"action_id": "act_1", "request_fingerprint": mark, "endpoint_id": "primary", "principal_id": "human:ada"}
    value = {**plain, "session_id": "aip-operator-act_1", "created_at": 1, "updated_at": 1, **members}
    Binding.from_json(value)
    assert await site.state.compare_and_set(
        "aip.connector.hermes_agent.operator_runs.v1:act_1", expected=None, value={"status": "starting", **value}
    )


CLAIM = {"claim_id": "c", "instance_id": "inst_before", "claimed_at": 1, "expires_at": 1_893_456_000_000_000}


@pytest.mark.requirement("hermes:operator:interrupted", "hermes:operator:one-start")
@pytest.mark.parametrize(
    ("point", "starts", "ends"),
    [
        ("hermes.send.before", 0, "operator_outcome_unknown"),
        ("hermes.send.after", 1, "operator_outcome_unknown"),
        ("hermes.operator.bound", 1, "completed"),
    ],
)
async def test_a_start_that_a_crash_cut_off_is_never_sent_again(point: str, starts: int, ends: str) -> None:
    async with Site.open(faults=Crashing(point)) as site:
        with pytest.raises(Crash):
            await site.run()
        after = await site.run(interrupted=True)
        again = await site.run()
    for outcome in (after, again):
        if isinstance(outcome, Answer):
            assert outcome.output["status"] == ends
        else:
            assert failed(outcome, ends).uncertain
    assert site.starts == starts


@pytest.mark.requirement("hermes:operator:interrupted")
@pytest.mark.parametrize("left", ["nothing", "a start that was not made"])
async def test_what_was_certainly_not_sent_may_be_sent_again(left: str) -> None:
    async with Site.open() as site:
        if left != "nothing":
            await bound(site)
        failure = failed(await site.run(interrupted=True), "operator_state")
        assert (failure.uncertain, failure.frees_key, site.starts) == (False, True, 0)
        outcome = await site.run(attempt=2)
    assert isinstance(outcome, Answer)
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:interrupted", "hermes:operator:polling")
async def test_a_bound_run_is_followed_behind_the_last_event_kept() -> None:
    async with Site.open(statuses=({"status": "running"}, ENDS)) as site:
        await bound(site, status="running", run_id="run_1", next_sequence=3)
        site.streams(STARTED, ENDED)
        outcome = await site.run(interrupted=True)
    assert isinstance(outcome, Answer)
    assert outcome.text == "All four hold."
    assert site.stub.mutations == []
    assert not [request for request in site.stub.reads if request.target.endswith("/events")]
    assert site.kept.kinds == ["progress", "done"]


@pytest.mark.requirement("hermes:operator:interrupted")
async def test_a_run_whose_events_nobody_read_is_followed_by_them() -> None:
    async with Site.open() as site:
        await bound(site, status="running", run_id="run_1")
        site.streams(STARTED, ENDED)
        outcome = await site.run(interrupted=True)
    assert isinstance(outcome, Answer)
    assert site.kept.kinds == ["tool", "done"]
    assert site.stub.mutations == []


@pytest.mark.requirement("hermes:operator:interrupted")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"status": "waiting_for_approval", "run_id": "run_1", "pending_approval": {}}, "waiting_for_approval"),
        ({"status": "failed", "error": {"message": "no"}}, "operator_start_rejected"),
        ({"status": "outcome_unknown", "error": {"message": "lost", "reason": "start"}}, "operator_outcome_unknown"),
        ({"start_claim": CLAIM}, "operator_outcome_unknown"),
    ],
    ids=["waiting", "not started", "unknown", "claimed"],
)
async def test_what_was_kept_is_answered_without_asking_the_endpoint(members: dict[str, Any], expected: str) -> None:
    async with Site.open() as site:
        await bound(site, **members)
        outcome = await site.run(interrupted=True)
    assert site.stub.arrived == []
    if isinstance(outcome, Answer):
        assert outcome.output["status"] == expected
        assert outcome.requires_human is (expected == "waiting_for_approval")
    else:
        failed(outcome, expected)


@pytest.mark.requirement("hermes:operator:interrupted", "hermes:operator:no-text-kept")
@pytest.mark.parametrize("status", ["completed", "cancelled", "failed"])
@pytest.mark.parametrize("told", ["again", "gone", "as another end", "of another run"])
async def test_a_kept_end_stands_and_its_text_is_what_the_endpoint_still_says(status: str, told: str) -> None:
    says = {
        "again": {"status": status, "output": "All four hold."},
        "gone": {"status": status},
        "as another end": {"status": "running", "output": "Later."},
        "of another run": {"status": status, "run_id": "run_2", "output": "Of somebody else."},
    }[told]
    async with Site.open(statuses=(says,)) as site:
        if told == "gone":
            site.stub.on("GET", "/v1/runs/run_1", GONE)
        await bound(site, status=status, run_id="run_1", error={"message": "no"} if status == "failed" else None)
        outcome = await site.run(interrupted=True)
    assert site.stub.mutations == []
    output = outcome.output or {}
    assert output["status"] == status
    assert (output["provider"] or {}).get("output") == ("All four hold." if told == "again" else None)
    if isinstance(outcome, Answer):
        assert outcome.cancelled is (status == "cancelled")
    else:
        failed(outcome, "operator_run_failed")


@pytest.mark.requirement("hermes:operator:start-failed")
@pytest.mark.parametrize(
    "claim", [CLAIM, {**CLAIM, "expires_at": 1}], ids=["of another process", "of another process, expired"]
)
async def test_a_claim_that_nobody_here_holds_is_unknown(claim: dict[str, Any]) -> None:
    async with Site.open() as site:
        await bound(site, start_claim=claim)
        failure = failed(await site.run(), "operator_outcome_unknown")
    assert (failure.uncertain, failure.details["reason"]) == (True, "start_interrupted")
    assert site.stub.arrived == []


@pytest.mark.requirement("hermes:operator:interrupted", "hermes:operator:resume-uncertain")
@pytest.mark.parametrize(
    ("point", "answers", "ends"),
    [
        ("hermes.send.before", 0, "operator_outcome_unknown"),
        ("hermes.send.after", 1, "operator_outcome_unknown"),
        ("hermes.operator.answered", 1, "completed"),
    ],
)
async def test_an_answer_that_a_crash_cut_off_is_never_given_again(point: str, answers: int, ends: str) -> None:
    faults = Crashing("nowhere")
    async with Site.open(faults=faults, statuses=(WAITS,)) as site:
        await bound(site, status="waiting_for_approval", run_id="run_1", approval_generation=1)
        site.stub.on("POST", "/approval", reply_json({"resolved": 1}))
        faults.point = point
        with pytest.raises(Crash):
            await site.resume("act_2")
        site.statuses = [ENDS]
        outcome = await site.resume("act_2", interrupted=True)
    if isinstance(outcome, Answer):
        assert outcome.output["status"] == ends
    else:
        assert failed(outcome, ends).uncertain
        assert site.state.binding()["status"] == "outcome_unknown"
    assert len(site.posts("/approval")) == answers


@pytest.mark.requirement("hermes:operator:interrupted")
async def test_an_answer_that_was_certainly_not_given_may_be_given() -> None:
    async with Site.open(statuses=(WAITS,)) as site:
        await bound(site, status="waiting_for_approval", run_id="run_1", approval_generation=1)
        failure = failed(await site.resume("act_2", interrupted=True), "operator_state")
    assert (failure.uncertain, failure.frees_key) == (False, True)
    assert site.stub.arrived == []


@pytest.mark.requirement("hermes:operator:one-start")
async def test_action_ids_of_any_length_have_bindings_of_their_own() -> None:
    long = ActionId("act_" + "x" * 4_000)
    async with Site.open() as site:
        first = await site.run(action_id=long)
        second = await site.run(action_id=ActionId(long[:-1]))
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert site.starts == len(site.state.values) == 2
    assert all(len(key) <= 1_024 for key in site.state.values)
