"""The decision about an answer is about the question that waited when it was asked for, and about no later one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.cli.conformance.people import approval_request, decision, reviewer
from aip_hermes.cli.conformance.site import KitSite
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import ActionId
from tests.support.hermes_calls import attempt, call_of
from tests.support.hermes_streams import failed, reply_stream
from tests.support.hermes_stub import RUN, reply_json
from tests.support.operator_runs import ASKS, GONE, Site, told

WAITS = {"status": "waiting_for_approval", "last_event": "approval.request", "updated_at": 10.5}
ASKS_AGAIN = {**WAITS, "updated_at": 14.5}
ENDS = {"status": "completed", "output": "Recorded.", "last_event": "run.completed", "updated_at": 20.5}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A run of `act_1` that waits with its first question."""
    async with Site.open(statuses=(WAITS,)) as site:
        site.streams(ASKS)
        assert isinstance(await site.run(), Answer)
        site.stub.on("POST", "/approval", reply_json({"resolved": 1}))
        yield site


def answer(action_id: str) -> Call:
    values = {"resume": {"source_action_id": "act_1", "choice": "once"}}
    return call_of("operator", values, action_id=ActionId(action_id))


async def described(site: Site, call: Call) -> dict[str, Any]:
    found = await site.handler.describe(call, state=site.state)
    assert found is not None
    assert "rm -rf" not in str(found)
    return dict(found.snapshot)


async def decided(site: Site, call: Call, snapshot: dict[str, Any]) -> Answer | ActionFailed:
    return await attempt(site.handler, call, described=snapshot, state=site.state, publish=site.kept)


@pytest.mark.requirement("hermes:operator:resume-bound", "hermes:operator:resume")
async def test_an_answer_that_was_decided_on_is_given(site: Site) -> None:
    call = answer("act_2")
    snapshot = await described(site, call)
    site.statuses = [WAITS, ENDS]
    outcome = await decided(site, call, snapshot)
    assert isinstance(outcome, Answer)
    assert outcome.output["status"] == "completed"
    assert len(site.posts("/approval")) == 1


@pytest.mark.requirement("hermes:operator:resume-bound")
async def test_a_later_question_is_not_answered_by_a_decision_about_an_earlier_one(site: Site) -> None:
    first, second = answer("act_2"), answer("act_3")
    about_first, about_second = await described(site, first), await described(site, second)
    site.statuses = [WAITS, ASKS_AGAIN]
    asked_again = await decided(site, first, about_first)
    refused = failed(await decided(site, second, about_second), "operator_policy")
    assert isinstance(asked_again, Answer)
    assert asked_again.requires_human
    assert (refused.uncertain, refused.details["reason"], refused.details["sent"]) == (False, "other_question", False)
    assert len(site.posts("/approval")) == 1


@pytest.mark.requirement("hermes:operator:resume-bound")
async def test_what_somebody_else_answered_at_the_endpoint_is_noticed(site: Site) -> None:
    call = answer("act_2")
    snapshot = await described(site, call)
    site.statuses = [ASKS_AGAIN]
    refused = failed(await decided(site, call, snapshot), "operator_policy")
    assert refused.details["reason"] == "other_question"
    assert site.posts("/approval") == []


@pytest.mark.requirement("hermes:operator:resume-bound", "hermes:operator:resume-refused")
async def test_nobody_is_asked_to_decide_about_an_answer_to_nothing(site: Site) -> None:
    site.statuses = [ENDS]
    with pytest.raises(ActionFailed) as refused:
        await site.handler.describe(answer("act_2"), state=site.state)
    assert refused.value.details["reason"] == "not_waiting"


@pytest.mark.requirement("hermes:operator:resume-bound")
async def test_of_two_approved_answers_only_the_one_to_the_decided_question_is_given(tmp_path: Path) -> None:
    async with KitSite.before(tmp_path) as site:
        provider = site.provider
        provider.on("GET", "/events", GONE)
        provider.on("GET", "/events", reply_stream(told(ASKS)), times=1)
        provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, **WAITS}))
        asking = site.action("operator", input={"objective": "Check the backups."}, idempotency_key="ask")
        resume = {"resume": {"source_action_id": asking.id, "choice": "once"}}
        answers = [site.action("operator", input=resume, idempotency_key=key) for key in ("one", "two")]
        async with site.open() as runtime:
            await site.approved(runtime, asking)
            one, two = [approval_request(await site.submit(runtime, each)) for each in answers]
            provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, **ASKS_AGAIN}))
            provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, **WAITS}), times=1)
            for number, request in enumerate((one, two)):
                await runtime.decide(decision(request, decision_id=f"decision:{number}"), reviewer())
            given, refused = [await runtime.result(each.id, site.caller) for each in answers]
    assert given.status == "requires_human"
    assert refused.error is not None
    assert refused.error.code == "connector.hermes_agent.operator_policy"
    assert site.starts("/approval") == 1


@pytest.mark.requirement("hermes:operator:resume-bound")
async def test_questions_are_told_apart_where_the_endpoint_tells_no_time() -> None:
    async with Site.open(statuses=({"status": "waiting_for_approval"},)) as site:
        site.streams(ASKS)
        await site.run()
        call = answer("act_2")
        snapshot = await described(site, call)
        ((key, (_, version)),) = site.state.values.items()
        later = site.state.binding() | {"approval_generation": 2}
        assert await site.state.compare_and_set(key, expected=version, value=later)
        refused = failed(await decided(site, call, snapshot), "operator_policy")
    assert refused.details["reason"] == "other_question"
    assert site.posts("/approval") == []
