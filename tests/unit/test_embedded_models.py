"""Models that stream: what chunks add up to, when an endpoint is asked again, and the offline model's tool calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from aip_hermes.embedded import ModelFailed, ModelReply, ModelRequest, OfflineModel
from aip_hermes.embedded.agent import ToolCall, whole_reply
from aip_hermes.embedded.agent.openai_model import OpenAIModel
from aip_hermes.embedded.agent.telling import failure_text
from aip_hermes.embedded.agent.tools import TOOLS
from aip_hermes.embedded.session_db import Usage
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import SteppingClock

REQUEST = ModelRequest(messages=[{"role": "user", "content": "x"}], tools=TOOLS)
DONE = b"data: [DONE]\n\n"


class Pieces(httpx.AsyncByteStream):
    """A body in pieces; ends with an error where one is given."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self._pieces = pieces
        self._error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._error is not None:
            raise self._error


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n"


def streamed(*pieces: bytes, error: Exception | None = None) -> httpx.Response:
    stream = Pieces(*pieces, error=error)
    return httpx.Response(200, headers={"Content-Type": "text/event-stream; charset=utf-8"}, stream=stream)


def model(*answers: httpx.Response | Exception, seen: list[Any] | None = None) -> OpenAIModel:
    waiting = list(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(json.loads(request.content))
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return OpenAIModel(
        base_url="http://127.0.0.1:9/v1", model="m", clock=SteppingClock(), transport=httpx.MockTransport(handle)
    )


async def pieces_of(asked: OpenAIModel | OfflineModel, request: ModelRequest = REQUEST) -> list[str | ModelReply]:
    return [piece async for piece in asked.stream(request)]


@pytest.mark.requirement("embedded:model:streams")
async def test_chunks_are_text_as_it_comes_and_then_the_whole() -> None:
    body = b"".join(
        [
            b": keepalive\n\n",
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Grüß"}),
            chunk({"content": " Gott"}),
            chunk({}, finish="length"),
            chunk(usage={"prompt_tokens": 12, "completion_tokens": 3}),
            DONE,
        ]
    )
    for size in (1, 7, len(body)):
        cut = [body[at : at + size] for at in range(0, len(body), size)]
        *text, whole = await pieces_of(model(streamed(*cut)))

        assert text == ["Grüß", " Gott"]
        assert whole == ModelReply(
            text="Grüß Gott", finish_reason="length", usage=Usage(input_tokens=12, output_tokens=3)
        )


@pytest.mark.requirement("embedded:model:tools")
async def test_calls_are_put_together_from_their_parts_and_history_is_sent_as_it_is_understood() -> None:
    seen: list[Any] = []
    answer = streamed(
        chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "record_command", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"command": '}}]}),
        chunk({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "other", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"ls"}'}}]}),
        chunk({}, finish="tool_calls"),
        DONE,
    )
    call = {"id": "c0", "call_id": "c0", "type": "function", "function": {"name": "n", "arguments": "{}"}}
    request = ModelRequest(
        messages=[
            {"role": "user", "content": "x", "timestamp": 1.0},
            {"role": "assistant", "content": "", "finish_reason": "tool_calls", "tool_calls": [call]},
            {"role": "tool", "content": "r", "tool_call_id": "c0", "tool_name": "n"},
        ],
        tools=TOOLS,
    )
    (reply,) = await pieces_of(model(answer, seen=seen), request)

    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.tool_calls == (
        ToolCall(id="c1", name="record_command", arguments='{"command": "ls"}'),
        ToolCall(id="c2", name="other", arguments="{}"),
    )
    assert seen[0]["tools"] == list(TOOLS)
    assert seen[0]["messages"] == [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "n", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "r", "tool_call_id": "c0"},
    ]


@pytest.mark.requirement("embedded:model:tools")
async def test_a_whole_completion_may_call_too() -> None:
    function = {"name": "record_command", "arguments": "{}"}
    message = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    reply = await whole_reply(model(httpx.Response(200, json={"choices": [{"message": message}]})), REQUEST)

    assert reply.tool_calls == (ToolCall(id="c1", name="record_command", arguments="{}"),)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: streamed(chunk({"content": "Half"})),
        lambda: streamed(chunk({"content": "Half"}), error=httpx.ReadError("reset")),
        lambda: streamed(chunk({"content": "Half"}), chunk({}, error={"message": "secret words"})),
        lambda: streamed(chunk({"content": "Half"}), b"data: <html>\n\n"),
        lambda: streamed(chunk({"content": "Half"}), b"data: []\n\n"),
        lambda: streamed(chunk({"content": "Half"}), b"data: \xff\n\n"),
    ],
)
@pytest.mark.requirement("embedded:model:again", "embedded:model:streams")
async def test_a_reply_that_breaks_after_its_first_word_fails_and_is_not_asked_for_again(
    answer: Callable[[], httpx.Response],
) -> None:
    seen: list[Any] = []
    pieces = model(answer(), answer(), answer(), seen=seen).stream(REQUEST)
    assert await anext(pieces) == "Half"
    with pytest.raises(ModelFailed) as failed:
        await anext(pieces)

    assert len(seen) == 1
    assert "secret" not in str(failed.value)


