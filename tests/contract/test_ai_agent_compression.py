"""AIAgent: conversations that outgrow what their model reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import AIAgent, ModelFailed, ModelRequest, Pieces, SessionDB, ToolRegistry
from aip_hermes.embedded.agent.fitting import COOLDOWN_S
from aip_hermes.embedded.agent.windows import Window, split
from aip_hermes.embedded.session_db.compression import SUMMARY_MARK
from aip_hermes.hermes_api import is_continuation_id
from tests.support.agent_models import ScriptedModel, contents, refused, scripted, spoken, tool_call
from tests.support.client_stub_server import running_stub
from tests.support.embedded_endpoint import endpoint
from tests.support.runtime_clock import ManualClock

SMALL = 1_000
"""Tokens of a window: compressed from 750 on, and `long` has 150."""

WINDOW: dict[str, Any] = {"context_length": SMALL, "enabled_toolsets": []}


class SummingModel(ScriptedModel):
    """Answers by number, and sums up as `The gist <n>`, unless summaries fail."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(*steps)
        self.summaries: list[ModelRequest] = []
        self.fails = False

    async def stream(self, request: ModelRequest) -> Pieces:
        if request.system is None or "shorten" not in request.system:
            async for piece in super().stream(request):
                yield piece
            return
        self.summaries.append(request)
        if self.fails:
            raise ModelFailed("the model answered HTTP 500", status=500)
        text = f"The gist {len(self.summaries)}"
        async for piece in ScriptedModel(text).stream(request):
            yield piece


def long(number: int) -> str:
    return f"q{number} " + "word " * 120


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def db(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SessionDB]:
    async with SessionDB(tmp_path / "state.db", clock=clock) as store:
        yield store


def begun(said: Sequence[Any]) -> list[str]:
    """Return how each message begins."""
    return [str(text)[:19] if str(text).startswith(SUMMARY_MARK) else str(text).split(" ")[0] for text in said]


@pytest.mark.requirement("agent:compression")
async def test_a_long_conversation_is_compressed_in_place(db: SessionDB) -> None:
    model = SummingModel()
    async with AIAgent(model=model, session_db=db, session_id="s", **WINDOW) as agent:
        for number in range(1, 6):
            result = await agent.run_conversation(long(number))
    (summary,) = model.summaries
    assert begun(contents(model.requests[4])) == ["q1", "Reply", "q2", SUMMARY_MARK, "q5"]
    assert "The gist 1" in contents(model.requests[4])[3]
    assert [name in str(contents(summary)) for name in ("q1", "q3", "q4", "q5")] == [False, True, True, False]
    assert (result["session_id"], result["persisted"], result["api_calls"]) == ("s", True, 2)
    live = await db.get_messages("s")
    assert begun([row["content"] for row in live]) == ["q1", "Reply", "q2", SUMMARY_MARK, "q5", "Reply"]
    assert live[3]["display_kind"] == "hidden"
    everything = await db.get_messages("s", include_inactive=True)
    assert [row["compacted"] for row in everything] == [1] * 9 + [0] * 6
    used = {usage["task"]: usage["output_tokens"] for usage in await db.get_model_usage("s")}
    assert used["compression"] == 3
    row = await db.get_session("s")
    assert row is not None
    assert (row["message_count"], row["end_reason"]) == (6, "agent_close")


