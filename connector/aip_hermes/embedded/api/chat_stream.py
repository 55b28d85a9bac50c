"""One turn as a stream of events. The turn runs to its end and is stored, whether or not its reader stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.agent import Order, TurnResult
from aip_hermes.embedded.agent.compressing import Compression
from aip_hermes.embedded.agent.events import AgentEvent, StepText, TextDelta, ToolCompleted, ToolStarted
from aip_hermes.embedded.api.answers import session_headers, usage_object
from aip_hermes.embedded.api.compressing import demanded_compression
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.failures import failure_refusal
from aip_hermes.embedded.api.message_input import TurnInput, turn_input
from aip_hermes.embedded.api.requests import json_object, path_session_id, session_key
from aip_hermes.embedded.api.sessions import existing_row
from aip_hermes.embedded.api.streams import EventStream, Feed
from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["chat_stream"]

_THOUGHT_CHARS: Final = 500


async def chat_stream(endpoint: Endpoint, request: Request) -> Response:
    """POST …/chat/stream: input and refusals of chat, then events that end with `done`.

    The header names the asked row; the last events name the row that holds the turn.
    """
    scope = session_key(request)
    session_id = path_session_id(request)
    await existing_row(endpoint, session_id)
    wanted = turn_input(await json_object(request))
    story = _Story(endpoint, session_id, wanted, demanded_compression(endpoint, request))
    endpoint.turns.start(story.tell())
    return EventStream(story.feed, headers=session_headers(session_id, scope))


class _Story:
    """Tells one turn."""

    def __init__(self, endpoint: Endpoint, session_id: str, wanted: TurnInput, compression: Compression | None) -> None:
        self.feed = Feed(endpoint.clock)
        self._endpoint = endpoint
        self._session_id = session_id
        self._wanted = wanted
        self._compression = compression
        self._run_id = endpoint.new_id("run_")
        self._message_id = endpoint.new_id("msg_")
        self._seq = 0

    async def tell(self) -> None:
        """Take the turn and tell it."""
        order = Order(
            session_id=self._session_id,
            content=self._wanted.content,
            stored_text=self._wanted.stored_text,
            system_message=self._wanted.system_message,
            habits=self._endpoint.habits,
            compression=self._compression,
            listener=self._hear,
        )
        self._say("run.started", {"user_message": {"role": "user", "content": self._wanted.stored_text}})
        self._say("message.started", {"message": {"id": self._message_id, "role": "assistant"}})
        try:
            self._complete(await self._endpoint.turns.take(order))
        except Exception as exc:  # the outermost place of a stream: every failure becomes its event
            refusal = failure_refusal(exc)
            text, code = (str(refusal), refusal.code) if refusal else ("Internal server error", None)
            self._say("error", {"message": text, "code": code})
        finally:
            self._say("done", {})
            self.feed.end()

    def _complete(self, turn: TurnResult) -> None:
        self._session_id = turn.session_id
        marks = {"completed": True, "partial": False, "interrupted": False}
        self._say("assistant.completed", {"message_id": self._message_id, "content": turn.text, **marks})
        self._say(
            "run.completed",
            {
                "message_id": self._message_id,
                "completed": True,
                "messages": [_shown(row) for row in turn.rows],
                "usage": usage_object(turn.usage),
            },
        )

    def _hear(self, event: AgentEvent) -> None:
        match event:
            case TextDelta():
                self._say("assistant.delta", {"message_id": self._message_id, "delta": scrubbed(event.text)})
            case StepText():
                thought = scrubbed(event.text[:_THOUGHT_CHARS])
                self._tool("tool.progress", "_thinking", {"delta": thought})
            case ToolStarted():
                self._tool("tool.started", event.call.name, {"preview": event.preview, "args": event.arguments})
            case ToolCompleted():
                self._tool("tool.completed", event.call.name, {"preview": None, "args": None})
            case _:
                pass

    def _tool(self, name: str, tool: str, members: Mapping[str, Any]) -> None:
        self._say(name, {"message_id": self._message_id, "tool_name": tool, **members})

    def _say(self, name: str, members: Mapping[str, Any]) -> None:
        self._seq += 1
        frame = {
            **members,
            "session_id": self._session_id,
            "run_id": self._run_id,
            "seq": self._seq,
            "ts": self._endpoint.clock.now_ms() / 1000,
        }
        self.feed.add(frame, event=name)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "reasoning": None} if row["role"] == "assistant" else dict(row)
