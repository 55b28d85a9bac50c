"""AIAgent without a store of its own: what a recall tool opens, and what it must not touch."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import AIAgent, SessionDB, ToolContext, ToolRegistry
from tests.support.agent_models import ScriptedModel, contents, tool_call


class Recall:
    """Counts what is stored."""

    name = "recall"
    definition: Mapping[str, Any] = {"type": "function", "function": {"name": "recall", "parameters": {}}}

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        db = await context.store()
        return f"{await db.message_count(context.session_id)} messages"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def tools() -> ToolRegistry:
    registry = ToolRegistry()
    registry.add(Recall(), toolset="recall")
    return registry


def make_foreign(home: Path) -> bytes:
    """Make a store of another program; return its bytes."""
    home.mkdir()
    theirs = sqlite3.connect(home / "state.db")
    theirs.execute("CREATE TABLE sessions (id TEXT)")
    theirs.commit()
    theirs.close()
    return (home / "state.db").read_bytes()


@pytest.mark.requirement("agent:default-store")
async def test_a_recall_tool_opens_the_default_store_and_the_turn_is_kept_there(
    home: Path, tools: ToolRegistry
) -> None:
    model = ScriptedModel("first", tool_call("recall"), "second", "third")
    async with AIAgent(model=model, session_id="s", tools=tools) as agent:
        unkept = await agent.run_conversation("one")
        assert os.listdir(home.parent) == []
        kept = await agent.run_conversation("two")
        later = await agent.run_conversation("three")
    assert [turn["persisted"] for turn in (unkept, kept, later)] == [False, True, True]
    assert contents(model.requests[2])[-1] == "2 messages"
    assert contents(model.requests[3])[:2] == ["one", "first"]
    async with SessionDB(home / "state.db") as db:
        rows = [(row["role"], row["content"]) for row in await db.get_messages("s")]
        session = await db.get_session("s")
    assert rows == [
        ("user", "two"), ("assistant", ""), ("tool", "2 messages"), ("assistant", "second"),
        ("user", "three"), ("assistant", "third"),
    ]  # fmt: skip
    assert session is not None
    assert (session["end_reason"], session["input_tokens"]) == ("agent_close", 30)


@pytest.mark.requirement("agent:default-store:foreign")
async def test_the_store_of_another_hermes_is_left_alone_and_the_turn_goes_on(home: Path, tools: ToolRegistry) -> None:
    before = make_foreign(home)
    model = ScriptedModel(tool_call("session_search", query="deployment"), tool_call("recall"), "Done.")
    async with AIAgent(model=model, tools=tools) as agent:
        result = await agent.run_conversation("one")
    assert (result["completed"], result["persisted"], result["final_response"]) == (True, False, "Done.")
    assert "session_db=" in contents(model.requests[1])[-1]
    assert "state.db" in contents(model.requests[1])[-1]
    assert "StoreRefused" in contents(model.requests[2])[-1]
    assert (home / "state.db").read_bytes() == before
    assert os.listdir(home) == ["state.db"]


@pytest.mark.requirement("agent:default-store", "agent:toolsets")
async def test_a_search_is_offered_where_there_is_something_to_search(home: Path) -> None:
    async def offered(**arguments: Any) -> list[str]:
        model = ScriptedModel()
        async with AIAgent(model=model, **arguments) as agent:
            await agent.chat("x")
        return [tool["function"]["name"] for tool in model.requests[0].tools]

    assert await offered() == []
    assert await offered(enabled_toolsets=["session_search"]) == ["session_search"]
    os.mkdir(home)
    assert await offered() == ["session_search"]
    assert os.listdir(home) == []
