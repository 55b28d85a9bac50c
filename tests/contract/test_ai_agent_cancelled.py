"""A turn of AIAgent that is cancelled, at each place where it can be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import AIAgent, ModelRequest, Pieces, SessionDB, ToolRegistry
from aip_hermes.embedded.session_db import TurnGround
from tests.support.agent_models import ScriptedModel, contents, tool_call
from tests.support.embedded_endpoint import GatedModel, HaltingModel
from tests.support.runtime_clock import ManualClock


class SlowStore(SessionDB):
    """Stops before it writes the row of a role, until it is let."""

    def __init__(self, path: Path, *, clock: ManualClock | None = None) -> None:
        super().__init__(path, clock=clock)
        self.stops_at = ""
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()

    async def begin_turn(self, ground: TurnGround, question: Mapping[str, Any], **options: Any) -> int:
        await self._pass("user")
        return await super().begin_turn(ground, question, **options)

    async def record_reply(self, session_id: str, *arguments: Any, **options: Any) -> int:
        await self._pass("assistant")
        return await super().record_reply(session_id, *arguments, **options)

    async def _pass(self, role: str) -> None:
        if role == self.stops_at:
            self.reached.set()
            await self.gate.wait()


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SlowStore]:
    async with SlowStore(tmp_path / "state.db") as store, asyncio.timeout(30):
        yield store


async def rows(db: SessionDB) -> list[tuple[str, Any, str | None]]:
    return [(row["role"], row["content"], row["finish_reason"]) for row in await db.get_messages("s")]


async def given_up(turn: asyncio.Task[Any], *, times: int = 1) -> None:
    """Cancel and wait."""
    for _ in range(times):
        turn.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await turn


async def goes_on(db: SessionDB, agent: AIAgent) -> str:
    """Take another turn, which finds the conversation free; return what the model read."""
    assert await db.get_session_turn_lease_holder("s") is None
    result = await agent.run_conversation("on")
    assert result["persisted"]
    return "|".join(str(message["content"]) for message in result["messages"][:-1])


@pytest.mark.requirement("agent:cancelled")
async def test_while_it_waits_for_the_turn_before_it(db: SlowStore) -> None:
    model = GatedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        running = asyncio.create_task(agent.chat("one"))
        await model.asked.wait()
        waiting = asyncio.create_task(agent.chat("two"))
        await asyncio.sleep(0)
        await given_up(waiting)
        model.gate.set()
        assert await running == "Reply 1"
        assert await goes_on(db, agent) == "one|Reply 1|on"


@pytest.mark.requirement("agent:cancelled")
async def test_while_it_waits_for_the_lease(tmp_path: Path) -> None:
    clock = ManualClock()
    async with SlowStore(tmp_path / "state.db", clock=clock) as db, asyncio.timeout(30):
        await db.try_acquire_session_turn_lease("s", "other")
        async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
            turn = asyncio.create_task(agent.chat("one"))
            await clock.until_asleep(0.25)
            await given_up(turn)
            assert await db.get_session_turn_lease_holder("s") == "other"
            assert await rows(db) == []
            await db.release_session_turn_lease("s", "other")
            assert await goes_on(db, agent) == "on"


@pytest.mark.requirement("agent:cancelled")
async def test_while_the_question_is_written(db: SlowStore) -> None:
    model = ScriptedModel()
    db.stops_at = "user"
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one"))
        await db.reached.wait()
        turn.cancel()
        await asyncio.sleep(0)
        turn.cancel()
        db.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (await rows(db), model.requests) == ([("user", "one", None)], [])
        assert await goes_on(db, agent) == "one\n\non"


@pytest.mark.requirement("agent:cancelled")
async def test_while_the_model_thinks(db: SlowStore) -> None:
    model = GatedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one"))
        await model.asked.wait()
        await given_up(turn, times=2)
        assert await rows(db) == [("user", "one", None)]
        model.gate.set()
        assert await goes_on(db, agent) == "one\n\non"


@pytest.mark.requirement("agent:cancelled")
async def test_in_the_middle_of_the_text(db: SlowStore) -> None:
    model, heard = HaltingModel(), list[str]()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one", heard.append))
        await model.asked.wait()
        await given_up(turn, times=2)
        assert heard == ["Half "]
        assert await rows(db) == [("user", "one", None), ("assistant", "Half ", "interrupted")]
        model.gate.set()
        assert await goes_on(db, agent) == "one|Half |on"


@pytest.mark.requirement("agent:cancelled")
async def test_while_the_answer_is_written(db: SlowStore) -> None:
    db.stops_at = "assistant"
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one"))
        await db.reached.wait()
        turn.cancel()
        await asyncio.sleep(0)
        db.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert await rows(db) == [("user", "one", None), ("assistant", "Reply 1", "stop")]
        assert await goes_on(db, agent) == "one|Reply 1|on"


@pytest.mark.requirement("agent:cancelled")
async def test_in_a_tool(db: SlowStore) -> None:
    tools, inside = ToolRegistry(), asyncio.Event()

    @tools.tool(toolset="t", description="Takes for ever.")
    async def wait() -> str:
        inside.set()
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel(tool_call("wait"))
    async with AIAgent(model=model, session_db=db, session_id="s", tools=tools) as agent:
        turn = asyncio.create_task(agent.chat("one"))
        await inside.wait()
        await given_up(turn)
        assert await rows(db) == [
            ("user", "one", None), ("assistant", "", "tool_calls"), ("tool", '{"status": "interrupted"}', None),
            ("assistant", "Operation interrupted.", "interrupted"),
        ]  # fmt: skip
        assert len(model.requests) == 1
        assert await goes_on(db, agent) == 'one||{"status": "interrupted"}|Operation interrupted.|on'


class StuckModel(ScriptedModel):
    """Calls a tool, then thinks for ever about its result."""

    def __init__(self) -> None:
        super().__init__(tool_call("nothing"))
        self.asked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> Pieces:
        if len(self.requests) == 1:
            self.asked.set()
            await asyncio.Event().wait()
        async for piece in super().stream(request):
            yield piece


@pytest.mark.requirement("agent:cancelled")
async def test_in_the_request_after_a_tool(db: SlowStore) -> None:
    model = StuckModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one"))
        await model.asked.wait()
        await given_up(turn)
        stored = await rows(db)
    assert [row[0] for row in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[-1] == ("assistant", "Operation interrupted.", "interrupted")
    assert await db.get_session_turn_lease_holder("s") is None


class SummaryModel(ScriptedModel):
    """Thinks for ever about a summary."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def stream(self, request: ModelRequest) -> Pieces:
        if request.system is not None and "shorten" in request.system:
            self.asked.set()
            await asyncio.Event().wait()
        async for piece in super().stream(request):
            yield piece


@pytest.mark.requirement("agent:cancelled", "agent:compression:failed")
async def test_while_a_summary_is_made(db: SlowStore) -> None:
    model = SummaryModel()
    async with AIAgent(model=model, session_db=db, session_id="s", context_length=1_000, enabled_toolsets=[]) as agent:
        for number in range(4):
            await agent.chat(f"m{number}")
        turn = asyncio.create_task(agent.chat("long " * 600))
        await model.asked.wait()
        await given_up(turn, times=2)
        assert await db.get_compression_lock_holder("s") is None
        assert await db.get_session_turn_lease_holder("s") is None
        stored = await rows(db)
    assert [row[0] for row in stored] == ["user", "assistant"] * 4 + ["user"]
    assert contents(model.requests[-1])[-1] == "m3"
