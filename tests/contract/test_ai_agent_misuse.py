"""AIAgent where it is given what it can't use, and where its tools do what they should not."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import AIAgent, ModelRequest, Pieces, SessionDB, ToolContext, ToolRegistry
from tests.support.agent_models import ScriptedModel, contents, refused, scripted, spoken, tool_call
from tests.support.client_stub_server import Answer, running_stub
from tests.support.embedded_endpoint import HaltingModel


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB(tmp_path / "state.db") as store, asyncio.timeout(30):
        yield store


async def results(db: SessionDB) -> list[Any]:
    return [row["content"] for row in await db.get_messages("s") if row["role"] == "tool"]


@pytest.mark.requirement("agent:own-turn")
async def test_a_tool_that_asks_or_closes_its_own_agent_is_refused(db: SessionDB) -> None:
    tools, box = ToolRegistry(), list[AIAgent]()

    @tools.tool(toolset="t", description="Asks.")
    async def ask() -> str:
        return await asyncio.create_task(box[0].chat("inner"))

    @tools.tool(toolset="t", description="Closes.")
    async def close() -> None:
        await box[0].close()

    @tools.tool(toolset="t", description="Compresses.")
    async def compress() -> bool:
        return await box[0].compress()

    @tools.tool(toolset="t", description="Asks another one.")
    async def other() -> str:
        async with AIAgent(model=ScriptedModel(), session_db=db, session_id="other") as agent:
            return await agent.chat("inner")

    model = ScriptedModel(*(tool_call(name) for name in ("ask", "close", "compress", "other")), "done")
    async with AIAgent(model=model, session_db=db, session_id="s", tools=tools) as agent:
        box.append(agent)
        assert await agent.chat("one") == "done"
        assert await agent.chat("two") == "Reply 6"
        *own, another = await results(db)
    assert ["RuntimeError: AIAgent is in the middle of a turn" in text for text in own] == [True] * 3
    assert another == "Reply 1"


@pytest.mark.requirement("agent:own-turn", "agent:stream")
async def test_a_callback_that_asks_its_own_agent_fails_and_the_turn_does_not(db: SessionDB) -> None:
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        refusals: list[str] = []

        async def hear(_piece: str) -> None:
            try:
                await agent.chat("inner")
            except RuntimeError as refusal:
                refusals.append(str(refusal))
                raise

        assert await agent.chat("one", hear) == "Reply 1"
        later = asyncio.get_running_loop().create_task(agent.chat("two"))
        assert await later == "Reply 2"
    assert len(refusals) == 1


@pytest.mark.requirement("agent:own-turn")
async def test_what_a_turn_began_may_ask_once_that_turn_is_over(db: SessionDB) -> None:
    tools, box, over = ToolRegistry(), list[AIAgent](), asyncio.Event()
    begun: list[asyncio.Task[str]] = []

    @tools.tool(toolset="t", description="Begins work that goes on.")
    async def begin() -> str:
        async def later() -> str:
            await over.wait()
            return await box[0].chat("later")

        begun.append(asyncio.create_task(later()))
        return "begun"

    async with AIAgent(model=ScriptedModel(tool_call("begin")), session_db=db, session_id="s", tools=tools) as agent:
        box.append(agent)
        await agent.chat("one")
        over.set()
        assert await begun[0] == "Reply 3"


@pytest.mark.requirement("agent:cancelled", "agent:stream")
@pytest.mark.filterwarnings("error")
async def test_what_an_async_callback_was_not_told_is_let_go_of(db: SessionDB) -> None:
    model, heard = HaltingModel(), list[str]()

    async def hear(piece: str) -> None:
        heard.append(piece)
        await asyncio.Event().wait()

    class Chatty(HaltingModel):
        async def stream(self, request: ModelRequest) -> Pieces:
            for piece in ("a", "b", "c"):
                yield piece
            async for rest in model.stream(request):
                yield rest

    async with AIAgent(model=Chatty(), session_db=db, session_id="s") as agent:
        turn = asyncio.create_task(agent.chat("one", hear))
        await model.asked.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert heard == ["a"]


@pytest.mark.requirement("agent:misuse")
@pytest.mark.parametrize("message", [None, 5, b"x", {}, [], [1]])
async def test_a_message_that_is_none_is_refused_before_anything_is_stored(db: SessionDB, message: Any) -> None:
    model = ScriptedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        with pytest.raises((TypeError, ValueError), match="user_message"):
            await agent.run_conversation(message)
        assert (model.requests, await db.get_session("s")) == ([], None)


@pytest.mark.requirement("agent:misuse")
@pytest.mark.parametrize("history", [["hi"], "hello", 5, {"role": "user", "content": "x"}, [{"content": "x"}], [None]])
async def test_a_history_that_is_none_is_refused_before_anything_is_stored(db: SessionDB, history: Any) -> None:
    model = ScriptedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        with pytest.raises(TypeError, match="conversation_history"):
            await agent.run_conversation("one", conversation_history=history)
        assert (model.requests, await db.get_session("s")) == ([], None)


@pytest.mark.requirement("agent:misuse")
@pytest.mark.parametrize(
    "arguments",
    [
        {"turn_lease_seconds": 0},
        {"turn_lease_seconds": float("nan")},
        {"turn_lease_wait_seconds": -1},
        {"turn_lease_wait_seconds": float("nan")},
        {"enabled_toolsets": "session_search"},
        {"model": "m", "base_url": "http://[::1"},
        {"model": "m", "base_url": "http://127.0.0.1:1", "api_key": "clé-0123456789"},
    ],
)
def test_arguments_that_no_turn_could_use_are_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as refusal:
        AIAgent(**{"model": ScriptedModel()} | arguments)
    assert "clé" not in str(refusal.value)


ODD_CALLS: tuple[Any, ...] = (
    [1],
    [{"id": None, "function": {"name": "f", "arguments": "{}"}}],
    [{"id": "c"}],
    [{"id": "c", "function": "f"}],
    [{"function": {"name": "f", "arguments": "{}"}}],
)


@pytest.mark.requirement("agent:odd-rows")
@pytest.mark.parametrize("calls", ODD_CALLS)
async def test_calls_that_no_model_could_read_are_left_out_of_the_request(db: SessionDB, calls: Any) -> None:
    rows: list[Mapping[str, Any]] = [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]  # fmt: skip
    await db.create_session("s", "test")
    await db.append_messages_batch("s", rows)
    stored = await db.get_messages("s")
    history, _ = await db.get_resume_conversations("s")
    with running_stub(scripted(spoken("Here."), spoken("Again."))) as stub:
        async with AIAgent(model="m", base_url=stub.url, session_db=db, session_id="s") as agent:
            assert (await agent.run_conversation("c", conversation_history=history))["final_response"] == "Here."
            assert (await agent.run_conversation("d", conversation_history=rows))["final_response"] == "Again."
    for post in stub.posts:
        assert [message["role"] for message in post.json["messages"][:2]] == ["user", "assistant"]
        assert not any("tool_calls" in message or message["role"] == "tool" for message in post.json["messages"])
    assert (await db.get_messages("s"))[:3] == stored


@pytest.mark.requirement("agent:odd-rows")
async def test_calls_without_a_type_are_sent_with_one(db: SessionDB) -> None:
    history: list[Mapping[str, Any]] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": [{"call_id": "c", "function": {"name": "f", "arguments": None}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    with running_stub(scripted(spoken("Here."))) as stub:
        async with AIAgent(model="m", base_url=stub.url, session_db=db, session_id="s") as agent:
            await agent.run_conversation("b", conversation_history=history)
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    assert stub.posts[0].json["messages"][1:3] == [
        {"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": "r", "tool_call_id": "c"}
    ]  # fmt: skip


@pytest.mark.requirement("agent:odd-rows")
async def test_lone_surrogates_reach_an_endpoint_as_replacements(db: SessionDB) -> None:
    broken = Answer(
        body=b'data: {"choices": [{"delta": {"content": "\\ud800!"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
        headers={"Content-Type": "text/event-stream"},
    )
    with running_stub(scripted(broken, spoken("b"))) as stub:
        async with AIAgent(model="m", base_url=stub.url, session_db=db, session_id="s") as agent:
            await agent.chat("\ud800?")
            assert await agent.chat("two") == "b"
    sent = [message["content"] for message in stub.posts[1].json["messages"]]
    assert sent == ["\ufffd?", "\ufffd!", "two"]
    assert [row["content"] for row in await db.get_messages("s")] == [*sent, "b"]


@pytest.mark.requirement("agent:odd-rows")
async def test_a_history_that_json_cannot_say_fails_the_turn_and_nothing_is_sent(db: SessionDB) -> None:
    history = [{"role": "user", "content": [{"type": "text", "text": "a", "weight": float("nan")}]}]
    with running_stub(scripted(refused(400))) as stub:
        async with AIAgent(model="m", base_url=stub.url, session_db=db, session_id="s") as agent:
            result = await agent.run_conversation("b", conversation_history=history)
    assert (result["failed"], result["turn_exit_reason"], stub.posts) == (True, "model_failed", [])


class Told:
    """A tool that returns something."""

    def __init__(self, value: Any) -> None:
        self.name = "told"
        self.definition = {"type": "function", "function": {"name": "told"}}
        self._value = value

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return self._value


@pytest.mark.requirement("agent:tools:any")
@pytest.mark.parametrize(("value", "stored"), [({"a": 1}, '{"a": 1}'), (None, "null"), ([1], "[1]"), (5, "5")])
async def test_what_a_tool_returns_besides_text_becomes_json(db: SessionDB, value: Any, stored: str) -> None:
    tools = ToolRegistry()
    tools.add(Told(value), toolset="t")
    model = ScriptedModel(tool_call("told"))
    async with AIAgent(model=model, session_db=db, session_id="s", tools=tools) as agent:
        await agent.chat("one")
    assert (await results(db), contents(model.requests[1])[-1]) == ([stored], stored)


@pytest.mark.requirement("agent:tools:any")
async def test_a_plain_function_is_a_tool_and_one_that_gives_up_its_own_work_fails(db: SessionDB) -> None:
    tools = ToolRegistry()

    def plain() -> dict[str, int]:
        return {"pieces": 12}

    tools.tool(toolset="t", description="Counts.")(plain)  # type: ignore[type-var]

    @tools.tool(toolset="t", description="Gives up.")
    async def gives_up() -> None:
        work = asyncio.create_task(asyncio.Event().wait())
        work.cancel()
        await work

    model = ScriptedModel(tool_call("plain"), tool_call("gives_up"), "done")
    async with AIAgent(model=model, session_db=db, session_id="s", tools=tools) as agent:
        assert await agent.chat("one") == "done"
    counted, given_up = await results(db)
    assert counted == '{"pieces": 12}'
    assert "CancelledError" in given_up


QUIET = """
import asyncio
from aip_hermes.embedded import AIAgent, ToolRegistry
tools = ToolRegistry()
@tools.tool(toolset="t", description="Fails.")
async def fails() -> str:
    raise ValueError("the secret of the tool")
async def main() -> None:
    async with AIAgent(model="offline", tools=tools, enabled_toolsets=["t"]) as agent:
        print(len(await agent.chat("Go.\\n\\ncall: fails {}")) > 0)
asyncio.run(main())
"""


@pytest.mark.requirement("agent:quiet")
async def test_what_goes_wrong_is_told_on_stderr_and_never_on_the_output_of_a_script() -> None:
    script = await asyncio.create_subprocess_exec(sys.executable, "-c", QUIET, stdout=PIPE, stderr=PIPE)
    out, err = await script.communicate()
    assert (script.returncode, out) == (0, b"True\n")
    assert b"tool.failed" in err
    assert b"secret" not in err