@pytest.mark.requirement("agent:compression", "agent:overtaken")
async def test_a_rotation_goes_on_in_a_child_which_others_follow(db: SessionDB) -> None:
    model, other = SummingModel(), ScriptedModel("from the other")
    await db.create_session("s", "test")
    await db.set_session_title("s", "Case")
    arguments: dict[str, Any] = {"session_db": db, "session_id": "s", **WINDOW}
    async with (
        AIAgent(model=model, compression="rotate", **arguments) as agent,
        AIAgent(model=other, **arguments) as second,
    ):
        for number in range(1, 6):
            result = await agent.run_conversation(long(number))
        child = str(result["session_id"])
        assert (agent.session_id, is_continuation_id(child)) == (child, True)
        assert await second.chat("who?") == "from the other"
        assert second.session_id == child
        await agent.chat("then?")
    parent, row = await db.get_session("s"), await db.get_session(child)
    assert parent is not None
    assert row is not None
    assert (parent["end_reason"], parent["message_count"]) == ("compression", 9)
    assert (row["parent_session_id"], row["title"]) == ("s", "Case #2")
    assert begun(contents(other.requests[0])) == ["q1", "Reply", "q2", SUMMARY_MARK, "q5", "Reply", "who?"]
    assert begun(contents(model.requests[-1]))[-3:] == ["who?", "from", "then?"]
    assert await db.resolve_resume_session_id("s") == child
    assert len(await db.get_messages(child)) == 10


@pytest.mark.requirement("agent:compression:endpoint")
@pytest.mark.parametrize("window", [SMALL, None])
async def test_an_endpoint_compresses_in_place_where_it_knows_the_window(tmp_path: Path, window: int | None) -> None:
    model = SummingModel()
    async with endpoint(tmp_path, model=model, model_window=window) as hermes:
        await hermes.create("s")
        for number in range(1, 6):
            assert (await hermes.chat("s", long(number))).json()["session_id"] == "s"
        resolved, rows = await hermes.messages("s")
    assert (resolved, len(model.summaries)) == ("s", 1 if window else 0)
    assert len(rows) == (6 if window else 10)
    assert any(str(row["content"]).startswith(SUMMARY_MARK) for row in rows) is (window is not None)


@pytest.mark.requirement("agent:overtaken")
async def test_a_compressed_row_without_a_child_is_opened_again(db: SessionDB) -> None:
    await db.create_session("s", "test")
    await db.append_message("s", "user", "old")
    await db.end_session("s", "compression")
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s") as agent:
        result = await agent.run_conversation("new")
    assert (result["persisted"], [row["content"] for row in await db.get_messages("s")]) == (
        True, ["old", "new", "Reply 1"]
    )  # fmt: skip


@pytest.mark.requirement("agent:compression:failed")
async def test_a_failed_summary_changes_nothing_and_is_not_tried_again_for_a_while(
    db: SessionDB, clock: ManualClock
) -> None:
    model = SummingModel()
    model.fails = True
    arguments: dict[str, Any] = {"session_db": db, "session_id": "s", **WINDOW, "clock": clock}
    async with AIAgent(model=model, **arguments) as agent:
        for number in range(1, 7):
            result = await agent.run_conversation(long(number))
            assert result["persisted"]
        row = await db.get_session("s")
        assert row is not None
        assert len(model.summaries) == 1
        assert [row["message_count"], row["compression_fallback_streak"]] == [12, 1]
        assert row["compression_failure_error"] == "the model answered HTTP 500"
        assert row["compression_failure_cooldown_until"] == clock.now_ms() / 1000 + COOLDOWN_S
    history, _ = await db.get_resume_conversations("s")
    async with AIAgent(model=model, **arguments) as agent:
        # The row tells a new agent, too; who demands it, gets it.
        await agent.run_conversation(long(7), conversation_history=history)
        assert len(model.summaries) == 1
        assert not await agent.compress()
        clock.advance(int(COOLDOWN_S * 1000) + 1)
        model.fails = False
        await agent.run_conversation(long(8))
    row = await db.get_session("s")
    assert row is not None
    assert (len(model.summaries), row["compression_failure_error"], row["compression_fallback_streak"]) == (3, None, 0)
    assert SUMMARY_MARK in str(contents(model.requests[-1]))


