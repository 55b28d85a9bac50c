"""The stream of one session turn: its events, its failures, and that the turn doesn't depend on its reader."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.agent import ToolCall
from tests.support.agent_models import ScriptedModel
from tests.support.embedded_endpoint import FailingModel, GatedModel, HaltingModel, Running, code_of, endpoint, served
from tests.support.embedded_events import Event, events_of, opened
from tests.support.runtime_clock import ManualClock

PATH = "/api/sessions/s/chat/stream"


class ForgetfulStore(SessionDB):
    """Can't store a reply."""

    async def record_reply(self, session_id: str, content: str, **options: Any) -> int:
        raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")


async def stream(hermes: Running, message: object = "hello", **fields: Any) -> httpx.Response:
    return await hermes.client.post(PATH, json={"message": message, **fields})


def without_times(events: list[Event]) -> list[Event]:
    return [Event(event.name, {k: v for k, v in event.data.items() if k != "ts"}) for event in events]


@pytest.mark.requirement("embedded:stream:events")
async def test_a_turn_is_told_in_order(tmp_path: Path) -> None:
    model = HaltingModel()
    model.gate.set()
    async with served(tmp_path, model=model) as hermes:
        await hermes.create("s")
        answer = await hermes.client.post(PATH, json={"message": "hello"}, headers={"X-Hermes-Session-Key": "scope"})
        events = without_times(events_of(answer))
        _, rows = await hermes.messages("s")

        assert (answer.headers["x-hermes-session-id"], answer.headers["x-hermes-session-key"]) == ("s", "scope")
        run_id, message_id = events[0].data["run_id"], events[1].data["message"]["id"]
        assert run_id.startswith("run_")
        assert message_id.startswith("msg_")
        told: list[tuple[str, dict[str, Any]]] = [
            ("run.started", {"user_message": {"role": "user", "content": "hello"}}),
            ("message.started", {"message": {"id": message_id, "role": "assistant"}}),
            ("assistant.delta", {"message_id": message_id, "delta": "Half "}),
            ("assistant.delta", {"message_id": message_id, "delta": "done."}),
            ("tool.progress", {"message_id": message_id, "tool_name": "_thinking", "delta": "Half done."}),
            (
                "assistant.completed",
                {
                    "message_id": message_id,
                    "content": "Half done.",
                    "completed": True,
                    "partial": False,
                    "interrupted": False,
                },
            ),
            (
                "run.completed",
                {
                    "message_id": message_id,
                    "completed": True,
                    "messages": [
                        {"role": "assistant", "content": "Half done.", "finish_reason": "stop", "reasoning": None}
                    ],
                    "usage": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
                },
            ),
            ("done", {}),
        ]
        assert events == [
            Event(name, {**data, "session_id": "s", "run_id": run_id, "seq": seq})
            for seq, (name, data) in enumerate(told, start=1)
        ]
        assert [row["content"] for row in rows] == ["hello", "Half done."]


