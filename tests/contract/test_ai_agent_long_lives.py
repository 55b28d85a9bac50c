"""AIAgent: conversations that others write into, with long titles, that were never short, that rotated for years."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from aip_hermes.embedded import AIAgent, ModelFailed, ModelRequest, Pieces, SessionDB, ToolRegistry
from aip_hermes.embedded.agent.windows import estimated_tokens
from aip_hermes.embedded.session_db.compression import SUMMARY_MARK
from tests.support.agent_models import ScriptedModel, contents, tool_call
from tests.support.embedded_endpoint import endpoint

Way = Literal["in_place", "rotate"]


class SmallModel(ScriptedModel):
    """Reads so many tokens and says so; sums up as `The gist`."""

    def __init__(self, *steps: Any, tokens: int = 1_000_000) -> None:
        super().__init__(*steps)
        self.summaries: list[ModelRequest] = []
        self._tokens = tokens

    async def stream(self, request: ModelRequest) -> Pieces:
        if estimated_tokens(request.messages, system=request.system) > self._tokens:
            raise ModelFailed("the model answered HTTP 400: its context is exceeded", status=400, too_long=True)
        answering = super().stream(request)
        if request.system is not None and "shorten" in request.system:
            self.summaries.append(request)
            answering = ScriptedModel("The gist").stream(request)
        async for piece in answering:
            yield piece


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB(tmp_path / "state.db") as store:
        yield store


def interrupting(db: SessionDB, agents: list[AIAgent]) -> ToolRegistry:
    """Return a tool in the middle of which somebody else says something."""
    tools = ToolRegistry()

    @tools.tool(toolset="t", description="Takes a while.")
    async def work() -> str:
        await db.append_message(agents[0].session_id, "user", "said by another")
        return "worked"

    return tools


@pytest.mark.requirement("agent:overtaken")
async def test_what_others_say_within_a_turn_is_read_by_the_next(db: SessionDB) -> None:
    model, agents = ScriptedModel(tool_call("work")), list[AIAgent]()
    async with AIAgent(model=model, session_db=db, session_id="s", tools=interrupting(db, agents)) as agent:
        agents.append(agent)
        await agent.chat("one")
        await agent.chat("two")
    # It stands between a call and its result, which it takes away from the call.
    assert contents(model.requests[-1])[-3:] == ["said by another", "Reply 2", "two"]


@pytest.mark.requirement("agent:compression", "agent:overtaken")
@pytest.mark.parametrize("way", ["in_place", "rotate"])
async def test_what_others_say_within_a_turn_outlives_its_compression(db: SessionDB, way: Way) -> None:
    model, agents = SmallModel(*["word " * 100] * 4, tool_call("work"), "word " * 600), list[AIAgent]()
    async with AIAgent(
        model=model, session_db=db, session_id="s", tools=interrupting(db, agents), enabled_toolsets=["t"],
        context_length=1_000, compression=way,
    ) as agent:  # fmt: skip
        agents.append(agent)
        for number in range(4):
            await agent.chat(f"m{number}")
        assert not model.summaries
        await agent.chat("work, please")
        assert await agent.compress() or model.summaries
        live = [row["content"] for row in await db.get_messages(agent.session_id)]
        assert sum(str(text).startswith(SUMMARY_MARK) for text in live) == 1
        told = [str(message["content"]) for request in model.summaries for message in request.messages]
        assert "said by another" in live or "said by another" in "".join(told)
        await agent.chat("and then?")
        assert any("said by another" in str(text) or "The gist" in str(text) for text in contents(model.requests[-1]))


@pytest.mark.requirement("session_db:compression:covered")
@pytest.mark.parametrize("way", ["in_place", "rotate"])
async def test_rows_between_those_that_were_compressed_follow_behind(db: SessionDB, way: Way) -> None:
    await db.create_session("s", "test")
    first, own, other, later = [await db.append_message("s", "user", text) for text in ("a", "b", "another's", "c")]
    compacted = [{"role": "user", "content": "a, b, c"}]
    marks: dict[str, Any] = {"watermark": first, "covered": {own, later}}
    if way == "in_place":
        assert await db.archive_and_compact("s", compacted, **marks) == 2
    else:
        assert await db.publish_compression_child("s", "child", compacted, **marks) == 2
    rows = await db.get_messages(await db.get_compression_tip("s"))
    assert [row["content"] for row in rows] == ["a, b, c", "another's"]
    assert other < rows[0]["id"]


@pytest.mark.requirement("agent:compression", "session_db:title:continued")
async def test_a_rotation_shortens_a_title_that_its_number_would_make_too_long(db: SessionDB) -> None:
    await db.create_session("s", "test")
    await db.set_session_title("s", "T" * 100)
    titles = []
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s", compression="rotate") as agent:
        for _ in range(3):
            for number in range(14):
                await agent.chat(f"m{number}")
            assert await agent.compress()
            titles.append(await db.get_session_title(agent.session_id))
    assert titles == ["T" * 97, f"{'T' * 97} #2", f"{'T' * 97} #3"]
    assert await db.get_session_title("s") == "T" * 100


@pytest.mark.requirement("agent:compression:overflow")
async def test_a_conversation_far_longer_than_the_window_is_summed_up_within_it(db: SessionDB) -> None:
    model = SmallModel(tokens=4_000)
    history = [
        {"role": ("user", "assistant")[number % 2], "content": f"m{number} " + "word " * 300} for number in range(301)
    ]
    async with AIAgent(model=model, session_db=db, session_id="s", context_length=4_000, enabled_toolsets=[]) as agent:
        result = await agent.run_conversation("on", conversation_history=history)
    assert (result["final_response"], result["persisted"]) == ("Reply 1", True)
    (summary,) = model.summaries
    told = contents(summary)[0]
    assert "messages are left out here" in told
    assert ["m3 " in told, "m150 " in told, "m298 " in told] == [True, False, True]


@pytest.mark.requirement("session_db:lineage:long", "agent:compression")
async def test_a_conversation_of_more_than_a_hundred_segments_is_still_one(db: SessionDB) -> None:
    await db.create_session("s0", "test")
    for number in range(1, 131):
        message = {"role": "user", "content": f"m{number}"}
        await db.publish_compression_child(f"s{number - 1}", f"s{number}", [message])
    assert await db.resolve_resume_session_id("s0") == "s130"
    assert len(await db.get_compression_lineage("s60")) == 131
    listed = await db.list_sessions_rich(order_by_last_active=True)
    assert [(row["id"], row["_lineage_root_id"]) for row in listed] == [("s130", "s0")]
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s0", compression="rotate") as agent:
        for number in range(14):
            await agent.chat(f"m{number}")
        assert await agent.compress()
        assert (await agent.run_conversation("on"))["persisted"]
        assert await db.try_acquire_session_turn_lease("s0", "one")
        assert not await db.try_acquire_session_turn_lease(agent.session_id, "another")
        assert await db.release_session_turn_lease(agent.session_id, "one")
    middle = await db.get_session("s100")
    assert middle is not None
    assert (middle["end_reason"], middle["message_count"]) == ("compression", 1)


@pytest.mark.requirement("agent:compression")
@pytest.mark.parametrize("way", ["in_place", "rotate"])
async def test_a_first_message_beyond_the_window_is_not_summed_up_around_with_every_turn(
    db: SessionDB, way: Way
) -> None:
    model = SmallModel()
    async with AIAgent(
        model=model, session_db=db, session_id="s", context_length=1_000, enabled_toolsets=[], compression=way
    ) as agent:
        await agent.chat("long " * 4_000)
        for number in range(12):
            await agent.chat(f"m{number} " + "word " * 60)
        segments = await db.get_compression_lineage("s")
        rows = [row for one in segments for row in await db.get_messages(one, include_inactive=True)]
    assert 1 <= len(model.summaries) <= 6
    assert sum(str(row["content"]).startswith("long ") for row in rows) == 1


@pytest.mark.requirement("agent:compression:failed")
async def test_a_compression_that_does_not_help_is_not_tried_with_every_request(db: SessionDB) -> None:
    model = SmallModel()
    async with AIAgent(
        model=model, session_db=db, session_id="s", context_length=1_000, enabled_toolsets=[],
        ephemeral_system_prompt="rule " * 700,
    ) as agent:  # fmt: skip
        for number in range(6):
            await agent.chat(f"m{number} " + "word " * 60)
    assert len(model.summaries) == 1


class PickyModel(SmallModel):
    """Sums up no conversation that speaks of a secret."""

    async def stream(self, request: ModelRequest) -> Pieces:
        if request.system is not None and "shorten" in request.system and "secret" in str(contents(request)):
            raise ModelFailed("the model answered HTTP 400", status=400)
        async for piece in super().stream(request):
            yield piece


@pytest.mark.requirement("agent:compression:endpoint", "agent:compression:failed")
async def test_a_summary_that_fails_in_one_session_keeps_no_other_from_its_own(tmp_path: Path) -> None:
    model = PickyModel()
    async with endpoint(tmp_path, model=model, model_window=1_000) as hermes:
        for session_id in ("secret", "open"):
            await hermes.create(session_id)
            for number in range(5):
                body = {"message": f"{session_id}{number} " + "word " * 120}
                answer = await hermes.client.post(f"/api/sessions/{session_id}/chat", json=body)
                assert answer.status_code == 200
        rows = {session_id: (await hermes.messages(session_id))[1] for session_id in ("secret", "open")}
    summed = {name: any(row["content"].startswith(SUMMARY_MARK) for row in told) for name, told in rows.items()}
    assert summed == {"secret": False, "open": True}


@pytest.mark.requirement("agent:compression:demanded")
async def test_nothing_is_compressed_while_somebody_else_has_the_conversation(db: SessionDB) -> None:
    async with AIAgent(model=ScriptedModel(), session_db=db, session_id="s", turn_lease_wait_seconds=0) as agent:
        for number in range(14):
            await agent.chat(f"m{number}")
        await db.try_acquire_session_turn_lease("s", "another")
        assert not await agent.compress()
        await db.release_session_turn_lease("s", "another")
        assert await agent.compress()


@pytest.mark.requirement("session_db:lease:cut-chain")
@pytest.mark.parametrize("doomed", [{"s"}, {"middle"}, {"s", "middle"}])
async def test_a_turn_keeps_its_conversation_when_earlier_segments_are_removed(db: SessionDB, doomed: set[str]) -> None:
    message = {"role": "user", "content": "earlier"}
    await db.create_session("s", "test")
    await db.publish_compression_child("s", "middle", [message])
    await db.publish_compression_child("middle", "tip", [message])
    tools = ToolRegistry()

    @tools.tool(toolset="t", description="Removes.")
    async def remove() -> int:
        return await db.delete_sessions(sorted(doomed))

    model = ScriptedModel(tool_call("remove"), "done")
    async with AIAgent(model=model, session_db=db, session_id="tip", tools=tools, enabled_toolsets=["t"]) as agent:
        result = await agent.run_conversation("go")
        assert (result["final_response"], result["persisted"]) == ("done", True)
        assert await db.get_session_turn_lease_holder("tip") is None
        assert (await agent.run_conversation("on"))["persisted"]
    assert [row["content"] for row in await db.get_messages("tip")][-3:] == ["done", "on", "Reply 3"]
