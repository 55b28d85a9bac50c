"""A Hermes endpoint whose turns are streams: sent piece by piece, held back, broken off, left open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer, Chunk
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from tests.support.hermes_calls import FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import KEY, Arrived, Reply, StubEndpoint, reset, row_of

__all__ = [
    "RUN_EVENTS",
    "TURN",
    "Kept",
    "StreamReply",
    "StreamStub",
    "answered",
    "failed",
    "reply_stream",
    "session_stream",
    "turn",
]

Piece = bytes | asyncio.Event


@dataclass(frozen=True, kw_only=True)
class StreamReply(Reply):
    """pieces: sent one after the other as a body of unknown length; an event among them is waited for. behaviour: then
    the body ends (`answer`), the connection breaks (`reset`) or nothing comes any more until the client leaves
    (`stall`)."""

    pieces: Iterable[Piece] = ()


def reply_stream(*pieces: Piece, behaviour: str = "answer", headers: Mapping[str, str] | None = None) -> StreamReply:
    media = {"content-type": "text/event-stream; charset=utf-8"}
    return StreamReply(pieces=pieces, behaviour=behaviour, headers=media | dict(headers or {}))


def session_stream(session_id: str, *deltas: str, ends: str | None = None) -> bytes:
    """Return a turn's stream as 0.19.0 sends it. ends: the session that its last events name."""
    moved = ends or session_id
    events: list[tuple[str, dict[str, Any]]] = [
        ("run.started", {"user_message": {"role": "user", "content": "x"}, "session_id": session_id}),
        ("message.started", {"message": {"id": "msg_1", "role": "assistant"}, "session_id": session_id}),
    ]
    for delta in deltas:
        events.append(("assistant.delta", {"message_id": "msg_1", "delta": delta, "session_id": session_id}))
        events.append(("tool.progress", {"tool_name": "_thinking", "delta": delta, "session_id": session_id}))
    said = "".join(deltas)
    events += [
        ("assistant.completed", {"session_id": moved, "content": said, "completed": True}),
        ("run.completed", {"session_id": moved, "messages": [{"role": "assistant", "content": said}], "usage": {}}),
        ("done", {"session_id": session_id}),
    ]
    return b"".join(
        f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode() for name, data in events
    )


class StreamStub(StubEndpoint):
    """A StubEndpoint that streams the turns of its sessions. left: set when a client leaves a stream that stalls."""

    def __init__(self, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.left = asyncio.Event()

    def _of_session(self, request: Arrived, session_id: str, row: dict[str, Any]) -> Reply:
        if (request.method, request.segments[3:]) == ("POST", ["chat", "stream"]):
            row["message_count"] += 2
            return reply_stream(session_stream(session_id, "Echo"))
        return super()._of_session(request, session_id, row)

    async def _reply(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if not isinstance(reply, StreamReply):
            return await super()._reply(reply, reader, writer)
        head = [f"HTTP/1.1 {reply.status} Stub", "transfer-encoding: chunked"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n")
        await writer.drain()
        for piece in reply.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif piece:
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
        if reply.behaviour == "stall":
            self.stalled.set()
            await reader.read(1)
            self.left.set()
            return False
        if reply.behaviour == "reset":
            reset(writer)
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


_CODE = "connector.hermes_agent."
TURN = load_operations()["session_chat_stream"]
RUN_EVENTS = load_operations()["run_events"]


class Kept:
    """Chunks in the order in which they were published. fail_at: the chunk whose storing fails."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.chunks: list[Chunk] = []
        self.first = asyncio.Event()
        self._fail_at = fail_at

    async def __call__(self, chunk: Chunk) -> None:
        if len(self.chunks) == self._fail_at:
            raise ActionFailed("the disk is full")
        self.chunks.append(chunk)
        self.first.set()

    @property
    def kinds(self) -> list[str]:
        return [chunk.kind for chunk in self.chunks]


async def turn(
    stub: StreamStub,
    *,
    kept: Kept | None = None,
    row: Operation = TURN,
    values: Mapping[str, Any] | None = None,
    timeout_s: float = 30.0,
    clock: FakeClock | None = None,
    deadline_ms: int | None = None,
) -> Answer | ActionFailed:
    """Run one attempt of a streaming row as a runtime does."""
    endpoint = endpoint_of(stub.base_url, turn_timeout_s=timeout_s)
    given = {"session_id": "s1", "message": "hi"} if row.name == TURN.name else {"run_id": "run_1"}
    async with connector_of(endpoint, operations={row.name: row}, clock=clock) as connector:
        return await attempt(
            handler_of(connector, row.name),
            call_of(row.name, given | dict(values or {}), deadline_ms=deadline_ms),
            publish=kept or Kept(),
        )


async def answered(reply: Reply, **settings: Any) -> tuple[Answer | ActionFailed, StreamStub]:
    """Run one attempt at an endpoint that answers with `reply`."""
    async with StreamStub([row_of("s1")]) as stub:
        stub.on("POST", "/chat/stream", reply)
        stub.on("GET", "/events", reply)
        return await turn(stub, **settings), stub


def failed(outcome: Answer | ActionFailed, code: str) -> ActionFailed:
    """Return the failure that the outcome must be."""
    assert isinstance(outcome, ActionFailed)
    assert outcome.code == _CODE + code
    assert outcome.details["uncertain_outcome"] is outcome.uncertain
    assert KEY not in outcome.message + repr(outcome.details)
    return outcome
