"""Runs: started, watched, asked about, stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.session_db import TurnGround
from tests.support.embedded_endpoint import (
    FailingModel,
    HaltingModel,
    RecordingModel,
    Running,
    code_of,
    endpoint,
    served,
)
from tests.support.embedded_events import opened
from tests.support.runtime_clock import ManualClock

CALL = 'call: record_command {"command": "ls -l"}'
TWO_CALLS = CALL + '\ncall: record_command {"command": "pwd"}'


class GatedStore(SessionDB):
    """Announces each message that comes in and takes it only once `gate` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def begin_turn(self, ground: TurnGround, question: Mapping[str, Any], **options: Any) -> int:
        self.asked.set()
        await self.gate.wait()
        return await super().begin_turn(ground, question, **options)


async def start(hermes: Running, given: object = "hello", **fields: Any) -> str:
    answer = await hermes.client.post("/v1/runs", json={"input": given, **fields})
    assert answer.status_code == 202, answer.text
    assert answer.json().keys() == {"run_id", "status"}
    assert answer.json()["status"] == "started"
    return str(answer.json()["run_id"])


async def status(hermes: Running, run_id: str) -> dict[str, Any]:
    answer = await hermes.client.get(f"/v1/runs/{run_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def events(hermes: Running, run_id: str) -> list[dict[str, Any]]:
    async with opened(hermes.client, "GET", f"/v1/runs/{run_id}/events") as reader:
        found = [event.data for event in await reader.rest()]
        assert reader.decoder.comments == 1  # `stream closed`
        return found


async def choose(hermes: Running, run_id: str, choice: str) -> tuple[int, Any]:
    answer = await hermes.client.post(f"/v1/runs/{run_id}/approval", json={"choice": choice})
    return answer.status_code, answer.json()


@pytest.mark.requirement("embedded:runs:life", "embedded:runs:events")
async def test_a_run_is_started_told_and_remembered(tmp_path: Path) -> None:
    async with served(tmp_path, model=RecordingModel()) as hermes, asyncio.timeout(30):
        run_id = await start(hermes, "hello", model="any-name")
        told = await events(hermes, run_id)
        shown = await status(hermes, run_id)
        _, rows = await hermes.messages(run_id)

        assert run_id.startswith("run_")
        assert {event.pop("run_id") for event in told} == {run_id}
        assert all(isinstance(event.pop("timestamp"), float) for event in told)
        usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
        assert told == [
            {"event": "message.delta", "delta": "Reply 1"},
            {"event": "reasoning.available", "text": "Reply 1"},
            {"event": "run.completed", "output": "Reply 1", "usage": usage},
        ]
        assert {name: value for name, value in shown.items() if not name.endswith("_at")} == {
            "object": "hermes.run", "run_id": run_id, "status": "completed", "session_id": run_id, "model": "any-name",
            "last_event": "run.completed", "output": "Reply 1", "usage": usage,
        }  # fmt: skip
        assert [row["content"] for row in rows] == ["hello", "Reply 1"]


@pytest.mark.requirement("embedded:runs:session")
async def test_a_run_on_a_session_reads_only_what_was_sent_and_stores_there(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        await hermes.chat("s", "before")
        history = [{"role": "user", "content": "sent"}, {"role": "assistant", "content": "too"}]
        await events(hermes, await start(hermes, "one", session_id="s", conversation_history=history))
        response = await hermes.client.post("/v1/responses", json={"input": "first", "instructions": "Briefly."})
        previous = response.json()["id"]
        await events(hermes, await start(hermes, "two", session_id="new", previous_response_id=previous))

        assert [[m["content"] for m in r.messages] for r in model.requests[1:]] == [
            ["sent", "too", "one"], ["first"], ["first", "Reply 3", "two"]
        ]  # fmt: skip
        assert model.requests[-1].system == "Briefly."
        assert len((await hermes.messages("s"))[1]) == 4
        assert (await hermes.session("new"))["source"] == "api_server"


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"session_id": "../unsafe"}, (400, "invalid_session_id")),
        ({"session_id": 5}, (400, None)),
        ({"previous_response_id": "resp_none"}, (404, None)),
    ],
)
@pytest.mark.requirement("embedded:runs:refused")
async def test_a_run_that_names_what_can_not_be_is_refused(
    tmp_path: Path, fields: dict[str, Any], refusal: tuple[int, str | None]
) -> None:
    async with served(tmp_path) as hermes:
        assert code_of(await hermes.client.post("/v1/runs", json={"input": "x", **fields})) == refusal


@pytest.mark.requirement("embedded:runs:failed")
async def test_a_failed_model_fails_the_run(tmp_path: Path) -> None:
    async with served(tmp_path, model=FailingModel()) as hermes, asyncio.timeout(30):
        run_id = await start(hermes)
        (told,) = await events(hermes, run_id)
        shown = await status(hermes, run_id)

        assert (told["event"], shown["status"], shown["last_event"]) == ("run.failed", "failed", "run.failed")
        assert told["error"] == shown["error"] == "the model answered HTTP 500"
        assert "output" not in shown