@pytest.mark.requirement("embedded:stream:tools", "embedded:agent:nobody")
async def test_a_tool_is_told_and_nobody_is_asked(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes:
        await hermes.create("s")
        events = events_of(await stream(hermes, 'Go.\ncall: record_command {"command": "ls"}'))
        _, rows = await hermes.messages("s")

        tools = [event for event in events if event.name in ("tool.started", "tool.completed")]
        assert [(e.name, e.data["tool_name"], e.data["preview"], e.data["args"]) for e in tools] == [
            ("tool.started", "record_command", "ls", {"command": "ls"}),
            ("tool.completed", "record_command", None, None),
        ]
        text = "".join(event.data["delta"] for event in events if event.name == "assistant.delta")
        completed = next(event.data for event in events if event.name == "assistant.completed")
        assert text == "\n\n" + completed["content"]
        run = next(event.data for event in events if event.name == "run.completed")
        assert [message["role"] for message in run["messages"]] == ["assistant", "tool", "assistant"]
        assert '"pending_approval"' in run["messages"][1]["content"]
        assert [(row["role"], row["finish_reason"], row["tool_name"]) for row in rows] == [
            ("user", None, None),
            ("assistant", "tool_calls", None),
            ("tool", None, "record_command"),
            ("assistant", "stop", None),
        ]
        assert rows[1]["tool_calls"][0]["function"] == {"name": "record_command", "arguments": '{"command": "ls"}'}
        assert rows[2]["tool_call_id"] == rows[1]["tool_calls"][0]["id"]
        row = await hermes.session("s")
        assert (row["tool_call_count"], row["api_call_count"], row["message_count"]) == (1, 2, 4)


@pytest.mark.requirement("embedded:stream:refused")
async def test_refusals_come_as_json_before_the_stream(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        assert code_of(await stream(hermes)) == (404, "session_not_found")
        await hermes.create("s")
        assert code_of(await hermes.client.post(PATH, content=b"{")) == (400, None)
        assert code_of(await stream(hermes, "")) == (400, "missing_message")
        assert code_of(await stream(hermes, system_message=1)) == (400, "invalid_system_message")
        assert (await hermes.client.get(PATH)).status_code == 405


@pytest.mark.requirement("embedded:stream:failed")
async def test_a_failure_is_an_error_event_and_no_completion(tmp_path: Path) -> None:
    async with served(tmp_path, model=FailingModel()) as hermes:
        await hermes.create("s")
        events = events_of(await stream(hermes))

        assert [event.name for event in events] == ["run.started", "message.started", "error", "done"]
        assert events[2].data["code"] == "model_failed"
        assert "HTTP 500" in events[2].data["message"]
        assert len((await hermes.messages("s"))[1]) == 1

    async with endpoint(tmp_path, db=ForgetfulStore(tmp_path / "hermes.db")) as hermes:
        events = events_of(await stream(hermes))
        assert [event.name for event in events][-2:] == ["error", "done"]
        assert events[-2].data["code"] == "reply_not_stored"


@pytest.mark.requirement("embedded:stream:leaves", "embedded:turn:order")
async def test_a_turn_whose_reader_left_runs_to_its_end_before_the_next(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        async with opened(hermes.client, "POST", PATH, json={"message": "left"}) as reader:
            await reader.until("assistant.delta")
            await model.asked.wait()
        following = asyncio.create_task(stream(hermes, "next"))
        assert code_of(await hermes.client.delete("/api/sessions/s")) == (409, "turn_in_progress")
        model.gate.set()
        assert events_of(await following)[-1].name == "done"
        _, rows = await hermes.messages("s")

        assert [(row["content"], row["finish_reason"]) for row in rows] == [
            ("left", None), ("Half done.", "stop"), ("next", None), ("Half done.", "stop")
        ]  # fmt: skip
        assert not model.given_up.is_set()


@pytest.mark.requirement("embedded:stream:keepalive")
async def test_silence_is_filled_with_a_comment_every_half_minute(tmp_path: Path) -> None:
    model, clock = GatedModel(), ManualClock()
    async with served(tmp_path, model=model, clock=clock) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        async with opened(hermes.client, "POST", PATH, json={"message": "x"}) as reader:
            await reader.until("message.started")
            for _ in range(3):
                await clock.until_asleep(30)
                clock.advance(30_000)
            await clock.until_asleep(30)
            model.gate.set()
            events = await reader.rest()

            assert reader.decoder.comments == 3
            assert [event.name for event in events][-1] == "done"


@pytest.mark.requirement("embedded:stream:tip")
async def test_the_last_events_name_the_row_that_holds_the_turn(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        await hermes.db.create_session("s2", "api_server", parent_session_id="s")
        await hermes.db.end_session("s", "compression")
        answer = await stream(hermes)
        events = events_of(answer)

        assert answer.headers["x-hermes-session-id"] == "s"
        assert {event.data["session_id"] for event in events if event.name != "tool.progress"} == {"s", "s2"}
        assert [event.data["session_id"] for event in events[-3:]] == ["s2"] * 3


@pytest.mark.requirement("embedded:stream:shutdown")
async def test_a_stopped_turn_keeps_its_partial_text(tmp_path: Path) -> None:
    model = HaltingModel()
    async with asyncio.timeout(30):
        async with served(tmp_path, model=model) as hermes:
            await hermes.create("s")
            async with opened(hermes.client, "POST", PATH, json={"message": "x"}) as reader:
                await reader.until("assistant.delta")
    async with SessionDB(tmp_path / "hermes.db") as db:
        rows = await db.get_messages("s")
        assert [(row["content"], row["finish_reason"]) for row in rows] == [("x", None), ("Half ", "interrupted")]


@pytest.mark.requirement("embedded:stream:tools")
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
async def test_numbers_that_json_cannot_say_are_a_failed_call_and_the_turn_goes_on(tmp_path: Path, number: str) -> None:
    call = ToolCall(id="c", name="record_command", arguments=f'{{"command": {number}}}')
    async with served(tmp_path, model=ScriptedModel(call, "fine")) as hermes:
        await hermes.create("s")
        events = events_of(await stream(hermes))
        _, rows = await hermes.messages("s")
    assert [event.data["args"] for event in events if event.name == "tool.started"] == [None]
    assert [event.name for event in events[-2:]] == ["run.completed", "done"]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert "no JSON object" in rows[2]["content"]
