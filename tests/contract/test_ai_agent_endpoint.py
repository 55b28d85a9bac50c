"""An endpoint in this process and scripts in others, on one store: one turn of a session at a time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from aip_hermes.embedded import AIAgent, SessionDB
from tests.support.agent_models import ScriptedModel, contents, scripted, spoken
from tests.support.agent_process import script
from tests.support.client_stub_server import Answer, running_stub
from tests.support.embedded_endpoint import GatedModel, RecordingModel, code_of, endpoint
from tests.support.runtime_clock import ManualClock

POLL_S = 0.25


@pytest.mark.requirement("agent:lease:endpoint")
async def test_a_chat_waits_for_the_script_that_has_the_session_and_a_delete_is_refused(tmp_path: Path) -> None:
    clock, model = ManualClock(int(time.time() * 1000)), RecordingModel()
    with running_stub(scripted(Answer(fate="never"))) as stub:
        async with endpoint(tmp_path, model=model, clock=clock) as hermes, asyncio.timeout(60):
            await hermes.create("s")
            running = await asyncio.to_thread(script, hermes.db.path, stub.url)
            try:
                await asyncio.to_thread(stub.wait_for_request)
                assert code_of(await hermes.client.delete("/api/sessions/s")) == (409, "turn_in_progress")
                chat = asyncio.create_task(hermes.chat("s", "after it"))
                await clock.until_asleep(POLL_S)
                assert model.requests == []
            finally:
                running.kill()
                await asyncio.to_thread(running.communicate)
            clock.advance(int(POLL_S * 1000))
            assert (await chat).status_code == 200
            _, rows = await hermes.messages("s")
            assert [row["content"] for row in rows] == ["survives", "after it", "Reply 1"]
            assert contents(model.requests[0]) == ["survives\n\nafter it"]
            assert (await hermes.client.delete("/api/sessions/s")).status_code == 200


@pytest.mark.requirement("agent:lease:endpoint")
async def test_a_script_waits_for_the_endpoint_and_goes_on_with_its_turn(tmp_path: Path) -> None:
    model = GatedModel()
    with running_stub(scripted(spoken("Heard."))) as stub:
        async with endpoint(tmp_path, model=model) as hermes, asyncio.timeout(60):
            await hermes.create("s")
            chat = asyncio.create_task(hermes.chat("s", "first"))
            await model.asked.wait()
            # Both orders of what follows are right: the script waits, or it comes later. Never does it come between.
            running = await asyncio.to_thread(script, hermes.db.path, stub.url)
            model.gate.set()
            assert (await chat).status_code == 200
            out, _ = await asyncio.to_thread(running.communicate)
            _, rows = await hermes.messages("s")
    assert (running.returncode, out) == (0, "Heard.\n")
    assert [row["content"] for row in rows] == ["first", "Reply 1", "survives", "Heard."]


@pytest.mark.requirement("agent:lease", "session_db:lease:two-processes")
@pytest.mark.parametrize("session_id", ["known", "new"])
async def test_scripts_that_begin_at_once_take_their_turns_one_after_the_other(tmp_path: Path, session_id: str) -> None:
    async with SessionDB(tmp_path / "state.db") as db:
        await db.create_session("known", "test")
        with running_stub(lambda _request: spoken("Heard.")) as stub:
            scripts = [script(db.path, stub.url, session_id) for _ in range(3)]
            told = await asyncio.gather(*(asyncio.to_thread(one.communicate, timeout=120) for one in scripts))
            read = sorted(len(request.json["messages"]) for request in stub.posts)
        rows = await db.get_messages(session_id)
        session = await db.get_session(session_id)
    assert [out for out, _ in told] == ["Heard.\n"] * 3
    assert [row["content"] for row in rows] == ["survives", "Heard."] * 3
    assert session is not None
    assert (session["message_count"], session["end_reason"]) == (6, "agent_close")
    # Who waited reads what was said meanwhile; who came when all was over begins anew, as an id alone loads nothing.
    assert all(number in (1, 3, 5) for number in read)


@pytest.mark.requirement("agent:lease:endpoint")
async def test_an_agent_and_an_endpoint_of_one_process_share_a_conversation(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with endpoint(tmp_path, model=RecordingModel()) as hermes:
        await hermes.create("s")
        async with AIAgent(model=model, session_db=hermes.db, session_id="s") as agent:
            await agent.chat("from the script")
            assert (await hermes.chat("s", "from the client")).status_code == 200
            await agent.chat("again")
        row = await hermes.session("s")
        assert contents(model.requests[1]) == ["from the script", "Reply 1", "from the client", "Reply 1", "again"]
        assert (row["end_reason"], row["message_count"]) == ("agent_close", 6)
        assert (await hermes.chat("s", "opened")).status_code == 200
        assert (await hermes.session("s"))["end_reason"] is None