@pytest.mark.parametrize(
    ("word", "choice", "failed"),
    [("approve", "once", False), ("once", "once", False), (" ALLOW ", "once", False), ("deny", "deny", True)],
)
@pytest.mark.requirement("embedded:runs:approval")
async def test_a_run_asks_and_goes_on_with_the_answer(tmp_path: Path, word: str, choice: str, failed: bool) -> None:
    async with served(tmp_path) as hermes, asyncio.timeout(30):
        run_id = await start(hermes, CALL)
        async with opened(hermes.client, "GET", f"/v1/runs/{run_id}/events") as reader:
            started, request = (await reader.next()).data, (await reader.next()).data
            assert (await status(hermes, run_id))["status"] == "waiting_for_approval"
            answered = await choose(hermes, run_id, word)
            told = [event.data for event in await reader.rest()]
        _, rows = await hermes.messages(run_id)

        assert (started["event"], started["tool"], started["preview"]) == ("tool.started", "record_command", "ls -l")
        assert {name: value for name, value in request.items() if name not in ("run_id", "timestamp")} == {
            "event": "approval.request", "command": "ls -l", "pattern_key": "recorded command",
            "pattern_keys": ["recorded command"], "description": "a command to be noted", "allow_permanent": True,
            "choices": ["once", "session", "always", "deny"],
        }  # fmt: skip
        shape = {"object": "hermes.run.approval_response", "run_id": run_id, "choice": choice, "resolved": 1}
        assert answered == (200, shape)
        names = [event["event"] for event in told if event["event"] != "message.delta"]
        assert names == ["approval.responded", "tool.completed", "reasoning.available", "run.completed"]
        assert (told[0]["choice"], told[0]["resolved"], told[1]["error"]) == (choice, 1, failed)
        assert (f'"status": "{"denied" if failed else "recorded"}"') in rows[2]["content"]


@pytest.mark.requirement("embedded:runs:approval-times-out")
async def test_a_question_that_nobody_answers_in_a_minute_is_denied(tmp_path: Path) -> None:
    clock = ManualClock()
    async with served(tmp_path, clock=clock) as hermes, asyncio.timeout(30):
        run_id = await start(hermes, CALL)
        async with opened(hermes.client, "GET", f"/v1/runs/{run_id}/events") as reader:
            await reader.until("approval.request")
            await clock.until_asleep(60)
            clock.advance(60_000)
            told = [event.data for event in await reader.rest()]

        names = [event["event"] for event in told if event["event"] != "message.delta"]
        assert names == ["tool.completed", "reasoning.available", "run.completed"]
        assert (told[0]["error"], told[0]["duration"]) == (True, 60.0)
        assert (await choose(hermes, run_id, "once"))[1]["error"]["code"] == "approval_not_active"


@pytest.mark.requirement("embedded:runs:approval-lasts")
async def test_session_covers_the_session_and_always_everybody_also_after_a_restart(tmp_path: Path) -> None:
    async def asked(hermes: Running, session_id: str, choice: str, given: str = TWO_CALLS) -> int:
        run_id = await start(hermes, given, session_id=session_id)
        questions = 0
        async with opened(hermes.client, "GET", f"/v1/runs/{run_id}/events") as reader:
            while (event := (await reader.next()).data)["event"] != "run.completed":
                if event["event"] == "approval.request":
                    questions += 1
                    assert (await choose(hermes, run_id, choice))[0] == 200
        return questions

    async with served(tmp_path) as hermes, asyncio.timeout(30):
        assert await asked(hermes, "a", "once") == 2
        assert await asked(hermes, "a", "session") == 1
        assert await asked(hermes, "a", "deny") == 0
        assert await asked(hermes, "b", "always") == 1
        assert await asked(hermes, "c", "deny") == 0
    async with served(tmp_path) as hermes, asyncio.timeout(30):
        assert await asked(hermes, "d", "deny") == 0
        await hermes.create("chat")
        await hermes.chat("chat", CALL)
        assert '"recorded": true' in (await hermes.messages("chat"))[1][2]["content"]


