"""A turn of AIAgent that is cancelled at each of its awaits in turn: once, and again while it winds up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from pathlib import Path
from typing import Any, Literal

import pytest

from aip_hermes.embedded import AIAgent, ModelReply, ModelRequest, Pieces, SessionDB, ToolRegistry
from aip_hermes.embedded.agent import ToolCall
from tests.support.agent_models import ScriptedModel, tool_call

LONG = "long " * 300


class Steps(Awaitable[Any]):
    """Awaits something; at the steps that are named, its task is cancelled."""

    def __init__(self, awaited: Awaitable[Any], *cancelled_at: int) -> None:
        self.count = 0
        self._awaited = awaited
        self._cancelled_at = cancelled_at

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, failure = self._awaited.__await__(), None
        while True:
            try:
                step = next(steps) if failure is None else steps.throw(failure)
            except StopIteration as end:
                return end.value
            self.count += 1
            task = asyncio.current_task()
            assert task is not None
            if self.count in self._cancelled_at:
                asyncio.get_running_loop().call_soon(task.cancel)
            failure = None
            try:
                yield step
            except asyncio.CancelledError as cancelled:
                failure = cancelled


class SteppingModel(ScriptedModel):
    """Stops for a moment at each piece; two calls at once, one more, then an answer; sums up as `gist`."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.calls: list[tuple[ToolCall, ...]] = []

    async def stream(self, request: ModelRequest) -> Pieces:
        await asyncio.sleep(0)
        if request.system is not None and "shorten" in request.system:
            yield "gist"
            yield ModelReply(text="gist")
        elif request.tools and self.calls:
            yield "I call. "
            await asyncio.sleep(0)
            yield ModelReply(text="I call. ", tool_calls=self.calls.pop(0), finish_reason="tool_calls")
        else:
            async for piece in super().stream(request):
                yield piece
                await asyncio.sleep(0)


def registry() -> ToolRegistry:
    tools = ToolRegistry()

    @tools.tool(toolset="t", description="Takes a moment.")
    async def work() -> str:
        await asyncio.sleep(0)
        return "worked"

    return tools


async def prepared(db: SessionDB, compression: Any) -> AIAgent:
    """Return an agent whose next turn calls tools, and compresses first where it is to."""
    model = SteppingModel()
    agent = AIAgent(
        model=model, session_db=db, session_id="s", tools=registry(), enabled_toolsets=["t"], compression=compression,
        context_length=400,
    )  # fmt: skip
    for number in range(4):
        await agent.chat(f"q{number} {'w ' * 15}")
    model.calls = [(tool_call("work", 1), tool_call("work", 2)), (tool_call("work", 3),)]
    return agent


async def check_whole(db: SessionDB, agent: AIAgent) -> None:
    """The rows end with no tool result, the counters are those of the rows, nobody holds anything."""
    rows = await db.get_messages(agent.session_id)
    assert rows[-1]["role"] != "tool"
    row = await db.get_session(agent.session_id)
    assert row is not None
    calls = sum(len(message["tool_calls"] or ()) for message in rows)
    assert (row["message_count"], row["tool_call_count"]) == (len(rows), calls)
    assert await db.get_session_turn_lease_holder("s") is None
    for session_id in {"s", agent.session_id}:
        assert await db.get_compression_lock_holder(session_id) is None


async def cancelled(awaited: Awaitable[Any], *at: int) -> bool:
    """Await in a task of its own and cancel there; tell whether it came to its end all the same."""

    async def run() -> None:
        await Steps(awaited, *at)

    task = asyncio.create_task(run())
    await asyncio.wait({task})
    if task.cancelled():
        return False
    task.result()
    return True


@pytest.mark.requirement("agent:cancelled")
@pytest.mark.parametrize("compression", ["off", "in_place", "rotate"])
async def test_at_any_await_of_a_turn(tmp_path: Path, compression: str) -> None:
    at = 0
    while True:
        at += 1
        async with SessionDB(tmp_path / f"{at}.db") as db, asyncio.timeout(30):
            agent = await prepared(db, compression)
            # Every other time it is cancelled once more, while it winds up.
            over = await cancelled(agent.run_conversation(LONG), at, *([at + 1] if at % 2 else []))
            await check_whole(db, agent)
            result = await agent.run_conversation("on")
            assert (result["failed"], result["persisted"]) == (False, True)
            await check_whole(db, agent)
            kept = [row for one in {"s", agent.session_id} for row in await db.get_messages(one, include_inactive=True)]
            assert LONG in [row["content"] for row in kept]
            await agent.close()
        if over:
            break
    assert at > 15


@pytest.mark.requirement("agent:cancelled", "agent:default-store")
async def test_at_any_await_while_the_default_store_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = 0
    while True:
        at += 1
        monkeypatch.setenv("HERMES_HOME", str(tmp_path / str(at)))
        model = ScriptedModel(tool_call("session_search", query="x"))
        async with (
            asyncio.timeout(30),
            AIAgent(model=model, session_id="s", enabled_toolsets=["session_search"]) as agent,
        ):
            over = await cancelled(agent.run_conversation("one"), at)
            asked = len(model.requests)
            result = await agent.run_conversation("two")
        stored = []
        if (tmp_path / str(at) / "state.db").exists():
            async with SessionDB() as db:
                stored = [row["content"] for row in await db.get_messages("s") if row["role"] == "user"]
        # All of the turn in which the store was opened, and what came after it; or nothing.
        assert stored == ((["one", "two"] if asked else ["two"]) if result["persisted"] else [])
        if over:
            break
    assert at > 4


@pytest.mark.requirement("agent:cancelled", "agent:compression:demanded")
@pytest.mark.parametrize("way", ["in_place", "rotate"])
async def test_at_any_await_of_a_demanded_compression(tmp_path: Path, way: Literal["in_place", "rotate"]) -> None:
    at = 0
    while True:
        at += 1
        async with SessionDB(tmp_path / f"{at}.db") as db, asyncio.timeout(30):
            agent = AIAgent(
                model=SteppingModel(), session_db=db, session_id="s", enabled_toolsets=[], compression=way,
                turn_lease_wait_seconds=0,
            )  # fmt: skip
            for number in range(14):
                await agent.chat(f"m{number}")
            over = await cancelled(agent.compress(), at)
            # Behind whatever was still on its way to the disk.
            await db.set_meta("barrier", str(at))
            await check_whole(db, agent)
            assert (await agent.run_conversation("on"))["persisted"]
            await agent.close()
        if over:
            break
    assert at > 5
