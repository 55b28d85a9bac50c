"""Which run an answer begins, and which one it shows to be over."""

from __future__ import annotations

import pytest

from aip_hermes.contract.handler import Answer
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import StreamStub, reply_stream
from tests.support.hermes_stub import RUN, Reply, reply_error, reply_json, row_of
from tests.support.operator_runs import ENDED, STARTED, told

NAME = "hermes_agent:primary:run:run_1"


@pytest.mark.requirement("hermes:runs:ends")
async def test_a_started_run_is_named() -> None:
    async with StreamStub([row_of("s1")]) as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        outcome = await attempt(handler_of(connector, "run_start"), call_of("run_start"))
    assert isinstance(outcome, Answer)
    assert (outcome.begins, outcome.ends) == (NAME, None)


@pytest.mark.requirement("hermes:runs:ends")
@pytest.mark.parametrize(
    ("operation", "reply", "ends"),
    [
        ("run_status", reply_json({**RUN, "status": "completed"}), NAME),
        ("run_status", reply_json({**RUN, "status": "failed"}), NAME),
        ("run_status", reply_json({**RUN, "status": "cancelled"}), NAME),
        ("run_status", reply_json({**RUN, "status": "running"}), None),
        ("run_status", reply_json({**RUN, "status": ["completed"]}), None),
        ("run_status", reply_error(404, "run_not_found"), None),
        ("run_events", reply_stream(told(STARTED, ENDED)), NAME),
        ("run_events", reply_stream(told(("run.failed", {"error": "no"}))), NAME),
        ("run_events", reply_stream(told(("run.cancelled", {}))), NAME),
        ("run_events", reply_stream(told(STARTED)), None),
        ("run_events", reply_stream(told(STARTED), behaviour="reset"), None),
    ],
)
async def test_only_an_end_that_the_endpoint_says_is_one(operation: str, reply: Reply, ends: str | None) -> None:
    async with StreamStub() as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        stub.on("GET", "/v1/runs/run_1", reply)
        stub.on("GET", "/events", reply)
        outcome = await attempt(handler_of(connector, operation), call_of(operation))
    assert outcome.ends == ends


@pytest.mark.requirement("hermes:runs:ends")
@pytest.mark.parametrize("operation", ["run_stop", "run_approval", "health"])
async def test_what_does_not_say_that_a_run_is_over_ends_none(operation: str) -> None:
    async with StreamStub() as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        handler, call = handler_of(connector, operation), call_of(operation)
        described = await handler.describe(call)
        outcome = await attempt(handler, call, described=described.snapshot if described else None)
    assert isinstance(outcome, Answer)
    assert (outcome.begins, outcome.ends) == (None, None)
