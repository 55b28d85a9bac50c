"""Every published operation against the embedded endpoint: nothing else has to be installed to call it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.errors import ActionFailed
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import KEY, GatedModel, Running, served
from tests.support.hermes_calls import INPUTS, attempt, call_of, connector_of, endpoint_of, handler_of

_ROWS = load_operations()
ENDED = frozenset({"completed", "failed", "cancelled"})
ASKING = 'call: record_command {"command": "ls -l"}'
"""What makes the offline model call the tool that asks before it records."""


async def reached(running: Running, run_id: str, status: str) -> None:
    """Wait for a status of a run that stays; a run that ends in another way fails the test."""
    async with asyncio.timeout(30):
        while (run := (await running.client.get(f"/v1/runs/{run_id}")).json())["status"] != status:
            assert run["status"] not in ENDED, run


@pytest.mark.requirement("hermes:request:accepted-by-an-endpoint")
@pytest.mark.parametrize("name", _ROWS)
async def test_an_operation_reaches_a_route_that_answers_it(name: str, tmp_path: Path) -> None:
    async with served(tmp_path) as running:
        endpoint = endpoint_of(str(running.client.base_url).rstrip("/") + "/", key=Secret(KEY))
        async with connector_of(endpoint) as connector:

            async def call(operation: str, values: Mapping[str, Any]) -> Answer | ActionFailed:
                assert operation_validator(_ROWS[operation].input).violations(values) == []
                return await attempt(handler_of(connector, operation), call_of(operation, values))

            await call("session_create", {"id": "s1"})
            job = await call("job_create", INPUTS["job_create"])
            response = await call("responses", INPUTS["responses"])
            run = await call("run_start", INPUTS["run_start"])
            made: dict[str, Any] = {}
            for answer, member in ((response, "id"), (run, "run_id"), (job, "job")):
                assert isinstance(answer, Answer)
                made[member] = answer.output[member]
            ids = {"response_id": made["id"], "run_id": made["run_id"], "job_id": made["job"]["id"]}
            # A session with a running turn can't be deleted.
            await reached(running, made["run_id"], "completed")
            if name == "run_approval":
                asking = await call("run_start", {"session_id": "s1", "input": ASKING})
                assert isinstance(asking, Answer)
                ids["run_id"] = asking.output["run_id"]
                await reached(running, asking.output["run_id"], "waiting_for_approval")
            outcome = await call(name, {member: ids.get(member, value) for member, value in INPUTS[name].items()})
    if name == "run_stop":
        # The run is over; the route says so, by its own code. One that goes on is stopped below.
        assert isinstance(outcome, Answer) or outcome.details["provider"]["code"] == "run_not_found"
        return
    assert isinstance(outcome, Answer), outcome
    assert operation_validator(_ROWS[name].output).violations(outcome.output) == []


@pytest.mark.requirement("hermes:request:accepted-by-an-endpoint")
async def test_a_run_that_goes_on_can_be_stopped(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model) as running:
        endpoint = endpoint_of(str(running.client.base_url).rstrip("/") + "/", key=Secret(KEY))
        async with connector_of(endpoint) as connector:
            started = await attempt(handler_of(connector, "run_start"), call_of("run_start"))
            assert isinstance(started, Answer)
            await model.asked.wait()
            call = call_of("run_stop", {"run_id": started.output["run_id"]})
            handler = handler_of(connector, "run_stop")
            described = await handler.describe(call)
            assert described is not None
            stopped = await attempt(handler, call, described=described.snapshot)
    assert isinstance(stopped, Answer)
    assert stopped.output["status"] == "stopping"
