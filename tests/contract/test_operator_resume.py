"""Answering what a run asks: one answer per action, noted before and after, and what goes wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import ActionId, PrincipalId
from tests.support.hermes_calls import call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import failed
from tests.support.hermes_stub import Arrived, Reply, reply_error, reply_json
from tests.support.operator_runs import ASKS, QUICK, Site

WAITS = {"status": "waiting_for_approval", "last_event": "approval.request", "updated_at": 10.5}
ANSWERED = {"status": "waiting_for_approval", "last_event": "approval.responded", "updated_at": 11.0}
RUNS = {"status": "running", "last_event": "approval.responded", "updated_at": 11.5}
ASKS_AGAIN = {"status": "waiting_for_approval", "last_event": "approval.request", "updated_at": 12.5}
ENDS = {"status": "completed", "output": "Recorded.", "last_event": "run.completed", "updated_at": 13.0}


@asynccontextmanager
async def waiting(*statuses: dict[str, Any]) -> AsyncIterator[Site]:
    """Yield a site whose run of `act_1` waits."""
    async with Site.open(statuses=(WAITS, *statuses)) as site:
        site.streams(ASKS)
        outcome = await site.run()
        assert isinstance(outcome, Answer)
        assert outcome.requires_human
        yield site


@pytest.mark.requirement("hermes:operator:resume")
@pytest.mark.parametrize("choice", ["once", "deny"])
async def test_a_resume_answers_once_and_goes_on_to_the_end(choice: str) -> None:
    async with waiting(WAITS, ANSWERED, RUNS, ENDS) as site:
        site.kept.chunks.clear()
        outcome = await site.resume("act_2", choice)
        again = await site.resume("act_2", choice)
    for result in (outcome, again):
        assert isinstance(result, Answer)
        assert (result.output["status"], result.text, result.requires_human) == ("completed", "Recorded.", False)
        assert (result.output["source_action_id"], result.output["session_id"]) == ("act_1", "aip-operator-act_1")
    [sent] = site.posts("/approval")
    assert sent.json == {"choice": choice}
    assert site.starts == 1
    assert site.kept.kinds == ["progress", "done"]
    binding = site.state.binding()
    [command] = binding["approval_commands"]
    assert (command["action_id"], command["choice"], command["state"]) == ("act_2", choice, "applied")
    assert (binding["status"], binding["pending_approval"]) == ("completed", None)


@pytest.mark.requirement("hermes:operator:resume")
async def test_a_run_may_ask_again_and_the_same_question_counts_once() -> None:
    async with waiting(WAITS, ASKS_AGAIN, ASKS_AGAIN, ENDS) as site:
        second = await site.resume("act_2")
        third = await site.resume("act_3", "deny")
    assert isinstance(second, Answer)
    assert (second.requires_human, second.output["status"]) == (True, "waiting_for_approval")
    assert isinstance(third, Answer)
    assert third.output["status"] == "completed"
    assert [request.json["choice"] for request in site.posts("/approval")] == ["once", "deny"]
    assert site.state.binding()["approval_generation"] == 2
    assert [each["generation"] for each in site.state.binding()["approval_commands"]] == [1, 2]


@pytest.mark.requirement("hermes:operator:resume")
async def test_what_is_asked_of_all_is_passed_on() -> None:
    async with waiting(ENDS) as site:
        values = {"resume": {"source_action_id": "act_1", "choice": "once", "resolve_all": True}}
        site.statuses = [WAITS, ENDS]
        await site.run(values, action_id=ActionId("act_2"))
    assert [request.json for request in site.posts("/approval")] == [{"choice": "once", "resolve_all": True}]


@pytest.mark.requirement("hermes:operator:resume-refused")
@pytest.mark.parametrize("whose", ["nobody's", "another caller's", "another endpoint's"])
async def test_only_a_run_of_the_caller_at_the_endpoint_is_resumed(whose: str) -> None:
    async with waiting() as site:
        call = call_of("operator", {"resume": {"source_action_id": "act_1", "choice": "once"}})
        call = replace(call, action_id=ActionId("act_2"))
        handler = site.handler
        endpoint = endpoint_of(site.stub.base_url, id="other")
        async with connector_of(endpoint, operator=QUICK) as connector:
            if whose == "nobody's":
                call = replace(call, input={"resume": {"source_action_id": "act_0", "choice": "once"}})
            elif whose == "another caller's":
                call = replace(call, actor=replace(call.actor, principal_id=PrincipalId("human:eve")))
            else:
                handler = handler_of(connector, "operator")
            with pytest.raises(ActionFailed) as refused:
                await handler.send(call, await handler.prepare(call, None), state=site.state)
    failure = failed(refused.value, "operator_policy")
    assert (failure.uncertain, failure.details["reason"], failure.details["sent"]) == (False, "binding_missing", False)
    assert site.posts("/approval") == []


@pytest.mark.requirement("hermes:operator:resume-refused")
async def test_a_run_that_is_over_is_not_resumed() -> None:
    async with waiting(ENDS) as site:
        site.statuses = [WAITS, ENDS]
        await site.resume("act_2")
        failure = failed(await site.resume("act_3"), "operator_policy")
    assert (failure.details["reason"], failure.details["status"]) == ("not_waiting", "completed")
    assert len(site.posts("/approval")) == 1


@pytest.mark.requirement("hermes:operator:resume-refused")
async def test_a_run_that_stopped_waiting_by_itself_is_not_answered() -> None:
    async with waiting() as site:
        site.statuses = [RUNS]
        failure = failed(await site.resume("act_2"), "operator_policy")
    assert (failure.details["reason"], failure.uncertain) == ("not_waiting", False)
    assert site.posts("/approval") == []


@pytest.mark.requirement("hermes:operator:resume-refused")
async def test_of_two_answers_at_once_exactly_one_is_given() -> None:
    async with waiting() as site:
        site.statuses = [WAITS]
        arrived = asyncio.Event()

        def answer(_request: Arrived) -> Reply:
            arrived.set()
            site.statuses = [ENDS]
            return reply_json({"resolved": 1})

        site.stub.on("POST", "/approval", answer)
        outcomes = await asyncio.gather(site.resume("act_2", "once"), site.resume("act_3", "deny"))
    assert len(site.posts("/approval")) == 1
    answered = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, ActionFailed)]
    assert (len(answered), len(refused)) == (1, 1)
    assert failed(refused[0], "operator_policy").details["reason"] in ("answered", "not_waiting")


@pytest.mark.requirement("hermes:operator:resume-refused")
async def test_a_run_is_answered_256_times_at_most() -> None:
    async with waiting() as site:
        key, (text, version) = next(iter(site.state.values.items()))
        binding = site.state.binding()
        one = {"choice": "once", "generation": 0, "state": "applied", "instance_id": "i", "claimed_at": 1}
        binding["approval_commands"] = [{"action_id": f"act_old_{n}", **one} for n in range(256)]
        assert await site.state.compare_and_set(key, expected=version, value=binding)
        failure = failed(await site.resume("act_2"), "operator_policy")
    assert text
    assert failure.details["reason"] == "too_many_answers"
    assert site.posts("/approval") == []


@pytest.mark.requirement("hermes:operator:resume-uncertain")
@pytest.mark.parametrize("reply", [Reply(behaviour="reset"), reply_error(500, None)], ids=["reset", "500"])
async def test_an_answer_that_may_have_arrived_makes_the_whole_run_unknown(reply: Reply) -> None:
    async with waiting() as site:
        site.stub.on("POST", "/approval", reply)
        failure = failed(await site.resume("act_2"), "operator_outcome_unknown")
        again = failed(await site.resume("act_2"), "operator_outcome_unknown")
        other = failed(await site.resume("act_3"), "operator_policy")
    assert (failure.uncertain, failure.details["reason"]) == (True, "approval")
    assert again.uncertain
    assert other.details["status"] == "outcome_unknown"
    binding = site.state.binding()
    assert binding["status"] == "outcome_unknown"
    assert [each["state"] for each in binding["approval_commands"]] == ["outcome_unknown"]
    assert len(site.posts("/approval")) == 1


@pytest.mark.requirement("hermes:operator:resume-uncertain")
async def test_an_answer_that_was_refused_leaves_the_run_waiting() -> None:
    async with waiting() as site:
        site.statuses = [WAITS, WAITS, ENDS]
        site.stub.on("POST", "/approval", reply_error(409, "approval_not_pending"), times=1)
        refused = failed(await site.resume("act_2"), "remote_rejected")
        again = failed(await site.resume("act_2"), "operator_policy")
        outcome = await site.resume("act_3")
    assert (refused.uncertain, refused.details["provider"]["code"]) == (False, "approval_not_pending")
    assert again.details["reason"] == "rejected"
    assert isinstance(outcome, Answer)
    states = {each["action_id"]: each["state"] for each in site.state.binding()["approval_commands"]}
    assert states == {"act_2": "rejected", "act_3": "applied"}


@pytest.mark.requirement("hermes:operator:resume")
async def test_an_answer_that_certainly_did_not_arrive_may_be_given_again() -> None:
    async with waiting() as site:
        site.statuses = [WAITS, WAITS, ENDS]
        site.stub.on("POST", "/approval", reply_error(429, "rate_limit_exceeded"), times=1)
        assert failed(await site.resume("act_2"), "remote_temporary").frees_key
        outcome = await site.resume("act_2", attempt=2)
    assert isinstance(outcome, Answer)
    assert len(site.posts("/approval")) == 2
