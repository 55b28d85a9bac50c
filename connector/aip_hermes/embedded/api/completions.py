"""Chat completions in OpenAI's form, over stored sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.agent import Order, TurnResult
from aip_hermes.embedded.agent.events import AgentEvent, TextDelta, ToolCompleted, ToolStarted
from aip_hermes.embedded.api.answers import JsonAnswer, session_headers
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.failures import failure_refusal
from aip_hermes.embedded.api.openai_input import (
    asked_model,
    completion_input,
    flag,
    given_session_id,
    opening_session_id,
)
from aip_hermes.embedded.api.repeats import fingerprint
from aip_hermes.embedded.api.requests import json_object, session_key
from aip_hermes.embedded.api.streams import EventStream, Feed
from aip_hermes.embedded.session_db import Usage

__all__ = ["completions"]

_SAME: Final = ("model", "messages", "tools", "tool_choice", "stream")


async def completions(endpoint: Endpoint, request: Request) -> Response:
    """POST /v1/chat/completions.

    A session of the header is continued, or made, on its stored history; without one the opening names the session and
    the history is the one that was sent. A failed model is 502, in a stream the last chunk says so. A client that
    leaves a stream interrupts the turn; one that leaves a JSON answer doesn't.
    """
    endpoint.turns.check_capacity()
    body = await json_object(request)
    wanted = completion_input(body)
    scope = session_key(request)
    named = given_session_id(request)
    order = Order(
        session_id=named or opening_session_id(wanted),
        content=wanted.content,
        stored_text=wanted.stored_text,
        system_message=wanted.system,
        history=None if named else wanted.history,
        create=True,
    )
    model = asked_model(body, endpoint.model_name)
    if flag(body.get("stream")):
        return _streamed(endpoint, order, model, scope)

    async def turn_to_keep() -> TurnResult:
        # What a key keeps for minutes is the answer, not all that the model read.
        return replace(await endpoint.turns.take(order), rows=[], read=[])

    def start() -> asyncio.Task[TurnResult]:
        endpoint.turns.check_capacity()
        return endpoint.turns.start(turn_to_keep())

    mark = fingerprint("completions", body, _SAME, named)
    turn, _repeated = await endpoint.repeats.once(request, mark, start)
    message = {"role": "assistant", "content": turn.text}
    choice = {"index": 0, "message": message, "finish_reason": turn.finish_reason}
    head = _head(endpoint, "chat.completion", model)
    return JsonAnswer(
        {**head, "choices": [choice], "usage": _usage(turn.usage)}, headers=session_headers(turn.session_id, scope)
    )


def _streamed(endpoint: Endpoint, order: Order, model: str, scope: str | None) -> Response:
    endpoint.turns.check_capacity()
    chunks = _Chunks(endpoint, model)
    task = endpoint.turns.start(chunks.tell(replace(order, listener=chunks.hear)))
    return EventStream(chunks.feed, headers=session_headers(order.session_id, scope), on_leave=task.cancel)


class _Chunks:
    """Tells one turn as chunks."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.feed = Feed(endpoint.clock)
        self._endpoint = endpoint
        self._head = _head(endpoint, "chat.completion.chunk", model)

    async def tell(self, order: Order) -> None:
        """Take the turn and tell it."""
        self._chunk({"role": "assistant"})
        try:
            turn = await self._endpoint.turns.take(order)
            self._chunk({}, finish_reason=turn.finish_reason, usage=_usage(turn.usage))
        except Exception as exc:  # the outermost place of a stream: every failure becomes its last chunk
            self._fail(exc)
        finally:
            self.feed.add("[DONE]")
            self.feed.end()

    def hear(self, event: AgentEvent) -> None:
        """Put what happens into the feed."""
        match event:
            case TextDelta():
                self._chunk({"content": event.text})
            case ToolStarted(call=call, preview=preview):
                label = preview or call.name
                self._tool({"tool": call.name, "emoji": "🛠️", "label": label, "toolCallId": call.id}, "running")
            case ToolCompleted(call=call):
                self._tool({"tool": call.name, "toolCallId": call.id}, "completed")
            case _:
                pass

    def _tool(self, members: Mapping[str, Any], status: str) -> None:
        self.feed.add({**members, "status": status}, event="hermes.tool.progress")

    def _fail(self, exc: Exception) -> None:
        refusal = failure_refusal(exc)
        text, code = (str(refusal), refusal.code) if refusal else ("Internal server error", None)
        marks = {"completed": False, "partial": False, "failed": True, "error": text, "error_code": "agent_error"}
        error = {"message": text, "type": "agent_error", "code": code}
        self._chunk({}, finish_reason="error", usage=_usage(Usage()), error=error, hermes=marks)

    def _chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        self.feed.add({**self._head, "choices": [choice], **more})


def _head(endpoint: Endpoint, kind: str, model: str) -> dict[str, Any]:
    completion_id = "chatcmpl-" + endpoint.new_id("")[-29:]
    return {"id": completion_id, "object": kind, "created": endpoint.clock.now_ms() // 1000, "model": model}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
