"""How a response is told: its events one by one, and the object that stands for it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.embedded.agent import TurnResult
from aip_hermes.embedded.agent.events import AgentEvent, TextDelta, ToolCompleted, ToolStarted
from aip_hermes.embedded.api.answers import usage_object
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.failures import failure_refusal
from aip_hermes.embedded.api.streams import Feed
from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["ResponseStory", "response_object"]


def response_object(endpoint: Endpoint, model: str) -> dict[str, Any]:
    """Return a response that has just begun, with an id of its own."""
    return {
        "id": "resp_" + endpoint.new_id("")[-28:],
        "object": "response",
        "status": "in_progress",
        "created_at": endpoint.clock.now_ms() // 1000,
        "model": model,
        "output": [],
    }


class ResponseStory:
    """Tells one response. streamed: each event goes into the feed; otherwise only the object is made.

    session_id: known once the response has begun.
    """

    def __init__(self, endpoint: Endpoint, model: str, *, streamed: bool = False) -> None:
        self.feed = Feed(endpoint.clock)
        self.session_id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._endpoint = endpoint
        self._head = response_object(endpoint, model)
        self._streamed = streamed
        self._message_id = _item_id(endpoint, "msg_")
        self._number = 0
        self._items = 0
        self._message_at: int | None = None
        self._text: list[str] = []

    @property
    def response_id(self) -> str:
        """The id of this response."""
        return str(self._head["id"])

    def begin(self, session_id: str) -> None:
        """The session is known."""
        if not self.session_id.done():
            self.session_id.set_result(session_id)
        self._say("response.created", {"response": self._head})

    def hear(self, event: AgentEvent) -> None:
        """Tell what happens."""
        match event:
            case TextDelta():
                text = scrubbed(event.text)
                self._open_message()
                self._text.append(text)
                self._say("response.output_text.delta", {**self._place(), "delta": text, "logprobs": []})
            case ToolStarted(call=call):
                item: dict[str, Any] = {
                    "id": _item_id(self._endpoint, "fc_"),
                    "type": "function_call",
                    "status": "in_progress",
                    "name": call.name,
                    "call_id": call.id,
                    "arguments": call.arguments,
                }
                place = self._added(item)
                self._done(place, item | {"status": "completed"})
            case ToolCompleted(call=call):
                item = {
                    "id": _item_id(self._endpoint, "fco_"),
                    "type": "function_call_output",
                    "call_id": call.id,
                    "output": _listed(event.output),
                    "status": "completed",
                }
                self._done(self._added(item), item)
            case _:
                pass

    def document(self, turn: TurnResult) -> dict[str, Any]:
        """Return the completed object; in a stream its text is all that was streamed."""
        text = "".join(self._text) if self._streamed else turn.text
        output = _output(turn.rows, text, listed=self._streamed)
        return {**self._head, "status": "completed", "output": output, "usage": usage_object(turn.usage)}

    def complete(self, document: Mapping[str, Any]) -> None:
        """Tell the end."""
        self._open_message()
        text = "".join(self._text)
        self._say("response.output_text.done", {**self._place(), "text": text, "logprobs": []})
        item = {"id": self._message_id, "type": "message", "status": "completed", **_message(text)}
        self._done(self._message_at or 0, item)
        self._say("response.completed", {"response": document})

    def fail(self, exc: Exception) -> None:
        """Tell that it failed, with what there was."""
        refusal = failure_refusal(exc)
        text, code = (str(refusal), refusal.code) if refusal else ("Internal server error", None)
        partial = "".join(self._text)
        output = [{"type": "message", **_message(partial)}] if partial else []
        error = {"message": text, "type": "server_error", "code": code}
        self._say(
            "response.failed",
            {"response": {**self._head, "status": "failed", "output": output, "error": error}},
        )

    def _open_message(self) -> None:
        if self._message_at is None:
            item = {
                "id": self._message_id,
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }
            self._message_at = self._added(item)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._message_id, "output_index": self._message_at, "content_index": 0}

    def _added(self, item: Mapping[str, Any]) -> int:
        place = self._items
        self._items += 1
        self._say("response.output_item.added", {"output_index": place, "item": item})
        return place

    def _done(self, place: int, item: Mapping[str, Any]) -> None:
        self._say("response.output_item.done", {"output_index": place, "item": item})

    def _say(self, name: str, members: Mapping[str, Any]) -> None:
        if self._streamed:
            self.feed.add({"type": name, **members, "sequence_number": self._number}, event=name)
            self._number += 1


def _output(rows: Sequence[Mapping[str, Any]], text: str, *, listed: bool) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    for row in rows:
        for call in row.get("tool_calls", ()):
            function = call["function"]
            output.append({"type": "function_call", **function, "call_id": call["call_id"]})
        if row["role"] == "tool":
            result = _listed(row["content"]) if listed else row["content"]
            output.append({"type": "function_call_output", "call_id": row["tool_call_id"], "output": result})
    return [*output, {"type": "message", **_message(text)}]


def _message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _listed(output: str) -> list[dict[str, str]]:
    return [{"type": "input_text", "text": output}]


def _item_id(endpoint: Endpoint, prefix: str) -> str:
    return prefix + endpoint.new_id("")[-24:]
