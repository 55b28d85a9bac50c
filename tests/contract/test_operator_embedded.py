"""The operator against the embedded endpoint, with nothing else installed: an objective, an approval, a stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.contract.handler import Answer, Handler, Prepared
from aip_hermes.contract.schemas import operation_validator
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import ActionId
from aip_hermes.ports import SystemClock
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import KEY, GatedModel, Running, served
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import Kept
from tests.support.memory_state import MemoryState
from tests.support.operator_runs import QUICK

ASKS = {"objective": 'Note it.\n\ncall: record_command {"command": "ls /backups"}'}


@dataclass
class Operated:
    handler: Handler
    running: Running
    state: MemoryState = field(default_factory=MemoryState)
    kept: Kept = field(default_factory=Kept)

    async def run(self, action_id: str, values: Mapping[str, Any]) -> Answer | ActionFailed:
        assert operation_validator("operator.json").violations(values) == []
        call = call_of("operator", values, action_id=ActionId(action_id))
        outcome = await attempt(self.handler, call, state=self.state, publish=self.kept)
        if isinstance(outcome, Answer):
            assert operation_validator("operator_answer.json").violations(outcome.output) == []
        return outcome

    async def resume(self, action_id: str, choice: str) -> Answer | ActionFailed:
        return await self.run(action_id, {"resume": {"source_action_id": "act_1", "choice": choice}})

    async def said(self) -> list[str]:
        _, rows = await self.running.messages("aip-operator-act_1")
        return [str(row["content"]) for row in rows]


@asynccontextmanager
async def operated(folder: Path, model: GatedModel | None = None) -> AsyncIterator[Operated]:
    async with served(folder, model=model) as running, asyncio.timeout(30):
        endpoint = endpoint_of(str(running.client.base_url).rstrip("/") + "/", key=Secret(KEY))
        async with connector_of(endpoint, operator=QUICK, clock=SystemClock()) as connector:
            yield Operated(handler=handler_of(connector, "operator"), running=running)


@pytest.mark.requirement("hermes:operator:embedded")
async def test_an_objective_is_carried_out_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with operated(tmp_path) as site:
        outcome = await site.run("act_1", {"objective": "Check the backups.", "constraints": {"read_only": True}})
        again = await site.run("act_1", {"objective": "Check the backups.", "constraints": {"read_only": True}})
        said = await site.said()
    assert isinstance(outcome, Answer)
    assert isinstance(again, Answer)
    assert (outcome.output["status"], outcome.output["session_id"]) == ("completed", "aip-operator-act_1")
    assert outcome.text is not None
    assert "Check the backups." in outcome.text
    assert (again.text, again.output | {"provider": None}) == (outcome.text, outcome.output | {"provider": None})
    assert len(said) == 2
    assert site.kept.kinds[-1] == "done"


@pytest.mark.requirement("hermes:operator:embedded", "hermes:operator:requires-human", "hermes:operator:resume")
@pytest.mark.parametrize(("choice", "result"), [("once", '"recorded": true'), ("deny", '"status": "denied"')])
async def test_an_approval_is_answered_once_and_the_run_goes_on(tmp_path: Path, choice: str, result: str) -> None:
    async with operated(tmp_path) as site:
        asked = await site.run("act_1", ASKS)
        assert isinstance(asked, Answer)
        assert (asked.requires_human, asked.output["status"]) == (True, "waiting_for_approval")
        assert asked.output["pending_approval"]["command"] == "ls /backups"
        ended = await site.resume("act_2", choice)
        again = await site.resume("act_2", choice)
        late = await site.resume("act_3", choice)
        said = await site.said()
    assert isinstance(ended, Answer)
    assert (ended.output["status"], ended.output["source_action_id"]) == ("completed", "act_1")
    assert again == ended
    assert isinstance(late, ActionFailed)
    assert late.code == "connector.hermes_agent.operator_policy"
    assert [text for text in said if result in text]
    assert "pending_approval" in site.kept.kinds


@pytest.mark.requirement("hermes:operator:embedded", "hermes:operator:resume")
async def test_a_run_that_asks_twice_is_answered_twice(tmp_path: Path) -> None:
    line = 'call: record_command {"command": "ls"}'
    async with operated(tmp_path) as site:
        asked = await site.run("act_1", {"objective": f"Note both.\n\n{line}\n{line}"})
        again = await site.resume("act_2", "once")
        ended = await site.resume("act_3", "once")
    assert isinstance(asked, Answer)
    assert isinstance(again, Answer)
    assert isinstance(ended, Answer)
    assert [each.output["status"] for each in (asked, again, ended)] == [
        "waiting_for_approval",
        "waiting_for_approval",
        "completed",
    ]


@pytest.mark.requirement("hermes:operator:embedded", "hermes:operator:cancel")
async def test_a_run_under_way_is_stopped(tmp_path: Path) -> None:
    model = GatedModel()
    async with operated(tmp_path, model) as site:
        running = asyncio.create_task(site.run("act_1", {"objective": "Take long."}))
        await model.asked.wait()
        call = call_of("operator", {"objective": "Take long."})
        evidence = await site.handler.cancel(call, Prepared(), state=site.state)
        outcome = await running
    assert (evidence["stopped"], evidence["ended"]) == (True, True)
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.output["status"]) == (True, "cancelled")
