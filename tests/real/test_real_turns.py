"""Turns of a real hermes-agent: tools, names of any script, long histories, a cancel, and compression both ways."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.runtime import MessageContext
from tests.real.gateway import RealHermes, running_hermes
from tests.real.model import Answer, scripted_model
from tests.real.site import Site, real_site
from tests.support.reconcile_site import OWNER

pytestmark = pytest.mark.real

WINDOW = 65_536
FILLING = "word " * 12_800
"""64,000 characters; five of them are more than the threshold of the smallest window."""

CONTINUATION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")


@pytest.mark.requirement("real:tool-turns")
async def test_a_streamed_turn_with_tools_has_its_text_once_and_the_rows_of_its_tools(site: Site) -> None:
    session = site.named("s")
    await site.rows.create(session)
    look = ("terminal", {"command": "echo looked"})
    site.hermes.model.next.extend([Answer(text="Let me look.", calls=[look]), Answer(text="It is there.")])
    output = await site.output("session_chat_stream", session_id=session, message="Is it there?")
    assert not site.hermes.model.next
    events = [event["event"] for event in output["events"]]
    assert events.count("tool.started") == events.count("tool.completed") == 1
    assert events.index("tool.started") < events.index("tool.completed") < events.index("assistant.completed")
    assert re.fullmatch(r"Let me look\.\s+It is there\.", output["text"])
    assert (output["terminal"], output["_aip"]["turn"]["persisted"]) == (True, "yes")
    _, rows = await site.rows.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert "looked" in rows[2]["content"]


@pytest.mark.requirement("real:tool-turns")
@pytest.mark.parametrize("operation", ["chat_stream", "responses_stream", "run_events"])
async def test_other_streams_end_after_their_tools_with_what_was_said(operation: str, site: Site) -> None:
    look = ("terminal", {"command": "echo looked"})
    site.hermes.model.next.extend([Answer(calls=[look]), Answer(text="It is there.")])
    asked = "Is it there?"
    if operation == "run_events":
        run = await site.output("run_start", session_id=site.named("r"), input=asked)
        values = {"run_id": run["run_id"]}
    else:
        values = {"prompt": asked} if operation == "chat_stream" else {"input": asked}
    output = await site.output(operation, **values)
    assert not site.hermes.model.next
    assert output["terminal"] is True
    assert output["text"].strip() == "It is there."
    assert "looked" in str(site.hermes.model.asked[-1]["messages"][-1]["content"])


@pytest.mark.requirement("real:unicode-ids")
@pytest.mark.parametrize("name", ["Ünïcode", "会议 记录", "naïve?x=1#frag%2F", "😀 smile", "tab-less~`'\"()", "نص"])
async def test_a_session_of_any_name_goes_through_its_life(name: str, site: Site) -> None:
    session, fork = site.named(name), site.named(f"{name}, forked")
    assert (await site.output("session_create", body={"id": session}))["session"]["id"] == session
    said = await site.output("session_chat", session_id=session, message=f"Who is {name}?")
    assert said["message"]["content"] == f"You said: Who is {name}?"
    forked = await site.output("session_fork", session_id=session, body={"id": fork, "title": site.named(f"{name} #")})
    assert (forked["session"]["id"], forked["session"]["parent_session_id"]) == (fork, session)
    read = await site.output("session_messages", session_id=fork)
    assert [row["content"] for row in read["data"]] == [f"Who is {name}?", said["message"]["content"]]
    for each in (fork, session):
        await site.output("session_delete", session_id=each)
        assert await site.rows.row(each) is None


@pytest.mark.requirement("real:long-history")
async def test_a_long_history_reaches_the_model_whole_and_is_read_whole(site: Site) -> None:
    session, turns = site.named("long"), 12
    await site.rows.create(session)
    for number in range(turns):
        await site.rows.chat(session, f"Fact {number}.")
    output = await site.output("session_chat", session_id=session, message="All of them?")
    assert output["_aip"]["turn"]["messages_after"] == 2 * turns + 2
    asked = [m["content"] for m in site.hermes.model.asked[-1]["messages"] if m["role"] == "user"]
    assert asked == [f"Fact {number}." for number in range(turns)] + ["All of them?"]
    read = await site.output("session_messages", session_id=session)
    assert [row["content"] for row in read["data"] if row["role"] == "user"] == asked


@pytest.mark.requirement("real:cancel")
async def test_a_cancelled_stream_is_uncertain_says_that_the_turn_goes_on_and_is_found_later(site: Site) -> None:
    session, gate, model = site.named("s"), threading.Event(), site.hermes.model
    await site.rows.create(session)
    model.next.append(Answer(text="Said in spite of it.", until=gate))
    action = wire.Action.model_validate(
        {
            "id": "act_cancelled",
            "capability_id": "cap:hermes_agent:primary:session_chat_stream",
            "idempotency_key": "key-cancelled",
            "input": {"session_id": session, "message": "Wait."},
        }
    )
    runtime = site.losing.runtime
    asking = asyncio.create_task(runtime.submit(action, OWNER, MessageContext()))
    try:
        assert await asyncio.to_thread(model.waiting.acquire, timeout=30)
        cancelled = await runtime.cancel(action.id, OWNER, reason="changed my mind")
        assert cancelled.status == "cancelled"
        answered = await asking
        assert isinstance(answered, wire.ActionResult)
        assert answered.status == "cancelled"
        assert (await site.losing.reconcile(answered))["verdict"] == "indeterminate"
    finally:
        gate.set()
    async with asyncio.timeout(30):
        while (row := await site.rows.row(session)) is None or row["message_count"] < 2:
            pass
    assert (await site.losing.reconcile(answered))["verdict"] == "applied"
    assert len(site.losing.relay.mutations) == 1


@pytest.mark.requirement("real:compression")
async def test_a_fork_is_never_taken_for_a_continuation(site: Site) -> None:
    opened, closed, fork = site.named("s"), site.named("c"), site.named("fork")
    alike = {"session_id": closed, "body": {"id": f"20261201_120000_{site.rows.mark[:6]}"}}
    for source in (opened, closed):
        await site.rows.create(source)
        await site.rows.chat(source, "What is verified?")
    # Anybody with the key may end a row as a compression does.
    ended = await site.rows.client.patch(f"/api/sessions/{closed}", json={"end_reason": "compression"})
    assert ended.json()["session"]["end_reason"] == "compression"
    refused = await site.losing.act("session_fork", alike)
    assert refused.error is not None
    assert refused.error.code == "action.input_schema_invalid"
    for source, child in ((opened, fork), (closed, f"{fork}-2")):
        await site.output("session_fork", session_id=source, body={"id": child, "title": site.named(child)})
        read = await site.output("session_messages", session_id=source)
        identity = read["_aip"]["session"]
        assert (read["session_id"], identity["requested"], identity["effective"]) == (child, source, child)
        assert identity["reason"] in ("branch", "unknown")


@pytest.fixture(params=[True, False], ids=["in-place", "rotating"])
async def small(
    request: pytest.FixtureRequest, tmp_path: Path, own_hermes: RealHermes
) -> AsyncIterator[tuple[Site, bool]]:
    """An endpoint of its own with a small window, and whether it compresses in place."""
    compression = {"in_place": request.param}
    with (
        scripted_model(context_length=WINDOW) as model,
        running_hermes(tmp_path / "small", model, compression=compression) as hermes,
    ):
        async with real_site(hermes, tmp_path) as site:
            yield site, request.param


async def _until_compressed(site: Site, session: str) -> dict[str, object]:
    """Say long things until a turn's transcript is not what it was and one turn more; return that turn's output."""
    for number in count():
        assert number < 12
        output = await site.output("session_chat", session_id=session, message=f"Part {number}. {FILLING}")
        turn = output["_aip"]["turn"]
        if output["session_id"] != session or turn["messages_after"] != turn["messages_before"] + 2:
            return output
    raise AssertionError


@pytest.mark.requirement("real:compression")
async def test_compression_is_adopted_only_where_it_is_proven(small: tuple[Site, bool]) -> None:
    site, in_place = small
    session = site.named("s")
    await site.rows.create(session, title=site.named("Long"))
    output = await _until_compressed(site, session)
    row = await site.rows.row(session)
    assert row is not None
    aip = output["_aip"]
    assert isinstance(aip, dict)
    if in_place:
        assert aip["session"] == {"requested": session, "effective": session, "reason": "none"}
        assert row["end_reason"] is None
        whose, rows = await site.rows.messages(session)
        assert whose == session
        assert "[CONTEXT COMPACTION" in rows[0]["content"]
        assert len(rows) == row["message_count"] == aip["turn"]["messages_after"]
        assert aip["turn"]["persisted"] == "unknown"  # the count fell: it proves nothing about the turn
        return
    continuation = str(output["session_id"])
    assert CONTINUATION.fullmatch(continuation)
    assert aip["session"] == {"requested": session, "effective": continuation, "reason": "compression"}
    assert row["end_reason"] == "compression"
    read = await site.output("session_messages", session_id=session)
    assert read["_aip"]["session"] == {"requested": session, "effective": continuation, "reason": "compression"}
    refused = await site.act("session_chat", {"session_id": session, "message": "On the old id."})
    assert refused.error is not None
    assert refused.error.code == "connector.hermes_agent.session_superseded"
    assert continuation in str(refused.error.details)
    await site.output("session_chat", session_id=continuation, message="On the new one.")
    fork = site.named("fork")
    await site.output("session_fork", session_id=session, body={"id": fork, "title": site.named("Fork")})
    read = await site.output("session_messages", session_id=session)
    assert read["session_id"] in (fork, continuation)
    assert (read["_aip"]["session"]["reason"] == "compression") == (read["session_id"] == continuation)