@pytest.mark.requirement("embedded:model:streams")
@pytest.mark.parametrize("body", [[DONE], [chunk({"content": " "}, finish="stop"), DONE], [b": only a comment\n\n"]])
async def test_a_stream_that_says_nothing_fails(body: list[bytes]) -> None:
    with pytest.raises(ModelFailed):
        await whole_reply(model(streamed(*body)), REQUEST)


@pytest.mark.parametrize(
    ("failures", "sends", "answered"),
    [
        ([httpx.ConnectError("refused")], 2, True),
        ([httpx.Response(503), httpx.Response(429)], 3, True),
        ([httpx.Response(500)] * 3, 3, False),
        ([httpx.Response(400)], 1, False),
        ([httpx.Response(401)], 1, False),
        ([httpx.ReadTimeout("slow")], 1, False),
        ([httpx.Response(200, text="<html>")], 1, False),
    ],
)
@pytest.mark.requirement("embedded:model:again")
async def test_a_model_is_asked_again_only_where_it_has_not_begun(
    failures: list[httpx.Response | Exception], sends: int, answered: bool
) -> None:
    seen: list[Any] = []
    asked = model(*failures, streamed(chunk({"content": "Yes"}, finish="stop"), DONE), seen=seen)
    try:
        reply = await whole_reply(asked, REQUEST)
    except ModelFailed:
        assert not answered
    else:
        assert (answered, reply.text) == (True, "Yes")
    assert len(seen) == sends


@pytest.mark.requirement("embedded:model:offline-calls")
async def test_the_offline_model_calls_what_the_last_paragraph_says_one_after_the_other() -> None:
    said = {"role": "user", "content": 'call: ignored {}\n\nGo.\ncall: record_command {"command": "a b"}\ncall: other'}
    first = await whole_reply(OfflineModel(), ModelRequest(messages=[said], tools=TOOLS))
    result = {"role": "tool", "content": "done it"}
    second = await whole_reply(OfflineModel(), ModelRequest(messages=[said, result], tools=TOOLS))
    third = await whole_reply(OfflineModel(), ModelRequest(messages=[said, result, result], tools=TOOLS))
    toolless = await whole_reply(OfflineModel(), ModelRequest(messages=[said]))

    assert [(c.name, c.arguments) for c in (*first.tool_calls, *second.tool_calls)] == [
        ("record_command", '{"command": "a b"}'), ("other", "{}")
    ]  # fmt: skip
    assert len({first.tool_calls[0].id, second.tool_calls[0].id}) == 2
    assert "The tool answered: “done it”." in third.text
    assert not toolless.tool_calls


