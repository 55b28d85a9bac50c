"""AIAgent: one ordered conversation, with and without a store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import AIAgent, ModelFailed, SessionDB, ToolRegistry, TurnFailed
from tests.support.agent_models import ScriptedModel, called, contents, refused, scripted, spoken, tool_call
from tests.support.client_stub_server import running_stub
from tests.support.embedded_endpoint import GatedModel


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB(tmp_path / "folder" / "state.db") as store:
        yield store


@pytest.mark.requirement("agent:history")
async def test_calls_on_one_instance_remember_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    model = ScriptedModel()
    async with AIAgent(model=model) as agent:
        assert await agent.chat("one") == "Reply 1"
        assert await agent.chat("two") == "Reply 2"
    assert contents(model.requests[1]) == ["one", "Reply 1", "two"]
    async with AIAgent(model="offline") as agent:
        await agent.chat("My colour is blue.")
        assert "My colour is blue." in await agent.chat("Which colour?")
    assert os.listdir(tmp_path) == []


@pytest.mark.requirement("agent:opens-late", "agent:close")
async def test_construction_and_entry_make_no_file(db: SessionDB) -> None:
    async with AIAgent(model="offline", session_db=db, session_id="s"):
        assert not db.path.parent.exists()
    assert not db.path.parent.exists()


@pytest.mark.requirement("agent:serialised")
async def test_concurrent_calls_run_in_call_order_and_instances_side_by_side(db: SessionDB) -> None:
    model, other = GatedModel(), ScriptedModel()
    async with AIAgent(model=model, session_db=db) as agent, AIAgent(model=other, session_db=db) as apart:
        turns = [asyncio.create_task(agent.chat(f"m{number}")) for number in range(3)]
        async with asyncio.timeout(30):
            await model.asked.wait()
            assert await apart.chat("elsewhere") == "Reply 1"
            assert len(model.requests) == 1
            model.gate.set()
            assert await asyncio.gather(*turns) == ["Reply 1", "Reply 2", "Reply 3"]
        assert contents(model.requests[2]) == ["m0", "Reply 1", "m1", "Reply 2", "m2"]
        stored = [row["content"] for row in await db.get_messages(agent.session_id)]
    assert stored == ["m0", "Reply 1", "m1", "Reply 2", "m2", "Reply 3"]


@pytest.mark.requirement("agent:explicit-history")
async def test_a_given_history_is_copied_taken_as_stored_and_gone_on_with(db: SessionDB) -> None:
    model = ScriptedModel()
    given: list[dict[str, Any]] = [{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "yes"}]
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        await agent.chat("forgotten")
        result = await agent.run_conversation("now", conversation_history=given)
        await agent.chat("later")
    assert [message["content"] for message in result["messages"]] == ["earlier", "yes", "now", "Reply 2"]
    assert len(given) == 2
    assert contents(model.requests[2]) == ["earlier", "yes", "now", "Reply 2", "later"]
    stored = [row["content"] for row in await db.get_messages("s")]
    assert stored == ["forgotten", "Reply 1", "now", "Reply 2", "later", "Reply 3"]


@pytest.mark.requirement("agent:resume")
async def test_an_old_id_alone_loads_nothing_and_a_resumed_history_goes_on(db: SessionDB) -> None:
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        await agent.chat("one")
    model = ScriptedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        await agent.chat("fresh")
    tip = await db.resolve_resume_session_id("s")
    history, shown = await db.get_resume_conversations(tip)
    async with AIAgent(model=model, session_db=db, session_id=tip) as agent:
        result = await agent.run_conversation("on", conversation_history=history)
    assert contents(model.requests[0]) == ["fresh"]
    assert contents(model.requests[1]) == ["one", "Reply 1", "fresh", "Reply 1", "on"]
    assert [message["content"] for message in shown] == ["one", "Reply 1", "fresh", "Reply 1"]
    assert (result["persisted"], result["session_id"]) == (True, "s")
    row = await db.get_session("s")
    assert row is not None
    assert row["message_count"] == 6


@pytest.mark.requirement("agent:result")
async def test_a_result_says_what_happened(db: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_SESSION_SOURCE", raising=False)
    tools = ToolRegistry()

    @tools.tool(toolset="clock", description="Tells the time.", parameters={"type": "object", "properties": {}})
    async def now() -> dict[str, int]:
        return {"hour": 12}

    with running_stub(scripted(called("now"), spoken("It is ", "noon."))) as stub:
        async with AIAgent(
            base_url=stub.url + "/v1",
            api_key="sk-secret",
            provider="custom",
            model="m1",
            session_db=db,
            session_id="s",
            tools=tools,
            enabled_toolsets=["clock"],
            ephemeral_system_prompt="Be brief.",
            platform="test",
            user_id="u",
        ) as agent:
            pieces: list[str] = []
            result = await agent.run_conversation("Time?", system_message="In words.", stream_callback=pieces.append)
        first, second = (request.json for request in stub.posts)
    assert {name: result[name] for name in result if name != "messages"} == {
        "final_response": "It is noon.", "last_reasoning": None, "api_calls": 2, "completed": True, "failed": False,
        "turn_exit_reason": "text_response(finish_reason=stop)", "partial": False, "interrupted": False,
        "model": "m1", "provider": "custom", "base_url": stub.url + "/v1", "input_tokens": 14, "output_tokens": 4,
        "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0, "prompt_tokens": 14,
        "completion_tokens": 4, "total_tokens": 18, "last_prompt_tokens": 7, "session_id": "s", "persisted": True,
        "response_transformed": False, "response_previewed": False, "estimated_cost_usd": None,
        "cost_status": "unknown", "cost_source": "none", "service_tier": None,
    }  # fmt: skip
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert "".join(pieces).strip() == "It is noon."
    assert first["messages"][0] == {"role": "system", "content": "Be brief.\n\nIn words."}
    assert [tool["function"]["name"] for tool in first["tools"]] == ["now"]
    assert second["messages"][-1] == {"role": "tool", "content": '{"hour": 12}', "tool_call_id": "c1"}
    row = await db.get_session("s")
    assert row is not None
    known = ("source", "model", "user_id", "model_config", "message_count", "input_tokens", "api_call_count")
    assert [row[name] for name in known] == ["test", "m1", "u", '{"max_iterations": 90}', 4, 14, 2]
    assert row["cwd"]
    assert "sk-secret" not in repr(vars(agent))
    assert [r["tool_name"] for r in await db.get_messages("s")] == [None, None, "now", None]


@pytest.mark.requirement("agent:model-failed")
async def test_a_failed_model_is_a_failed_result_and_the_next_turn_carries_the_question_on(db: SessionDB) -> None:
    with running_stub(scripted(refused(400), spoken("Here."))) as stub:
        async with AIAgent(base_url=stub.url, model="m", session_db=db, session_id="s") as agent:
            result = await agent.run_conversation("one")
            again = await agent.run_conversation("two")
            with pytest.raises(TurnFailed) as failed:
                await agent.chat("three")
        sent = stub.posts[1].json["messages"]
    assert (result["failed"], result["completed"], result["persisted"]) == (True, False, True)
    assert result["error"] == result["final_response"] == "HTTP 400: no"
    assert result["turn_exit_reason"] == "model_failed"
    assert sent == [{"role": "user", "content": "one\n\ntwo"}]
    assert again["final_response"] == "Here."
    assert failed.value.result["session_id"] == "s"
    assert [row["content"] for row in await db.get_messages("s")] == ["one", "two", "Here.", "three"]


@pytest.mark.requirement("agent:iterations")
async def test_a_model_that_calls_for_ever_is_stopped() -> None:
    model = ScriptedModel(*(tool_call("nothing", number) for number in range(5)))
    async with AIAgent(model=model, max_iterations=3) as agent:
        result = await agent.run_conversation("go")
    assert (result["failed"], result["turn_exit_reason"], result["api_calls"]) == (True, "max_iterations", 3)


@pytest.mark.requirement("agent:stream")
async def test_a_callback_may_be_async_and_its_failure_is_not_the_turns(db: SessionDB) -> None:
    told: list[str] = []

    async def later(text: str) -> None:
        await asyncio.sleep(0)
        told.append(text)

    def broken(text: str) -> None:
        raise ValueError(text)

    async with AIAgent(model="offline", session_db=db) as agent:
        first = await agent.chat("one", stream_callback=later)
        assert "".join(told) == first
        assert await agent.chat("two", broken)


@pytest.mark.requirement("agent:close")
async def test_close_ends_the_row_once_and_a_new_turn_opens_it_again(db: SessionDB) -> None:
    agent = AIAgent(model=ScriptedModel(), session_db=db, session_id="s")
    await agent.chat("one")
    await asyncio.gather(agent.close(), agent.close())
    row = await db.get_session("s")
    assert row is not None
    assert row["end_reason"] == "agent_close"
    with pytest.raises(RuntimeError, match="closed"):
        await agent.chat("two")
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        await agent.chat("two")
        row = await db.get_session("s")
        assert row is not None
        assert (row["end_reason"], row["ended_at"]) == (None, None)
        await db.end_session("s", "done")
        await agent.chat("three")
    row = await db.get_session("s")
    assert row is not None
    assert (row["end_reason"], row["message_count"]) == ("done", 6)


@pytest.mark.requirement("agent:close")
async def test_close_waits_for_the_turn_and_survives_a_store_that_is_gone(db: SessionDB) -> None:
    model = GatedModel()
    agent = AIAgent(model=model, session_db=db, session_id="s")
    async with asyncio.timeout(30):
        turn = asyncio.create_task(agent.chat("one"))
        await model.asked.wait()
        closing = asyncio.create_task(agent.close())
        model.gate.set()
        assert await turn == "Reply 1"
        await closing
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        await agent.chat("two")
        await db.close()


@pytest.mark.requirement("agent:arguments")
@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"model": "offline", "fallback_model": {}}, TypeError, "asks one model"),
        ({"model": "offline", "sesion_id": "s"}, TypeError, "no such argument"),
        ({"model": "offline", "sesion_id": None}, TypeError, "no such argument"),
        ({"model": "offline", "quiet_mode": False}, TypeError, "prints nothing"),
        ({"model": "offline", "skip_memory": False}, TypeError, "no memory"),
        ({"model": "offline", "max_tokens": 0}, TypeError, "no limit"),
        ({"model": "m"}, ValueError, "base_url="),
        ({"model": "m", "provider": "anthropic", "base_url": "http://127.0.0.1:1"}, ValueError, "base_url="),
        ({"model": ScriptedModel(), "api_key": "k"}, ValueError, "model object"),
        ({"model": "offline", "session_db": object()}, TypeError, "create_session"),
        ({"model": "offline", "enabled_toolsets": ["browser"]}, ValueError, "session_search"),
        ({"model": "offline", "max_iterations": 0}, ValueError, "max_iterations"),
        ({"model": "offline", "compression": "zip"}, ValueError, "in_place"),
        ({"model": "offline", "compression_share": 2.0}, ValueError, "share"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_the_agent_does_not_act_on_is_refused(
    arguments: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        AIAgent(**arguments)


@pytest.mark.requirement("agent:arguments")
async def test_what_is_so_anyway_may_be_asked_for() -> None:
    so = {"quiet_mode": True, "skip_memory": True, "skip_context_files": True}
    not_so = {"verbose_logging": False, "save_trajectories": False, "checkpoints_enabled": False}
    arguments: dict[str, Any] = {**so, **not_so, "max_tokens": None, "step_callback": None}
    async with AIAgent(model="offline", **arguments) as agent:
        assert (await agent.run_conversation("Hello."))["completed"]


@pytest.mark.requirement("agent:toolsets")
async def test_toolsets_choose_what_is_offered(db: SessionDB) -> None:
    tools = ToolRegistry()

    @tools.tool(toolset="mine", description="Fails.")
    async def broken() -> str:
        raise ModelFailed("inside")

    async def offered(*steps: Any, **arguments: Any) -> tuple[list[str], list[Any]]:
        model = ScriptedModel(*steps)
        async with AIAgent(model=model, session_db=db, tools=tools, **arguments) as agent:
            await agent.chat("x")
        names = [tool["function"]["name"] for tool in model.requests[0].tools]
        return names, contents(model.requests[-1])

    assert (await offered(enabled_toolsets=[]))[0] == []
    assert (await offered(enabled_toolsets=["session_search"]))[0] == ["session_search"]
    assert (await offered())[0] == ["broken", "session_search"]
    assert (await offered(disabled_toolsets=["mine"]))[0] == ["session_search"]
    assert (await offered(disabled_toolsets=["*"]))[0] == []
    _, said = await offered(tool_call("broken"))
    assert said[-1] == '{"error": "ModelFailed: inside", "success": false}'
    with pytest.raises(ValueError, match="broken"):
        tools.tool(toolset="other", description="Again.")(broken)