@pytest.mark.requirement("embedded:runs:approval-refused")
async def test_decisions_that_nobody_waits_for_are_refused(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        run_id = await start(hermes)
        await model.asked.wait()
        path = f"/v1/runs/{run_id}/approval"
        for choice, code in (("maybe", "invalid_approval_choice"), ("", "invalid_approval_choice")):
            assert (await choose(hermes, run_id, choice))[1]["error"]["code"] == code
        assert (await choose(hermes, run_id, "once"))[1]["error"]["code"] == "approval_not_pending"
        for body in (b"{", b"[]", b"{}"):
            assert (await hermes.client.post(path, content=body)).status_code == 400
        model.gate.set()
        await events(hermes, run_id)
        assert (await choose(hermes, run_id, "once"))[0] == 409
        assert (await choose(hermes, "run_none", "once"))[1]["error"]["code"] == "run_not_found"


@pytest.mark.requirement("embedded:runs:stop")
async def test_a_stopped_run_is_cancelled_and_keeps_its_partial_text(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        run_id = await start(hermes)
        await model.asked.wait()
        stopping = await hermes.client.post(f"/v1/runs/{run_id}/stop")
        told = await events(hermes, run_id)
        shown = await status(hermes, run_id)
        _, rows = await hermes.messages(run_id)

        assert (stopping.status_code, stopping.json()) == (200, {"run_id": run_id, "status": "stopping"})
        assert [event["event"] for event in told] == ["message.delta", "run.cancelled"]
        assert (shown["status"], shown["last_event"]) == ("cancelled", "run.cancelled")
        assert [(row["content"], row["finish_reason"]) for row in rows] == [("hello", None), ("Half ", "interrupted")]
        assert code_of(await hermes.client.post(f"/v1/runs/{run_id}/stop")) == (404, "run_not_found")
        assert code_of(await hermes.client.post("/v1/runs/run_none/stop")) == (404, "run_not_found")


@pytest.mark.requirement("embedded:runs:stop")
async def test_a_run_is_stopped_out_of_a_question_and_out_of_a_queue(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes, asyncio.timeout(30):
        first = await start(hermes, CALL, session_id="s")
        async with opened(hermes.client, "GET", f"/v1/runs/{first}/events") as reader:
            await reader.until("approval.request")
            second = await start(hermes, "waits", session_id="s")
            assert (await status(hermes, second))["status"] == "queued"
            assert (await hermes.client.post(f"/v1/runs/{second}/stop")).status_code == 200
            assert [event["event"] for event in await events(hermes, second)] == ["run.cancelled"]
            assert (await hermes.client.post(f"/v1/runs/{first}/stop")).status_code == 200
            told = [event.data for event in await reader.rest()]
        assert (await hermes.chat("s", "goes on")).status_code == 200
        _, rows = await hermes.messages("s")

        assert [(event["event"], event.get("error")) for event in told] == [
            ("tool.completed", True), ("run.cancelled", None)
        ]  # fmt: skip
        assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
        assert [row["finish_reason"] for row in rows[1:4]] == ["tool_calls", None, "interrupted"]
        assert '"interrupted"' in rows[2]["content"]


@pytest.mark.requirement("embedded:runs:stop")
async def test_a_run_that_is_stopped_as_it_begins_keeps_what_it_was_asked(tmp_path: Path) -> None:
    store = GatedStore(tmp_path / "hermes.db")
    async with endpoint(tmp_path, db=store) as hermes, asyncio.timeout(30):
        run_id = await start(hermes)
        await store.asked.wait()
        assert (await hermes.client.post(f"/v1/runs/{run_id}/stop")).status_code == 200
        store.gate.set()
        assert [event["event"] for event in await events(hermes, run_id)] == ["run.cancelled"]
        assert [row["content"] for row in (await hermes.messages(run_id))[1]] == ["hello"]


@pytest.mark.requirement("embedded:runs:one-reader")
async def test_events_are_handed_out_once_and_a_reader_that_leaves_stops_nothing(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        run_id = await start(hermes)
        path = f"/v1/runs/{run_id}/events"
        async with opened(hermes.client, "GET", path) as reader:
            await reader.until("message.delta")
            assert code_of(await hermes.client.get(path)) == (404, "run_not_found")
        model.gate.set()
        assert (await hermes.client.post(f"/api/sessions/{run_id}/chat", json={"message": "next"})).status_code == 200

        assert (await status(hermes, run_id))["status"] == "completed"
        assert code_of(await hermes.client.get(path)) == (404, "run_not_found")
        assert not model.given_up.is_set()


@pytest.mark.requirement("embedded:runs:forgotten")
async def test_unread_events_are_kept_for_five_minutes_and_a_run_for_an_hour(tmp_path: Path) -> None:
    clock = ManualClock()
    async with served(tmp_path, clock=clock) as hermes, asyncio.timeout(30):
        late, run_id = await start(hermes), await start(hermes)
        assert (await events(hermes, run_id))[-1]["event"] == "run.completed"
        while (await status(hermes, late))["status"] != "completed":
            pass
        clock.advance(301_000)
        assert code_of(await hermes.client.get(f"/v1/runs/{late}/events")) == (404, "run_not_found")
        assert (await status(hermes, late))["status"] == "completed"
        clock.advance(3_600_000)
        assert code_of(await hermes.client.get(f"/v1/runs/{run_id}")) == (404, "run_not_found")
    async with served(tmp_path) as hermes:
        assert code_of(await hermes.client.get(f"/v1/runs/{late}")) == (404, "run_not_found")
        assert len((await hermes.messages(late))[1]) == 2