@pytest.mark.requirement("agent:compression:demanded")
async def test_a_compression_on_demand(db: SessionDB) -> None:
    model = SummingModel()
    async with AIAgent(model=model, session_db=db, session_id="s", **WINDOW) as agent:
        assert not await agent.compress()
        for number in range(1, 5):
            await agent.chat(long(number))
        await db.try_acquire_compression_lock("s", "other")
        assert not await agent.compress()
        assert model.summaries == []
        await db.release_compression_lock("s", "other")
        assert await agent.compress()
        assert await db.get_compression_lock_holder("s") is None
        await agent.chat("on")
    assert begun(contents(model.requests[-1])) == ["q1", "Reply", "q2", SUMMARY_MARK, "on"]
    live = [row["content"] for row in await db.get_messages("s")]
    assert begun(live) == ["q1", "Reply", "q2", SUMMARY_MARK, "Reply", "on", "Reply"]
    async with AIAgent(model=model, **WINDOW) as agent:
        for number in range(1, 5):
            await agent.chat(long(number))
        assert await agent.compress()
        await agent.chat("on")
    assert begun(contents(model.requests[-1]))[-3:] == ["q2", SUMMARY_MARK, "on"]


@pytest.mark.requirement("agent:compression")
async def test_tool_results_that_grow_too_long_are_compressed_within_the_turn(db: SessionDB) -> None:
    tools = ToolRegistry()

    @tools.tool(toolset="t", description="Reads a lot.", parameters={"type": "object", "properties": {}})
    async def read() -> str:
        return "line " * 160

    model = SummingModel(*(tool_call("read", number) for number in range(1, 9)), "done")
    async with AIAgent(
        model=model, session_db=db, session_id="s", context_length=SMALL, tools=tools, enabled_toolsets=["t"]
    ) as agent:
        result = await agent.run_conversation("read all of it")
    assert (result["final_response"], result["persisted"]) == ("done", True)
    assert model.summaries
    for request in model.requests:
        called = [call["id"] for m in request.messages for call in m.get("tool_calls") or []]
        assert called == [m["tool_call_id"] for m in request.messages if m["role"] == "tool"]
        assert "The result is not available." not in contents(request)
    row = await db.get_session("s")
    assert row is not None
    assert row["message_count"] == len(await db.get_messages("s"))


@pytest.mark.requirement("agent:compression:overflow")
async def test_a_model_whose_context_is_exceeded_is_asked_again_with_less(db: SessionDB) -> None:
    history = [{"role": ("user", "assistant")[number % 2], "content": f"m{number}"} for number in range(30)]
    too_long = refused(400, "context_length_exceeded")
    answers = [too_long, spoken("The gist."), spoken("Here."), too_long, refused(400)]
    with running_stub(scripted(*answers)) as stub:
        async with AIAgent(base_url=stub.url, model="m", session_db=db, session_id="s") as agent:
            long_one = await agent.run_conversation("on", conversation_history=history)
            short = await agent.run_conversation("on", conversation_history=history[:4])
            other = await agent.run_conversation("on", conversation_history=history)
        again = stub.posts[2].json["messages"]
    assert (long_one["final_response"], long_one["persisted"], long_one["api_calls"]) == ("Here.", True, 3)
    assert "The gist." in str(again)
    assert "m10" not in [message["content"] for message in again]
    assert short["error"] == other["error"] == "HTTP 400: no"
    assert len(stub.posts) == 5


@pytest.mark.requirement("agent:compression")
@pytest.mark.parametrize(("tokens", "trigger"), [(100_000, 75_000), (512_000, 256_000), (1_000_000, 500_000)])
def test_the_share_depends_on_the_window(tokens: int, trigger: int) -> None:
    assert Window(tokens=tokens).trigger == trigger


@pytest.mark.requirement("agent:compression")
def test_head_and_tail_stay_and_small_messages_keep_twenty() -> None:
    messages = [{"role": ("user", "assistant")[number % 2], "content": str(number)} for number in range(60)]
    head, middle, tail = split(messages, Window())
    assert (len(head), len(middle), len(tail)) == (3, 37, 20)
    assert [*head, *middle, *tail] == messages
    assert split(messages[:24], Window())[1] == []
