"""Models that an agent's test can steer, and answers of an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aip_hermes.embedded import ModelReply, ModelRequest, Pieces
from aip_hermes.embedded.agent import ToolCall
from aip_hermes.embedded.session_db import Usage
from tests.support.client_stub_server import Answer, Request

__all__ = ["ScriptedModel", "called", "contents", "refused", "scripted", "spoken", "tool_call"]

Step = str | ToolCall | Exception | Callable[[ModelRequest], str]


class ScriptedModel:
    """Gives its steps in order, then answers `Reply <n>`: a text, a call, a failure, or what a function makes of the
    request. requests: what it was asked.
    """

    def __init__(self, *steps: Step) -> None:
        self.requests: list[ModelRequest] = []
        self._steps = list(steps)

    @property
    def name(self) -> str:
        return "scripted"

    async def stream(self, request: ModelRequest) -> Pieces:
        self.requests.append(request)
        step: Step = self._steps.pop(0) if self._steps else f"Reply {len(self.requests)}"
        usage = Usage(input_tokens=10, output_tokens=3)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, ToolCall):
            yield ModelReply(text="", tool_calls=(step,), finish_reason="tool_calls", usage=usage)
            return
        text = step if isinstance(step, str) else step(request)
        yield text
        yield ModelReply(text=text, usage=usage)

    async def aclose(self) -> None:
        return


def contents(request: ModelRequest) -> list[Any]:
    """Return what the messages of a request say."""
    return [message["content"] for message in request.messages]


def tool_call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    """Return a call."""
    return ToolCall(id=f"c{number}", name=name, arguments=json.dumps(arguments))


def spoken(*pieces: str) -> Answer:
    """Return a stream that says something."""
    deltas: list[Mapping[str, Any]] = [{"content": piece} for piece in pieces]
    return _streamed(deltas, "stop")


def called(name: str, **arguments: Any) -> Answer:
    """Return a stream that calls a tool."""
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return _streamed([{"tool_calls": [call]}], "tool_calls")


def refused(status: int, code: str | None = None) -> Answer:
    """Return an error of the endpoint."""
    return Answer(status=status, body={"error": {"message": "no", "code": code}})


def scripted(*answers: Answer) -> Callable[[Request], Answer]:
    """Answer in order; asked once more, the endpoint fails."""
    left = list(answers)
    return lambda _request: left.pop(0) if left else refused(400)


def _streamed(deltas: Sequence[Mapping[str, Any]], reason: str) -> Answer:
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    chunks: list[Mapping[str, Any]] = [{"choices": [{"delta": delta}]} for delta in deltas]
    chunks += [{"choices": [{"delta": {}, "finish_reason": reason}]}, {"choices": [], "usage": usage}]
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Answer(body=lines.encode(), headers={"Content-Type": "text/event-stream"})
