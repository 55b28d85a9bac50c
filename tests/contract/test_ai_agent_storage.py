"""What a turn of AIAgent leaves in its store, whatever happens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded import AIAgent, SessionDB
from aip_hermes.embedded.session_db import TurnGround
from tests.support.agent_models import ScriptedModel, called, contents, scripted
from tests.support.agent_process import script
from tests.support.client_stub_server import Answer, running_stub
from tests.support.embedded_endpoint import GatedModel
from tests.support.runtime_clock import ManualClock


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB(tmp_path / "state.db") as store:
        yield store


async def texts(db: SessionDB, session_id: str = "s") -> list[Any]:
    return [row["content"] for row in await db.get_messages(session_id)]


@pytest.mark.requirement("agent:durable", "agent:lease")
async def test_question_and_tool_rows_are_on_disk_before_each_request(db: SessionDB) -> None:
    with running_stub(scripted(called("now"), Answer(fate="never"))) as stub:
        process = await asyncio.to_thread(script, db.path, stub.url)
        try:
            await asyncio.to_thread(stub.wait_for_request)
            assert (await texts(db))[:1] == ["survives"]
            assert await db.get_session("s") is not None
            await asyncio.to_thread(stub.wait_for_request)
            during = await db.get_messages("s")
        finally:
            process.kill()
            await asyncio.to_thread(process.communicate)
    assert [(row["role"], row["content"]) for row in during] == [
        ("user", "survives"), ("assistant", ""), ("tool", "noon")
    ]  # fmt: skip
    assert await db.get_messages("s") == during
    # Its lease went with it: the next turn does not wait.
    model = ScriptedModel()
    history, _ = await db.get_resume_conversations("s")
    async with AIAgent(model=model, session_db=db, session_id="s", turn_lease_wait_seconds=0) as agent:
        result = await agent.run_conversation("again", conversation_history=history)
    assert (result["failed"], result["persisted"]) == (False, True)
    assert contents(model.requests[0]) == ["survives", "", "noon", "again"]


class FailingStore(SessionDB):
    """Can't write down what `fails` names."""

    fails = ""

    async def begin_turn(self, ground: TurnGround, question: Mapping[str, Any], **options: Any) -> int:
        if self.fails == "user":
            raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")
        return await super().begin_turn(ground, question, **options)

    async def record_reply(self, session_id: str, *arguments: Any, **options: Any) -> int:
        if self.fails == "assistant":
            raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")
        return await super().record_reply(session_id, *arguments, **options)


