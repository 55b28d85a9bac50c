"""Streams of events as a server writes them, for followers: written out, and cut anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx

from aip_hermes import sse
from aip_hermes.client import AipConnection, StreamFrame
from aip_hermes.ids import ActionId
from aip_hermes.ports import SystemClock
from aip_hermes.secret import Secret

__all__ = [
    "TOKEN",
    "NoWaiting",
    "Script",
    "chunk",
    "connected",
    "event",
    "failure",
    "followed",
    "name_of",
    "page",
    "terminal",
]

TOKEN = "requester-0123456789"
ACTION = "act_1"


def _frame(data: Any, *, event: str, id: str | None = None) -> bytes:
    return sse.encode(json.dumps(data), event=event, id=id)


def event(number: int, kind: str = "aip.action.accepted") -> bytes:
    made = {"id": f"evt_{number}", "kind": kind, "occurred_at": "2030-01-01T00:00:00Z", "action_id": ACTION}
    return _frame({"event": made}, event=kind, id=f"evt_{number}")


def chunk(sequence: int, text: str | None = None, *, kind: str = "data") -> bytes:
    made: dict[str, Any] = {"action_id": ACTION, "sequence": sequence, "kind": kind}
    if text is not None:
        made["part"] = {"type": "text", "text": text, "format": "plain"}
    return _frame({"chunk": made}, event="aip.stream.chunk", id=f"chunk:{sequence}")


def page(cursor: str, *frames: bytes) -> bytes:
    """Frames and the position behind them."""
    return b"".join(frames) + _frame({"next_cursor": cursor}, event="aip.stream.cursor", id=cursor)


def terminal(cursor: str = "end") -> bytes:
    return _frame({"terminal": True, "action_id": ACTION}, event="aip.stream.terminal", id=cursor)


def failure(code: str, *, retryable: bool, **members: Any) -> bytes:
    error = {"code": code, "message": "as the test wants", "category": "temporary", "retryable": retryable, **members}
    return _frame({"error": error}, event="aip.error")


class NoWaiting(SystemClock):
    """Keeps what it was asked to wait for, and does not wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


@dataclass
class Script(httpx.AsyncBaseTransport):
    """Answers each connection by `answer(cursor)`: what it sends, and whether it breaks then or ends well."""

    answer: Callable[[str | None], tuple[bytes, bool]]
    cursors: list[str | None] = field(default_factory=list)
    piece_bytes: int = 1 << 20

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        cursor = request.url.params.get("cursor")
        self.cursors.append(cursor)
        content, breaks = self.answer(cursor)
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return httpx.Response(200, headers=headers, content=self._sent(content, breaks))

    async def _sent(self, content: bytes, breaks: bool) -> AsyncIterator[bytes]:
        for start in range(0, len(content), self.piece_bytes):
            yield content[start : start + self.piece_bytes]
        if breaks:
            raise httpx.ReadError("the connection broke")


def connected(base_url: str = "http://127.0.0.1:9", **members: Any) -> AipConnection:
    """Return a connection as the requester of the served settings."""
    return AipConnection(base_url=base_url, token=Secret(TOKEN), **members)


def name_of(frame: StreamFrame) -> str:
    """Say in a word what a frame is."""
    if frame.kind == "chunk":
        return f"chunk {frame.data['chunk']['sequence']}"
    if frame.kind == "event":
        return str(frame.data["event"]["id"])
    return f"{frame.kind} {frame.cursor}"


async def followed(connection: AipConnection, **members: Any) -> list[StreamFrame]:
    """Return every frame of the action of these streams, to its end."""
    async with asyncio.timeout(30), aclosing(connection.follow(ActionId(ACTION), **members)) as frames:
        return [frame async for frame in frames]
