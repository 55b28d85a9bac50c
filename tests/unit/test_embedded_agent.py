"""Models without a network, and the repair of conversations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from aip_hermes.embedded import ModelFailed, ModelRequest, OfflineModel
from aip_hermes.embedded.agent import whole_reply
from aip_hermes.embedded.agent.openai_model import OpenAIModel
from aip_hermes.embedded.session_db import Usage, repair_message_sequence
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import SteppingClock

REQUEST = ModelRequest(messages=[{"role": "user", "content": "private words", "timestamp": 1.0}], system="Briefly.")
COMPLETION: dict[str, Any] = {
    "choices": [{"message": {"role": "assistant", "content": "Answer"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    },
}


def model(answer: httpx.Response | Exception, seen: list[httpx.Request] | None = None) -> OpenAIModel:
    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return OpenAIModel(
        base_url="http://127.0.0.1:9/v1/",
        model="m",
        key=Secret("sk-secret"),
        clock=SteppingClock(),
        transport=httpx.MockTransport(handle),
    )


@pytest.mark.requirement("embedded:model:offline")
async def test_the_offline_model_shows_that_history_was_used() -> None:
    request = ModelRequest(
        system="In one sentence.",
        messages=[
            {"role": "user", "content": "Remember blue."},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": [{"type": "text", "text": "Which\ncolour?"}, {"type": "image_url"}]},
        ],
    )
    first, second = await whole_reply(OfflineModel(), request), await whole_reply(OfflineModel(), request)

    assert first == second
    assert first.text == (
        "Turn 2 of this session. Instruction for this turn: “In one sentence.”. "
        "You said: “Which colour? [image]”. The session began with: “Remember blue.”."
    )
    assert first.usage.input_tokens > 0
    assert first.usage.output_tokens == -(-len(first.text) // 4)


@pytest.mark.requirement("embedded:model:openai")
async def test_a_completion_is_asked_for_once_with_key_and_system_message() -> None:
    seen: list[httpx.Request] = []
    reply = await whole_reply(model(httpx.Response(200, json=COMPLETION), seen), REQUEST)

    assert (reply.text, reply.finish_reason) == ("Answer", "stop")
    assert reply.usage == Usage(input_tokens=12, output_tokens=3, cache_read_tokens=4, reasoning_tokens=1)
    (request,) = seen
    assert str(request.url) == "http://127.0.0.1:9/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert json.loads(request.content) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Briefly."}, {"role": "user", "content": "private words"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.requirement("embedded:model:openai")
async def test_a_cut_reply_keeps_its_reason_and_missing_usage_is_zero() -> None:
    body = {"choices": [{"message": {"content": "Ans"}, "finish_reason": "length"}]}
    reply = await whole_reply(model(httpx.Response(200, json=body)), REQUEST)

    assert (reply.finish_reason, reply.usage) == ("length", Usage())


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (httpx.Response(500, text="private words"), 500),
        (httpx.Response(401, json={"error": {"message": "bad key sk-secret"}}), 401),
        (httpx.Response(302, headers={"Location": "http://elsewhere.test"}), 302),
        (httpx.Response(200, text="<html>"), None),
        (httpx.Response(200, text='{"choices":' + "[" * 100_000), None),
        (
            httpx.Response(200, headers={"content-type": "text/event-stream"}, text="data: " + "[" * 100_000 + "\n\n"),
            None,
        ),
        (httpx.Response(200, json={"choices": []}), None),
        (httpx.Response(200, json={"choices": [{"message": {"content": ""}}]}), None),
        (httpx.Response(200, json={"choices": [{"message": {"content": None}}]}), None),
        (httpx.Response(200, json=[]), None),
        (httpx.ConnectError("http://127.0.0.1:9 refused"), None),
        (httpx.ReadTimeout("http://127.0.0.1:9 slow"), None),
    ],
)
@pytest.mark.requirement("embedded:model:openai")
async def test_each_failure_is_model_failed_and_says_nothing_private(
    answer: httpx.Response | Exception, status: int | None
) -> None:
    with pytest.raises(ModelFailed) as failed:
        await whole_reply(model(answer), REQUEST)

    assert failed.value.status == status
    assert not any(private in str(failed.value) for private in ("sk-secret", "private words", "127.0.0.1"))


@pytest.mark.parametrize("address", ["ftp://host/v1", "http://user:pw@host/v1", "host/v1", ""])
@pytest.mark.requirement("embedded:model:openai")
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address of a model"):
        OpenAIModel(base_url=address, model="m")


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: object, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def tool(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "content": "r", "tool_call_id": call_id}


@pytest.mark.parametrize(
    ("before", "after", "repairs"),
    [
        ([user("a"), user("b"), user("c")], [user("a\n\nb\n\nc")], 2),
        ([user("a"), user([{"type": "text"}])], [user("a"), user([{"type": "text"}])], 0),
        ([assistant(" a "), assistant(""), assistant("b")], [assistant("a\nb")], 2),
        ([assistant("a", finish_reason="verification_required"), assistant("b")], [assistant("b")], 1),
        (
            [assistant("a", finish_reason="incomplete"), assistant("b")],
            [assistant("a", finish_reason="incomplete"), assistant("b")],
            0,
        ),
        (
            [assistant("", tool_calls=[{"id": "1", "call_id": "c1"}]), tool("c1"), tool("1"), tool("x"), user("u")],
            [assistant("", tool_calls=[{"id": "1", "call_id": "c1"}]), tool("c1"), user("u")],
            2,
        ),
        ([user("a"), tool("1"), user("b")], [user("a\n\nb")], 2),
        ([assistant("a", tool_calls=[{"id": "1"}])], [assistant("a", tool_calls=[{"id": "1"}])], 0),
    ],
)
@pytest.mark.requirement("embedded:conversation:repair")
def test_sequences_are_repaired(before: list[dict[str, Any]], after: list[dict[str, Any]], repairs: int) -> None:
    assert repair_message_sequence(before) == repairs
    assert before == after


class _Dripping(httpx.AsyncByteStream):
    """Never ends."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b": \n"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.requirement("embedded:model:openai")
async def test_an_answer_that_drips_for_ever_comes_to_an_end(kind: str) -> None:
    class Passing(SteppingClock):
        def monotonic(self) -> float:
            return self.now_ms() / 1000

    dripping = OpenAIModel(
        base_url="http://127.0.0.1:9/v1",
        model="m",
        timeout_s=30.0,
        clock=Passing(),
        transport=httpx.MockTransport(
            lambda _request: httpx.Response(200, headers={"content-type": kind}, stream=_Dripping())
        ),
    )
    with pytest.raises(ModelFailed, match="in time"):
        await whole_reply(dripping, REQUEST)
