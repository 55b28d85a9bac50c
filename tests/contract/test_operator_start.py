"""The operator's start: bound first, sent once, judged by what it proved."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from aip_hermes.contract.handler import Answer
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.operator import OperatorPolicy
from aip_hermes.hermes.operator.policy import DEFAULT_INSTRUCTIONS
from aip_hermes.ids import EndpointId, PrincipalId
from aip_hermes.wire import sha256_hex
from tests.support.hermes_calls import call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import failed
from tests.support.hermes_stub import Arrived, Reply, reply_error, reply_json
from tests.support.memory_state import MemoryState
from tests.support.operator_runs import ENDED, QUICK, Site
from tests.support.runtime_clock import ManualClock


@pytest.mark.requirement("hermes:operator:bound-before", "hermes:operator:start-body", "hermes:operator:ends")
async def test_the_binding_stands_before_the_one_start() -> None:
    values = {
        "objective": "Prüfe die Sicherungen.",
        "context": {"hosts": ["a", "b"]},
        "candidate_capabilities": ["cap:hermes_agent:primary:models"],
        "constraints": {"read_only": True},
    }
    policy = OperatorPolicy(poll_interval_ms=10, model="deep")
    bound: list[dict[str, Any]] = []

    def start(_request: Arrived) -> Reply:
        bound.append(site.state.binding())
        return reply_json({"run_id": "run_1", "status": "started"}, status=202)

    async with Site.open(policy=policy) as site:
        site.streams(ENDED)
        site.stub.on("POST", "/v1/runs", start)
        outcome = await site.run(values)
    assert isinstance(outcome, Answer)
    assert outcome.output == {
        "endpoint_id": "primary",
        "run_id": "run_1",
        "session_id": "aip-operator-act_1",
        "source_action_id": "act_1",
        "delegation_id": None,
        "parent_action_id": None,
        "status": "completed",
        "last_event": "run.completed",
        "pending_approval": None,
        "provider": ENDED[1],
    }
    assert (outcome.text, outcome.cancelled, outcome.requires_human) == ("All four hold.", False, False)
    [before], [sent] = bound, site.posts("/v1/runs")
    assert (before["status"], before["run_id"]) == ("starting", None)
    assert before["start_claim"]["expires_at"] - before["start_claim"]["claimed_at"] == 60_000
    body = sent.json
    read = json.loads(body.pop("input"))
    assert body == {"instructions": DEFAULT_INSTRUCTIONS, "session_id": "aip-operator-act_1", "model": "deep"}
    assert read.pop("execution_contract")["action_id"] == "act_1"
    assert read == {"kind": "aip_operator_objective", **values}
    assert sent.headers["accept"] == "application/json"
    assert sent.headers["idempotency-key"] == "key-1"
    assert site.state.binding()["output_sha256"] == sha256_hex(ENDED[1])


@pytest.mark.requirement("hermes:operator:one-start")
async def test_equal_calls_at_once_and_later_start_one_run() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async with Site.open() as site:
        site.stub.on("POST", "/v1/runs", reply_json({"run_id": "run_1"}, status=202))
        call = call_of("operator")
        held = site.state.compare_and_set

        async def slow(key: str, *, expected: int | None, value: dict[str, Any]) -> int | None:
            if value["start_claim"] is not None and not arrived.is_set():
                arrived.set()
                await go_on.wait()
            return await held(key, expected=expected, value=value)

        site.state.compare_and_set = slow  # type: ignore[method-assign]
        calls = [asyncio.create_task(site.send(call)) for _ in range(3)]
        await arrived.wait()
        go_on.set()
        outcomes = await asyncio.gather(*calls)
        later = await site.send(call)
    assert [outcome.output["status"] for outcome in (*outcomes, later)] == ["completed"] * 4
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:start-failed", "hermes:operator:one-start")
async def test_a_start_that_takes_longer_than_its_claim_is_unknown_to_who_waits() -> None:
    clock = ManualClock()
    policy = OperatorPolicy(poll_interval_ms=60_000, start_claim_ttl_ms=300_000)
    async with Site.open(clock=clock, policy=policy) as site:
        site.stub.on("POST", "/v1/runs", Reply(behaviour="stall"))
        starting = asyncio.create_task(site.run())
        await site.stub.stalled.wait()
        waiting = asyncio.create_task(site.run())
        await clock.until_asleep(60)
        clock.advance(300_000)
        failure = failed(await waiting, "operator_outcome_unknown")
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    assert (failure.uncertain, failure.details["reason"]) == (True, "start_interrupted")
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:other-request")
@pytest.mark.parametrize(
    "changed", [{"values": {"objective": "Delete them."}}, {"actor": "another"}], ids=["input", "caller"]
)
async def test_an_action_id_stands_for_one_request(changed: dict[str, Any]) -> None:
    async with Site.open() as site:
        first = call_of("operator")
        await site.send(first)
        if "actor" in changed:
            second = replace(first, actor=replace(first.actor, principal_id=PrincipalId("human:eve")))
        else:
            second = call_of("operator", changed["values"])
        with pytest.raises(ActionFailed) as refused:
            await site.send(second)
    failure = failed(refused.value, "operator_policy")
    assert (failure.uncertain, failure.retryable, site.starts) == (False, False, 1)


@pytest.mark.requirement("hermes:operator:other-request")
async def test_an_action_id_belongs_to_one_endpoint() -> None:
    async with Site.open() as site:
        await site.send(call_of("operator"))
        other = endpoint_of(site.stub.base_url, id=EndpointId("other"))
        async with connector_of(other, operator=QUICK) as connector:
            with pytest.raises(ActionFailed) as refused:
                await handler_of(connector, "operator").send(
                    call_of("operator"), await site.handler.prepare(call_of("operator"), None), state=site.state
                )
    failed(refused.value, "operator_policy")
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:start-failed", "hermes:operator:one-start")
@pytest.mark.parametrize(
    ("reply", "code", "kept", "uncertain"),
    [
        (reply_error(400, None), "operator_start_rejected", "failed", False),
        (reply_error(409, None), "operator_start_rejected", "failed", False),
        (Reply(behaviour="reset"), "operator_outcome_unknown", "outcome_unknown", True),
        (reply_error(500, None), "operator_outcome_unknown", "outcome_unknown", True),
        (reply_json({"status": "started"}), "operator_outcome_unknown", "outcome_unknown", True),
        (reply_json({"run_id": 7}), "operator_outcome_unknown", "outcome_unknown", True),
        (reply_json({"run_id": ".."}), "operator_outcome_unknown", "outcome_unknown", True),
    ],
    ids=["400", "409", "reset", "500", "no run id", "a number", "no path"],
)
async def test_a_start_that_failed_is_never_sent_again(reply: Reply, code: str, kept: str, uncertain: bool) -> None:
    async with Site.open() as site:
        site.stub.on("POST", "/v1/runs", reply)
        first, second = await site.run(), await site.run()
    for outcome in (first, second):
        assert failed(outcome, code).uncertain is uncertain
        assert not outcome.frees_key if isinstance(outcome, ActionFailed) else False
    assert site.state.binding()["status"] == kept
    assert site.starts == 1


@pytest.mark.requirement("hermes:operator:start-failed")
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (reply_error(429, "rate_limit_exceeded"), "remote_temporary"),
        (reply_error(503, "gateway_draining"), "remote_temporary"),
        (reply_error(401, "invalid_api_key"), "authentication"),
    ],
    ids=["429", "draining", "401"],
)
async def test_what_certainly_did_not_start_may_be_sent_again(reply: Reply, code: str) -> None:
    async with Site.open() as site:
        site.stub.on("POST", "/v1/runs", reply, times=1)
        first, second = await site.run(), await site.run(attempt=2)
    assert failed(first, code).frees_key
    assert isinstance(second, Answer)
    assert site.starts == 2


@pytest.mark.requirement("hermes:operator:bound-before")
@pytest.mark.parametrize(
    ("away", "code", "uncertain", "starts"),
    [
        ("read", "operator_state", False, 0),
        ("starting", "operator_state", False, 0),
        ("running", "operator_outcome_unknown", True, 1),
    ],
)
async def test_without_a_store_nothing_is_started(away: str, code: str, uncertain: bool, starts: int) -> None:
    async with Site.open(state=MemoryState(lambda what: what == away)) as site:
        outcome = await site.run()
    failure = failed(outcome, code)
    assert (failure.uncertain, site.starts) == (uncertain, starts)


@pytest.mark.requirement("hermes:operator:bound-before", "hermes:operator:ends")
async def test_an_end_in_hand_counts_whatever_the_store_says() -> None:
    async with Site.open(state=MemoryState(lambda what: what == "completed")) as site:
        site.streams(ENDED)
        outcome = await site.run()
    assert isinstance(outcome, Answer)
    assert outcome.output["status"] == "completed"


@pytest.mark.requirement("hermes:operator:policy")
@pytest.mark.parametrize(
    ("policy", "values", "code"),
    [
        (
            OperatorPolicy(allowed_capability_prefixes=("cap:hermes_agent:primary:",)),
            {"objective": "x", "candidate_capabilities": ["cap:hermes_agent:primary:chat", "cap:other:x"]},
            "operator_policy",
        ),
        (OperatorPolicy(max_input_bytes=1_024), {"objective": "x" * 1_024}, "configuration_or_input"),
        (OperatorPolicy(), {"objective": "\ud800"}, "configuration_or_input"),
    ],
    ids=["capability", "size", "surrogate"],
)
async def test_what_the_policy_forbids_is_refused_before_anything_is_kept(
    policy: OperatorPolicy, values: dict[str, Any], code: str
) -> None:
    async with Site.open(policy=policy) as site:
        outcome = await site.run(values)
    assert failed(outcome, code).uncertain is False
    assert (site.stub.arrived, site.state.values) == ([], {})


@pytest.mark.requirement("hermes:operator:policy")
@pytest.mark.parametrize("prefixes", [(), ("*",), ("cap:other:", "cap:hermes_agent:")])
async def test_what_the_policy_allows_is_forwarded(prefixes: tuple[str, ...]) -> None:
    policy = OperatorPolicy(poll_interval_ms=10, allowed_capability_prefixes=prefixes)
    async with Site.open(policy=policy) as site:
        outcome = await site.run({"objective": "x", "candidate_capabilities": ["cap:hermes_agent:primary:chat"]})
    assert isinstance(outcome, Answer)
