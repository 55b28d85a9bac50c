"""Following a run: its events as chunks, then its status, to its end or to a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.operator import OperatorPolicy
from tests.support.hermes_calls import FakeClock
from tests.support.hermes_streams import Kept, failed, reply_stream
from tests.support.hermes_stub import KEY, Reply, reply_error
from tests.support.operator_runs import ASKS, ENDED, GONE, QUESTION, STARTED, Site, told
from tests.support.skipping_loop import run_skipping

FOLLOWED = {"status": "completed", "output": "All four hold.", "last_event": "run.completed"}


@pytest.mark.requirement("hermes:operator:events")
async def test_events_are_chunks_of_their_kinds() -> None:
    events: list[tuple[str, Mapping[str, Any]]] = [
        STARTED,
        ("tool.completed", {"tool": "terminal", "error": False}),
        ("message.delta", {"delta": "All "}),
        ("reasoning.available", {"text": "All "}),
        ("approval.responded", {"choice": "once", "resolved": 1}),
        ("message.delta", {"delta": "hold."}),
        ENDED,
        ("message.delta", {"delta": "behind the end"}),
    ]
    async with Site.open() as site:
        site.streams(*events)
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert site.kept.kinds == ["tool", "tool", "data", "thought", "progress", "data", "done"]
    assert [event["event"] for event in site.shown] == [name for name, _ in events[:-1]]
    assert [chunk.text for chunk in site.kept.chunks if chunk.text] == ["All ", "hold."]
    assert all(set(chunk.data) == {"hermes_operator"} for chunk in site.kept.chunks)
    assert (site.state.binding()["next_sequence"], site.state.binding()["last_event"]) == (7, "run.completed")
    assert not [request for request in site.stub.reads if request.target == "/v1/runs/run_1"]


@pytest.mark.requirement("hermes:operator:polling", "hermes:operator:one-start")
@pytest.mark.parametrize(
    "events",
    [
        GONE,
        reply_error(500, None),
        Reply(status=200, body=b"{}", headers={"content-type": "application/json"}),
        reply_stream(told(STARTED), behaviour="reset"),
        reply_stream(told(STARTED)),
        reply_stream(b"data: \xff\n\n"),
        reply_stream(told(STARTED, ("run.completed", {}))),
    ],
    ids=["gone", "500", "no stream", "reset", "no end", "no UTF-8", "an end that says nothing"],
)
async def test_where_the_events_say_no_end_the_status_does(events: Reply) -> None:
    statuses = ({"status": "queued"}, {"status": "running"}, {"status": "stopping"}, FOLLOWED)
    async with Site.open(events=events, statuses=statuses) as site:
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert (outcome.output["status"], outcome.text) == ("completed", "All four hold.")
    assert outcome.output["provider"]["output"] == "All four hold."
    assert site.kept.kinds.count("done") == 1
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:polling")
async def test_more_events_than_the_policy_reads_do_not_lose_the_run() -> None:
    policy = OperatorPolicy(poll_interval_ms=10, max_events=2)
    async with Site.open(policy=policy, statuses=(FOLLOWED,)) as site:
        site.streams(STARTED, STARTED, STARTED, ENDED)
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert site.kept.kinds == ["tool", "tool", "done"]


@pytest.mark.requirement("hermes:operator:polling")
async def test_a_passing_failure_of_a_status_is_asked_again() -> None:
    clock = FakeClock()
    async with Site.open(clock=clock, policy=OperatorPolicy(poll_interval_ms=700), statuses=(FOLLOWED,)) as site:
        site.stub.on("GET", "/v1/runs/run_1", reply_error(503, None), times=2)
        site.stub.on("GET", "/v1/runs/run_1", Reply(behaviour="reset"), times=1)
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert clock.naps.count(0.7) == 3


@pytest.mark.requirement("hermes:operator:unknown-state")
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"status": "paused"}, "unknown_state"),
        ({"status": None}, "unknown_state"),
        ({"status": ["completed"]}, "unknown_state"),
        ({"status": f"Bearer {KEY}"}, "unknown_state"),
    ],
    ids=["a word", "null", "a list", "a secret"],
)
async def test_a_state_that_is_none_is_an_error_and_no_success(status: Mapping[str, Any], reason: str) -> None:
    async with Site.open(statuses=(status,)) as site:
        failure = failed(await site.run(), "operator_outcome_unknown")
    assert (failure.uncertain, failure.retryable, failure.details["reason"]) == (True, False, reason)
    assert failure.details["run_id"] == "run_1"
    assert site.state.binding()["status"] == "outcome_unknown"
    assert KEY not in str(site.state.values)


@pytest.mark.requirement("hermes:operator:unknown-state")
@pytest.mark.parametrize(
    ("reply", "reason"), [(GONE, "run_forgotten"), (reply_error(401, "invalid_api_key"), "status_unreadable")]
)
async def test_a_run_that_can_not_be_read_any_more_is_unknown(reply: Reply, reason: str) -> None:
    async with Site.open() as site:
        site.stub.on("GET", "/v1/runs/run_1", reply)
        failure = failed(await site.run(), "operator_outcome_unknown")
    assert (failure.uncertain, failure.details["reason"]) == (True, reason)
    assert failure.details["remote_status"] in (401, 404)


@pytest.mark.requirement("hermes:operator:unknown-state")
def test_a_run_that_outlasts_its_action_is_unknown() -> None:
    async def outlasting() -> tuple[Answer | ActionFailed, Site]:
        clock = FakeClock()
        async with Site.open(clock=clock, statuses=({"status": "running"},)) as site:
            return await site.run(deadline_ms=clock.now_ms() + 2_000), site

    outcome, site = run_skipping(outlasting())
    failure = failed(outcome, "operator_outcome_unknown")
    assert (failure.uncertain, failure.details["reason"]) == (True, "timeout")
    assert site.starts == 1
    assert site.posts("/stop") == []


@pytest.mark.requirement("hermes:operator:ends")
@pytest.mark.parametrize("streamed", [True, False], ids=["events", "status"])
async def test_a_run_that_failed_is_a_certain_failure_with_its_output(streamed: bool) -> None:
    status = {"status": "failed", "error": f"HTTP 500 with Bearer {KEY}", "last_event": "run.failed"}
    async with Site.open(statuses=(status,)) as site:
        if streamed:
            site.streams(("run.failed", {"error": status["error"]}))
        failure = failed(await site.run(), "operator_run_failed")
        again = failed(await site.run(), "operator_run_failed")
    assert (failure.uncertain, failure.retryable, failure.frees_key) == (False, False, False)
    provider: Any = failure.details["provider"]
    assert provider["message"].startswith("HTTP 500 with Bearer [redacted]")
    assert failure.output is not None
    assert (failure.output["status"], failure.output["last_event"]) == ("failed", "run.failed")
    assert operation_validator("operator_answer.json").violations(failure.output) == []
    assert again.details == failure.details
    assert site.kept.kinds == ["error"]
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:failed-masked")
@pytest.mark.parametrize("streamed", [True, False], ids=["events", "status"])
@pytest.mark.parametrize("structured", [True, False])
async def test_what_an_endpoint_says_of_a_failure_is_kept_without_credentials_and_payloads(
    streamed: bool, structured: bool
) -> None:
    text = f"model refused Bearer {KEY} with sk-live-0123456789abcdef"
    error: Any = {"message": text, "api_key": "plain-9", "arguments": {"path": "/secret-file"}} if structured else text
    said = {"error": error, "prompt": "the-prompt", "authorization": "plain-8", "usage": {"input_tokens": 7}}
    async with Site.open(statuses=({"status": "failed", "last_event": "run.failed", **said},)) as site:
        if streamed:
            site.streams(("run.failed", said))
        failure = failed(await site.run(), "operator_run_failed")
    assert failure.output is not None
    kept = failure.output["provider"]
    shown = kept["error"]["message"] if structured else kept["error"]
    assert shown == "model refused Bearer [redacted] with [redacted]"
    assert kept["usage"] == {"input_tokens": 7}
    everything = f"{failure.output} {failure.details} {site.state.values}"
    for secret in (KEY, "sk-live", "plain-8", "plain-9", "/secret-file", "the-prompt"):
        assert secret not in everything


@pytest.mark.requirement("hermes:operator:ends")
@pytest.mark.parametrize("streamed", [True, False], ids=["events", "status"])
async def test_a_run_that_was_cancelled_elsewhere_is_a_cancelled_result(streamed: bool) -> None:
    async with Site.open(statuses=({"status": "cancelled"},)) as site:
        if streamed:
            site.streams(("run.cancelled", {}))
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.output["status"]) == (True, "cancelled")


@pytest.mark.requirement("hermes:operator:requires-human")
@pytest.mark.parametrize("streamed", [True, False], ids=["events", "status"])
async def test_a_run_that_asks_ends_its_action_as_waiting_for_a_person(streamed: bool) -> None:
    status = {"status": "waiting_for_approval", "last_event": "approval.request"}
    async with Site.open(statuses=(status,)) as site:
        if streamed:
            site.streams(STARTED, ASKS, ENDED)
        outcome = await site.run()
        again = await site.run()
    assert isinstance(outcome, Answer)
    assert (outcome.requires_human, outcome.cancelled, outcome.text) == (True, False, None)
    assert outcome.output["status"] == "waiting_for_approval"
    assert outcome.output["pending_approval"] == (QUESTION if streamed else {})
    assert outcome.output["provider"] is None
    assert operation_validator("operator_answer.json").violations(outcome.output) == []
    assert site.kept.kinds[-1] == "pending_approval"
    assert "done" not in site.kept.kinds
    binding = site.state.binding()
    assert (binding["status"], binding["approval_generation"], binding["output_sha256"]) == (
        "waiting_for_approval",
        1,
        None,
    )
    assert QUESTION["command"] not in str(site.state.values)
    assert isinstance(again, Answer)
    assert again.requires_human
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:unknown-state")
async def test_a_chunk_that_can_not_be_kept_makes_the_outcome_uncertain() -> None:
    async with Site.open() as site:
        site.kept = Kept(fail_at=1)
        site.streams(STARTED, STARTED, ENDED)
        failure = failed(await site.run(), "stream_publication")
    assert failure.uncertain
    assert site.starts == 1