@pytest.mark.requirement("agent:not-stored")
async def test_a_question_that_cannot_be_stored_is_not_asked_and_a_lost_answer_is_told(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with (
        FailingStore(tmp_path / "state.db") as db,
        AIAgent(model=model, session_db=db, session_id="s") as agent,
    ):
        db.fails = "user"
        refused = await agent.run_conversation("one")
        asked = len(model.requests)
        db.fails = "assistant"
        lost = await agent.run_conversation("two")
        db.fails = ""
        kept = await agent.run_conversation("three")
        stored = await texts(db)
    assert (asked, refused["failed"], refused["persisted"], refused["api_calls"]) == (0, True, False, 0)
    assert refused["turn_exit_reason"] == "session_store_unavailable"
    assert "disk is full" in refused["error"]
    assert (lost["failed"], lost["completed"], lost["final_response"], lost["persisted"]) == (
        False, True, "Reply 1", False
    )  # fmt: skip
    assert lost["persist_error"].startswith("StoreUnavailable")
    assert (kept["persisted"], stored) == (True, ["two", "three", "Reply 2"])
    assert contents(model.requests[1]) == ["two", "Reply 1", "three"]


@pytest.mark.requirement("agent:not-stored", "session_db:lease:fencing")
async def test_a_turn_whose_lease_was_lost_answers_and_says_that_it_is_not_stored(db: SessionDB) -> None:
    model = GatedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent, asyncio.timeout(30):
        turn = asyncio.create_task(agent.run_conversation("one"))
        await model.asked.wait()
        holder = await db.get_session_turn_lease_holder("s")
        assert holder is not None
        await db.release_session_turn_lease("s", holder)
        assert await db.try_acquire_session_turn_lease("s", "thief")
        model.gate.set()
        result = await turn
        assert await db.get_session_turn_lease_holder("s") == "thief"
        await db.append_message("s", "assistant", "of the thief", turn_lease_holder="thief")
        await db.release_session_turn_lease("s", "thief")
        # What was not stored is gone: the conversation is the store's.
        assert (await agent.run_conversation("two"))["persisted"]
        assert contents(model.requests[1]) == ["one", "of the thief", "two"]
    assert (result["final_response"], result["completed"], result["persisted"]) == ("Reply 1", True, False)
    assert result["persist_error"].startswith("SessionTurnLeaseLostError")
    assert await texts(db) == ["one", "of the thief", "two", "Reply 2"]


@pytest.mark.requirement("agent:lease")
async def test_a_turn_waits_for_the_lease_and_goes_on_with_what_was_stored_meanwhile(tmp_path: Path) -> None:
    clock, model = ManualClock(), ScriptedModel()
    async with (
        SessionDB(tmp_path / "state.db", clock=clock) as db,
        AIAgent(model=model, session_db=db, session_id="s") as agent,
    ):
        await agent.chat("one")
        await db.try_acquire_session_turn_lease("s", "other", ttl_seconds=1_000)
        turn = asyncio.create_task(
            agent.run_conversation("three", conversation_history=[{"role": "user", "content": "old"}])
        )
        await clock.until_asleep(0.25)
        await db.append_message("s", "user", "two", turn_lease_holder="other")
        await db.append_message("s", "assistant", "of the other", turn_lease_holder="other")
        await db.release_session_turn_lease("s", "other")
        clock.advance(250)
        result = await turn
        assert await db.get_session_turn_lease_holder("s") is None
    assert contents(model.requests[1]) == ["one", "Reply 1", "two", "of the other", "three"]
    assert (result["persisted"], result["final_response"]) == (True, "Reply 2")


@pytest.mark.requirement("agent:lease")
@pytest.mark.parametrize("known", [True, False])
async def test_a_turn_that_waited_in_vain_says_so_and_does_nothing(db: SessionDB, known: bool) -> None:
    if known:
        await db.create_session("s", "test")
    await db.try_acquire_session_turn_lease("s", "other")
    model = ScriptedModel()
    async with AIAgent(model=model, session_db=db, session_id="s", turn_lease_wait_seconds=0) as agent:
        result = await agent.run_conversation("one")
    assert (result["failed"], result["error"]) == (True, "session_turn_lease_timeout:s")
    assert (model.requests, await db.get_messages("s")) == ([], [])
    row = await db.get_session("s")
    assert (row is not None) is known
    assert row is None or row["end_reason"] is None


class RenewedStore(SessionDB):
    """Tells of renewed leases."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.renewed = asyncio.Event()

    async def refresh_session_turn_lease(self, session_id: str, holder: str, *, ttl_seconds: float = 300.0) -> bool:
        done = await super().refresh_session_turn_lease(session_id, holder, ttl_seconds=ttl_seconds)
        self.renewed.set()
        return done


@pytest.mark.requirement("agent:lease")
async def test_a_lease_is_renewed_while_its_turn_runs(tmp_path: Path) -> None:
    model = GatedModel()
    async with (
        RenewedStore(tmp_path / "state.db") as db,
        AIAgent(model=model, session_db=db, session_id="s", turn_lease_seconds=5) as agent,
        asyncio.timeout(30),
    ):

        async def expiry() -> float:
            rows = await db.read(lambda c: c.execute("SELECT expires_at FROM leases"))
            return float(rows[0]["expires_at"])

        turn = asyncio.create_task(agent.run_conversation("one"))
        await model.asked.wait()
        first = await expiry()
        db.renewed.clear()
        await db.renewed.wait()
        assert await expiry() > first
        model.gate.set()
        assert (await turn)["persisted"]


@pytest.mark.requirement("agent:overtaken")
async def test_two_agents_on_one_session_read_each_other(db: SessionDB) -> None:
    one, two = ScriptedModel("a1", "a3"), ScriptedModel("b2")
    async with (
        AIAgent(model=one, session_db=db, session_id="s") as first,
        AIAgent(model=two, session_db=db, session_id="s") as second,
    ):
        await first.chat("q1")
        history, _ = await db.get_resume_conversations("s")
        await second.run_conversation("q2", conversation_history=history)
        await first.chat("q3")
    assert contents(two.requests[0]) == ["q1", "a1", "q2"]
    assert contents(one.requests[1]) == ["q1", "a1", "q2", "b2", "q3"]


class OvertakingStore(SessionDB):
    """Lets somebody else say something between the history that a turn reads and its question."""

    said = ""

    async def begin_turn(self, ground: TurnGround, question: Mapping[str, Any], **options: Any) -> int:
        if said := self.said:
            self.said = ""
            await self.append_message("s", "user", said)
        return await super().begin_turn(ground, question, **options)


@pytest.mark.requirement("agent:overtaken")
async def test_what_is_said_between_history_and_question_is_read_before_the_question(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with (
        OvertakingStore(tmp_path / "state.db") as db,
        AIAgent(model=model, session_db=db, session_id="s") as agent,
    ):
        await agent.chat("one")
        db.said = "in between"
        await agent.chat("two")
        stored = await texts(db)
    assert contents(model.requests[1]) == ["one", "Reply 1", "in between\n\ntwo"]
    assert stored == ["one", "Reply 1", "in between", "two", "Reply 2"]


@pytest.mark.requirement("agent:result")
async def test_what_the_user_row_holds_may_differ_from_what_was_sent(db: SessionDB) -> None:
    model = ScriptedModel()
    async with AIAgent(model=model, session_db=db, session_id="s") as agent:
        await agent.run_conversation(
            "with context",
            persist_user_message="bare",
            persist_user_timestamp=5.0,
            persist_user_display_kind="hidden",
            persist_user_display_metadata={"a": 1},
        )
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        await agent.run_conversation([{"type": "text", "text": "look"}, picture])
    first, _, second, _ = await db.get_messages("s")
    assert (first["content"], first["api_content"], first["timestamp"]) == ("bare", "with context", 5.0)
    assert (first["display_kind"], first["display_metadata"]) == ("hidden", {"a": 1})
    assert second["content"] == "look\n[screenshot]"
    assert contents(model.requests[1])[0] == "with context"
    assert contents(model.requests[1])[2][1] == picture