@pytest.mark.requirement("embedded:model:offline-calls")
async def test_the_offline_model_reads_the_texts_of_a_json_object() -> None:
    told = {"objective": "Note it.\n\ncall: first {}", "context": {"note": "call: no {}"}, "more": "call: second {}"}
    said = {"role": "user", "content": json.dumps(told, indent=2)}
    first = await whole_reply(OfflineModel(), ModelRequest(messages=[said], tools=TOOLS))
    result = {"role": "tool", "content": "done it"}
    second = await whole_reply(OfflineModel(), ModelRequest(messages=[said, result], tools=TOOLS))
    third = await whole_reply(OfflineModel(), ModelRequest(messages=[said, result, result], tools=TOOLS))

    assert [call.name for reply in (first, second, third) for call in reply.tool_calls] == ["first", "second"]


@pytest.mark.parametrize("text", ["Hello.", "  two\n\nwords  ", "ein größeres\tWort", ""])
@pytest.mark.requirement("embedded:model:streams")
async def test_the_offline_model_streams_words_that_add_up(text: str) -> None:
    *words, whole = await pieces_of(OfflineModel(), ModelRequest(messages=[{"role": "user", "content": text}]))

    assert isinstance(whole, ModelReply)
    assert "".join(str(word) for word in words) == whole.text
    assert len(words) > 3


@pytest.mark.requirement("embedded:model:tools")
@pytest.mark.parametrize("numbers", [(None, None), (0, 0), (0, 1), (1, 0)])
async def test_calls_with_ids_of_their_own_stay_apart_however_they_are_numbered(
    numbers: tuple[int | None, int | None],
) -> None:
    def part(number: int | None, call_id: str | None, arguments: object, name: str | None = "f") -> bytes:
        numbered = {} if number is None else {"index": number}
        return chunk({"tool_calls": [{**numbered, "id": call_id, "function": {"name": name, "arguments": arguments}}]})

    one, two = numbers
    body = [part(one, "a", '{"x"'), part(one, None, ": 1}", None), part(two, "b", {"x": 2}), chunk({}, finish="stop")]
    *_, reply = await pieces_of(model(streamed(*body, DONE)))
    assert isinstance(reply, ModelReply)
    assert reply.tool_calls == (
        ToolCall(id="a", name="f", arguments='{"x": 1}'), ToolCall(id="b", name="f", arguments='{"x": 2}')
    )  # fmt: skip


@pytest.mark.requirement("agent:model-failed")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "no model\n `m`", "code": "model_not_found"}}, "no model `m`"),
        ({"error": "no model"}, "no model"),
        ([{"error": {"message": "no model"}}], "no model"),
        ({"detail": "no model"}, "no model"),
        (
            {"error": {"message": "wrong key sk-1234567890abcdef, or an-unusual-key"}},
            "wrong key [redacted], or [redacted]",
        ),
        ({"error": {"message": "x" * 1_000}}, "x" * 299 + "…"),
        ({"error": {"message": 7}}, None),
        ({"error": None}, None),
        (b"<html>", None),
        ([], None),
        (7, None),
    ],
)
async def test_what_an_endpoint_says_is_kept_apart_from_what_is_told_to_everybody(
    body: object, told: str | None
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = OpenAIModel(
        base_url="http://127.0.0.1:9/v1",
        model="m",
        key=Secret("an-unusual-key"),
        transport=httpx.MockTransport(lambda _: httpx.Response(401, content=content)),
    )
    with pytest.raises(ModelFailed) as failed:
        await whole_reply(asked, REQUEST)
    assert (failed.value.reason, str(failed.value)) == (told, "the model answered HTTP 401")
    assert failure_text(failed.value) == f"HTTP 401: {told or failed.value}"


@pytest.mark.requirement("agent:model-failed")
async def test_what_an_endpoint_says_in_the_middle_of_its_answer_is_told_to_who_asked() -> None:
    broken = streamed(
        chunk({"content": "Well"}), chunk(error={"message": "out of\nmemory, bearer abcdef", "code": 500})
    )
    with pytest.raises(ModelFailed) as failed:
        await whole_reply(model(broken), REQUEST)
    assert str(failed.value) == "the model reported an error while it answered"
    assert failure_text(failed.value) == f"{failed.value}: out of memory, bearer [redacted]"
