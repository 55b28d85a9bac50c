"""Chat completions over real connections: sessions, repeats, streams, who leaves, who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

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
from tests.support.runtime_clock import ManualClock

PATH = "/v1/chat/completions"
SYSTEM: dict[str, object] = {"role": "system", "content": "Be brief."}


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


async def complete(
    hermes: Running, *messages: Mapping[str, object], headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    return await hermes.client.post(PATH, json={"messages": list(messages), **fields}, headers=headers or {})


@pytest.mark.requirement("embedded:completions:answer", "embedded:completions:session")
async def test_the_opening_names_the_session_and_the_sent_history_is_read(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        first = await complete(hermes, SYSTEM, user("Hello."), model="any-name")
        reply: dict[str, object] = {"role": "assistant", "content": "Hi."}
        second = await complete(hermes, SYSTEM, user("Hello."), reply, user("More."))
        other = await complete(hermes, user("Hello."))
        session_id = first.headers["x-hermes-session-id"]
        _, rows = await hermes.messages(session_id)

        body = first.json()
        assert body.pop("id").startswith("chatcmpl-")
        assert isinstance(body.pop("created"), int)
        assert body == {
            "object": "chat.completion",
            "model": "any-name",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Reply 1"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
        }
        assert session_id.startswith("api-")
        assert second.headers["x-hermes-session-id"] == session_id != other.headers["x-hermes-session-id"]
        assert second.json()["model"] == "hermes-agent"
        assert [(request.system, len(request.messages)) for request in model.requests] == [
            ("Be brief.", 1), ("Be brief.", 3), (None, 1)
        ]  # fmt: skip
        assert [row["content"] for row in rows] == ["Hello.", "Reply 1", "More.", "Reply 2"]
        assert (await hermes.session(session_id))["model"] == "recording"


@pytest.mark.requirement("embedded:completions:session")
async def test_a_session_of_the_header_is_made_and_continued_on_its_stored_history(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        named = {"X-Hermes-Session-Id": "named", "X-Hermes-Session-Key": "scope"}
        first = await complete(hermes, user("one"), headers=named)
        await complete(hermes, user("ignored"), user("two"), headers=named)
        await hermes.chat("named", "three")

        assert (first.headers["x-hermes-session-id"], first.headers["x-hermes-session-key"]) == ("named", "scope")
        assert [[m["content"] for m in r.messages] for r in model.requests][1:] == [
            ["one", "Reply 1", "two"],
            ["one", "Reply 1", "two", "Reply 2", "three"],
        ]
        assert (await hermes.session("named"))["source"] == "api_server"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, None), ({"messages": []}, None), ({"messages": "x"}, None), ({"messages": ["x"]}, None),
        ({"messages": [SYSTEM]}, None), ({"messages": [user(" ")]}, None), ({"messages": [{"content": "x"}]}, None),
        ({"messages": [user([{"type": "file"}])]}, "unsupported_content_type"), ([], None),
    ],
)  # fmt: skip
@pytest.mark.requirement("embedded:completions:refused")
async def test_bad_messages_are_refused_and_leave_nothing(tmp_path: Path, body: object, code: str | None) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await hermes.client.post(PATH, json=body)

        assert answer.status_code == 400
        assert answer.json()["error"].get("code") == code
        assert await hermes.db.list_sessions_rich(include_children=True) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Hermes-Session-Id": "s" * 257}, {"X-Hermes-Session-Id": "../x"}, {"X-Hermes-Session-Id": "C:x"},
        {"X-Hermes-Session-Key": "k" * 257},
    ],
)  # fmt: skip
@pytest.mark.requirement("embedded:completions:refused")
async def test_bad_headers_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await complete(hermes, user("x"), headers=headers)

        assert answer.status_code == 400
        assert answer.json()["error"].keys() == {"message", "type"}


@pytest.mark.requirement("embedded:completions:failed")
async def test_a_failed_model_is_never_a_success(tmp_path: Path) -> None:
    model = FailingModel()
    async with served(tmp_path, model=model) as hermes:
        plain = await complete(hermes, user("x"))
        streamed = events_of(await complete(hermes, user("x"), stream=True))
        _, rows = await hermes.messages((await hermes.db.list_sessions_rich())[0]["id"])

        assert code_of(plain) == (502, "model_failed")
        last = streamed[-2].data
        assert (last["choices"][0]["finish_reason"], last["error"]["code"]) == ("error", "model_failed")
        assert (last["hermes"]["failed"], last["usage"]["total_tokens"]) == (True, 0)
        assert streamed[-1].data == "[DONE]"
        assert [row["role"] for row in rows] == ["user", "user"]


@pytest.mark.requirement("embedded:repeats:kept")
async def test_a_key_repeats_the_answer_under_a_new_id_for_five_minutes(tmp_path: Path) -> None:
    model, clock = RecordingModel(), ManualClock()
    async with served(tmp_path, model=model, clock=clock) as hermes:
        key = {"Idempotency-Key": "k"}
        first = await complete(hermes, user("once"), headers=key)
        again = await complete(hermes, user("once"), headers=key)
        clock.advance(301_000)
        later = await complete(hermes, user("once"), headers=key)

        assert again.json()["choices"] == first.json()["choices"] != later.json()["choices"]
        assert len({answer.json()["id"] for answer in (first, again, later)}) == 3
        assert len(model.requests) == 2


@pytest.mark.requirement("embedded:repeats:other")
async def test_another_request_under_a_key_runs_and_takes_its_place(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model) as hermes:
        key = {"Idempotency-Key": "k"}
        for text in ("one", "two", "two", "one"):
            await complete(hermes, user(text), headers=key)
        await complete(hermes, user("one"), headers=key | {"X-Hermes-Session-Id": "elsewhere"})

        assert [r.messages[-1]["content"] for r in model.requests] == ["one", "two", "one", "one"]


@pytest.mark.requirement("embedded:repeats:in-flight", "embedded:repeats:failed")
async def test_equal_requests_in_flight_share_one_run_and_a_failure_is_not_kept(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        key = {"Idempotency-Key": "k"}
        calls = [asyncio.create_task(complete(hermes, user("x"), headers=key)) for _ in range(5)]
        await model.asked.wait()
        model.gate.set()
        answers = await asyncio.gather(*calls)

        assert len(model.requests) == 1
        assert len({answer.json()["id"] for answer in answers}) == 5

    failing = FailingModel()
    async with served(tmp_path, model=failing) as hermes:
        assert (await complete(hermes, user("x"), headers=key)).status_code == 502
        failing.failing = False
        assert (await complete(hermes, user("x"), headers=key)).status_code == 200


@pytest.mark.requirement("embedded:completions:stream")
async def test_a_stream_tells_role_text_tools_end_and_done(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes:
        answer = await complete(hermes, user('call: record_command {"command": "ls"}'), stream="true")
        events = events_of(answer)

        chunks = [event.data for event in events if event.name is None and event.data != "[DONE]"]
        assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
        assert len({chunk["id"] for chunk in chunks}) == 1
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant"}
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        assert text.startswith("\n\nTurn 1 of this session.")
        assert (chunks[-1]["choices"][0]["finish_reason"], chunks[-1]["choices"][0]["delta"]) == ("stop", {})
        assert chunks[-1]["usage"]["completion_tokens"] > 0
        tools = [event.data for event in events if event.name == "hermes.tool.progress"]
        assert [(tool["tool"], tool["status"]) for tool in tools] == [
            ("record_command", "running"), ("record_command", "completed")
        ]  # fmt: skip
        assert tools[0]["label"] == "ls"
        assert events[-1].data == "[DONE]"
        assert answer.headers["x-hermes-session-id"].startswith("api-")


@pytest.mark.requirement("embedded:completions:leaves")
async def test_a_client_that_leaves_a_stream_interrupts_and_its_partial_text_is_kept(tmp_path: Path) -> None:
    model = HaltingModel()
    async with served(tmp_path, model=model) as hermes, asyncio.timeout(30):
        headers = {"X-Hermes-Session-Id": "left"}
        body = {"messages": [user("x")], "stream": True}
        async with opened(hermes.client, "POST", PATH, json=body, headers=headers) as stream:
            await stream.next()
            assert (await stream.next()).data["choices"][0]["delta"] == {"content": "Half "}
        await model.given_up.wait()
        model.gate.set()
        assert (await hermes.chat("left", "next")).status_code == 200
        _, rows = await hermes.messages("left")

        assert [(row["role"], row["content"], row["finish_reason"]) for row in rows] == [
            ("user", "x", None),
            ("assistant", "Half ", "interrupted"),
            ("user", "next", None),
            ("assistant", "Half done.", "stop"),
        ]


@pytest.mark.requirement("embedded:limit:runs")
async def test_one_turn_too_many_is_refused_on_the_v1_routes_only(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model, max_concurrent_runs=1) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        turn = asyncio.create_task(hermes.chat("s"))
        await model.asked.wait()
        refused = [
            await complete(hermes, user("x")),
            await complete(hermes, user("x"), stream=True),
            await hermes.client.post("/v1/responses", json={"input": "x"}),
            await hermes.client.post("/v1/runs", json={"input": "x"}),
        ]
        other = asyncio.create_task(hermes.chat("s", "also"))
        model.gate.set()

        for answer in refused:
            assert code_of(answer) == (429, "rate_limit_exceeded")
            assert (answer.headers["retry-after"], answer.json()["error"]["type"]) == ("1", "rate_limit_error")
        assert [answer.status_code for answer in await asyncio.gather(turn, other)] == [200, 200]
        assert (await complete(hermes, user("x"))).status_code == 200


@pytest.mark.requirement("embedded:limit:runs")
async def test_no_burst_gets_past_the_cap(tmp_path: Path) -> None:
    model = GatedModel()
    async with served(tmp_path, model=model, max_concurrent_runs=3) as hermes, asyncio.timeout(30):
        calls = [asyncio.create_task(complete(hermes, user(f"x{n}"))) for n in range(20)]
        for answered in islice(asyncio.as_completed(calls), 17):
            assert (await answered).status_code == 429
        model.gate.set()
        statuses = sorted(answer.status_code for answer in await asyncio.gather(*calls))

        assert statuses == [200] * 3 + [429] * 17
