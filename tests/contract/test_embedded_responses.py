"""Responses: chains, conversations, what is kept, and how they are streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.embedded import SessionDB
from tests.support.embedded_endpoint import (
    FailingModel,
    GatedModel,
    HaltingModel,
    RecordingModel,
    Running,
    code_of,
    endpoint,
    served,
)
from tests.support.embedded_events import events_of, opened

T = TypeVar("T")

PATH = "/v1/responses"
CALL = 'call: record_command {"command": "ls"}'


class FullAfterReply(SessionDB):
    """Has room for one reply and for nothing after it."""

    full = False

    async def record_reply(self, session_id: str, content: str, **options: Any) -> int:
        row_id = await super().record_reply(session_id, content, **options)
        self.full = True
        return row_id

    async def write(self, function: Callable[[Connection], T]) -> T:
        if self.full:
            raise StoreUnavailable("the store is not available: database or disk is full", kind="disk_full")
        return await super().write(function)


async def respond(hermes: Running, given: object, **fields: Any) -> httpx.Response:
    return await hermes.client.post(PATH, json={"input": given, **fields})


async def made(hermes: Running, given: object, **fields: Any) -> dict[str, Any]:
    answer = await respond(hermes, given, **fields)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def read_by(model: RecordingModel) -> list[list[Any]]:
    return [[message["content"] for message in request.messages] for request in model.requests]


@pytest.mark.requirement("embedded:responses:answer", "embedded:responses:kept")
async def test_a_response_is_answered_kept_and_deleted(tmp_path: Path) -> None:
    async with served(tmp_path, model=RecordingModel()) as hermes:
        answer = await respond(hermes, "First.", model="any-name")
        body = answer.json()
        path = f"{PATH}/{body['id']}"

        assert body["id"].startswith("resp_")
        assert {name: value for name, value in body.items() if name not in ("id", "created_at")} == {
            "object": "response",
            "status": "completed",
            "model": "any-name",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reply 1"}]}
            ],
            "usage": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
        }
        assert (await hermes.client.get(path)).json() == body
        _, rows = await hermes.messages(answer.headers["x-hermes-session-id"])
        assert [row["content"] for row in rows] == ["First.", "Reply 1"]

        unkept = await made(hermes, "x", store=False)
        assert (await hermes.client.get(f"{PATH}/{unkept['id']}")).status_code == 404
        assert (await hermes.client.delete(path)).json() == {"id": body["id"], "object": "response", "deleted": True}
        for method in ("GET", "DELETE"):
            assert code_of(await hermes.client.request(method, path)) == (404, None)


@pytest.mark.requirement("embedded:responses:chain", "embedded:responses:kept")
async def test_a_chain_keeps_session_history_and_instructions_also_after_a_restart(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        first = await respond(hermes, "one", instructions="Be brief.")
    async with served(tmp_path, model=model) as hermes:
        second = await respond(hermes, "two", previous_response_id=first.json()["id"])
        branch = await respond(hermes, "other", previous_response_id=first.json()["id"], instructions="Be long.")

        assert read_by(model) == [["one"], ["one", "Reply 1", "two"], ["one", "Reply 1", "other"]]
        assert [request.system for request in model.requests] == ["Be brief.", "Be brief.", "Be long."]
        assert len({answer.headers["x-hermes-session-id"] for answer in (first, second, branch)}) == 1
        unknown = await respond(hermes, "x", previous_response_id="resp_none")
        assert code_of(unknown) == (404, None)
        streamed = await respond(hermes, "x", previous_response_id="resp_none", stream=True)
        assert code_of(streamed) == (404, None)


@pytest.mark.requirement("embedded:responses:conversation")
async def test_a_conversation_goes_on_by_name_in_order(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        answers = await asyncio.gather(*(respond(hermes, f"m{n}", conversation="talk") for n in range(5)))
        await made(hermes, "elsewhere", conversation="other")

        assert len({answer.headers["x-hermes-session-id"] for answer in answers}) == 1
        assert [len(messages) for messages in read_by(model)] == [1, 3, 5, 7, 9, 1]

        for answer in answers:
            await hermes.client.delete(f"{PATH}/{answer.json()['id']}")
        await made(hermes, "anew", conversation="talk")
        assert read_by(model)[-1] == ["anew"]


@pytest.mark.requirement("embedded:responses:input")
async def test_every_form_of_input_reaches_the_model(tmp_path: Path) -> None:
    model = RecordingModel()
    async with endpoint(tmp_path, model=model) as hermes:
        await made(hermes, ["a", {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}])
        await made(hermes, [{"role": "user", "content": [{"type": "input_text", "text": "typed"}]}])
        history = [{"role": "user", "content": f"h{n}"} if n % 2 == 0 else {"role": "assistant", "content": f"h{n}"}
                   for n in range(150)]  # fmt: skip
        await made(hermes, "x", conversation_history=history)
        await made(hermes, "x", conversation_history=history, truncation="auto")

        assert read_by(model)[:2] == [["a", "b", "c"], ["typed"]]
        assert [len(messages) for messages in read_by(model)[2:]] == [151, 101]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, None), ({"input": 5}, None), ({"input": []}, None), ({"input": " "}, None), ({"input": [5]}, None),
        ({"input": "x", "conversation_history": "no"}, None), ({"input": "x", "conversation_history": [1]}, None),
        ({"input": "x", "conversation_history": [{"role": "user"}]}, None), ({"input": "x", "conversation": 5}, None),
        ({"input": "x", "conversation": "t", "previous_response_id": "r"}, None),
        ({"input": "x", "instructions": 5}, None),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "unsupported_content_type"), ([1], None),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("path", [PATH, "/v1/runs"])
@pytest.mark.requirement("embedded:responses:refused", "embedded:runs:refused")
async def test_bad_input_is_refused_and_leaves_nothing(
    tmp_path: Path, path: str, body: object, code: str | None
) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await hermes.client.post(path, json=body)

        assert answer.status_code == 400
        assert answer.json()["error"].get("code") == code
        assert await hermes.db.list_sessions_rich(include_children=True) == []


@pytest.mark.requirement("embedded:responses:kept")
async def test_a_hundred_responses_are_kept_and_those_used_longest_ago_go(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        ids = [(await made(hermes, f"{n}"))["id"] for n in range(100)]
        assert (await hermes.client.get(f"{PATH}/{ids[0]}")).status_code == 200
        await made(hermes, "one more")

        assert [(await hermes.client.get(f"{PATH}/{one}")).status_code for one in ids[:3]] == [200, 404, 200]


@pytest.mark.requirement("embedded:responses:repeat")
async def test_a_repeated_response_has_its_own_id_and_can_be_read(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        options: dict[str, Any] = {"json": {"input": "once"}, "headers": {"Idempotency-Key": "k"}}
        first, again = await hermes.client.post(PATH, **options), await hermes.client.post(PATH, **options)

        assert len(model.requests) == 1
        assert first.json()["id"] != again.json()["id"]
        assert first.json()["output"] == again.json()["output"]
        assert first.headers["x-hermes-session-id"] == again.headers["x-hermes-session-id"]
        assert (await hermes.client.get(f"{PATH}/{again.json()['id']}")).json() == again.json()


@pytest.mark.requirement("embedded:responses:failed")
async def test_a_failed_model_fails_the_response(tmp_path: Path) -> None:
    async with served(tmp_path, model=FailingModel()) as hermes:
        assert code_of(await respond(hermes, "x")) == (502, "model_failed")
        events = events_of(await respond(hermes, "x", stream=True))

        assert [event.name for event in events] == ["response.created", "response.failed"]
        failed = events[-1].data["response"]
        assert (failed["status"], failed["error"]["code"], failed["output"]) == ("failed", "model_failed", [])
        assert (await hermes.client.get(f"{PATH}/{failed['id']}")).status_code == 404


@pytest.mark.requirement("embedded:responses:failed")
async def test_a_response_that_could_not_be_kept_says_so(tmp_path: Path) -> None:
    async with endpoint(tmp_path, db=FullAfterReply(tmp_path / "hermes.db")) as hermes:
        assert code_of(await respond(hermes, "x")) == (500, "reply_not_stored")


@pytest.mark.requirement("embedded:responses:stream", "embedded:responses:tools")
async def test_a_stream_tells_items_in_order_and_ends_with_the_whole(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes:
        answer = await respond(hermes, CALL, stream=True)
        events = events_of(answer)

        assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
        assert {event.name == event.data["type"] for event in events} == {True}
        deltas = [event.data["delta"] for event in events if event.name == "response.output_text.delta"]
        assert [event.name for event in events if event.name != "response.output_text.delta"] == [
            "response.created",
            *["response.output_item.added", "response.output_item.done"] * 2,
            "response.output_item.added",
            "response.output_text.done",
            "response.output_item.done",
            "response.completed",
        ]
        call, result, message = events[-1].data["response"]["output"]
        assert (call["type"], call["name"], call["arguments"]) == (
            "function_call", "record_command", '{"command": "ls"}'
        )  # fmt: skip
        assert (result["type"], result["call_id"]) == ("function_call_output", call["call_id"])
        assert '"pending_approval"' in result["output"][0]["text"]
        assert message["content"][0]["text"] == "".join(deltas)
        kept = await hermes.client.get(f"{PATH}/{events[0].data['response']['id']}")
        assert kept.json() == events[-1].data["response"]
        assert answer.headers["x-hermes-session-id"]


@pytest.mark.requirement("embedded:responses:tools")
async def test_without_a_stream_the_output_has_calls_results_and_the_last_text(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        output = (await made(hermes, CALL))["output"]

        assert [item["type"] for item in output] == ["function_call", "function_call_output", "message"]
        assert isinstance(output[1]["output"], str)
        assert output[2]["content"][0]["text"].startswith("Turn 1 of this session.")


@pytest.mark.requirement("embedded:responses:leaves")
async def test_a_response_whose_reader_left_is_completed_and_can_be_read(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        body = {"input": "x", "stream": True, "conversation": "talk"}
        async with opened(hermes.client, "POST", PATH, json=body) as stream:
            response_id = (await stream.next()).data["response"]["id"]
            await stream.until("response.output_text.delta")
            await model.asked.wait()
        model.gate.set()
        # The next one of the conversation stands behind it.
        await made(hermes, "next", conversation="talk")
        kept = (await hermes.client.get(f"{PATH}/{response_id}")).json()

        assert (kept["status"], kept["output"][0]["content"][0]["text"]) == ("completed", "Half done.")
        assert read_by(model)[1] == ["x", "Half done.", "next"]


@pytest.mark.requirement("embedded:responses:conversation")
async def test_a_response_holds_its_session_against_a_delete(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        turn = asyncio.create_task(respond(hermes, "x"))
        await model.asked.wait()
        (row,) = await hermes.db.list_sessions_rich()
        assert code_of(await hermes.client.delete(f"/api/sessions/{row['id']}")) == (409, "turn_in_progress")
        model.gate.set()
        assert (await turn).status_code == 200
