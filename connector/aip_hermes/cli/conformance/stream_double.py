"""A double of Hermes whose turns are streams: sent piece by piece, held back, broken off, left open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aip_hermes.cli.conformance.double import Arrived, Reply, StubEndpoint, reset

__all__ = ["StreamReply", "StreamStub", "reply_stream", "session_stream"]

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
