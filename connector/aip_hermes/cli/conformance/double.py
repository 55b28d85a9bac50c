"""A Hermes endpoint made of rules: a real loopback server that records what reaches it and answers, or misbehaves.

The store behind it is a mapping of session rows; what a scenario wants different it says for one route at a time.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

__all__ = [
    "COMPLETION",
    "JOB",
    "KEY",
    "RESPONSE",
    "RUN",
    "Arrived",
    "Reply",
    "StubEndpoint",
    "reply_error",
    "reply_json",
    "reset",
    "row_of",
]

KEY = "stub-endpoint-key-0123456789"


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """One request as it came over the wire. target: path and query, undecoded. connection: counts from 1."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def segments(self) -> list[str]:
        return [unquote(part) for part in self.target.split("?")[0].split("/")[1:]]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the endpoint does. behaviour: `answer`; `reset` before any byte; `cut` the connection inside the body (its
    length is announced in full); `stall` until the client leaves. close: whether the connection ends after it."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    behaviour: str = "answer"
    declared_length: int | None = None
    close: bool = False


Rule = Callable[[Arrived], Reply | None]


def reply_json(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(
        status=status,
        body=json.dumps(value).encode(),
        headers={"content-type": "application/json; charset=utf-8", **(headers or {})},
    )


def reply_error(status: int, code: str | None, message: str = "refused", *, retry_after: str | None = None) -> Reply:
    return reply_json(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}},
        status=status,
        headers={} if retry_after is None else {"retry-after": retry_after},
    )


def row_of(session_id: str, **members: Any) -> dict[str, Any]:
    """Return a session object with the members that evidence reads."""
    return {
        "id": session_id,
        "source": "api_server",
        "title": None,
        "started_at": 1796071433.5,
        "ended_at": None,
        "end_reason": None,
        "message_count": 2,
        "parent_session_id": None,
        "has_system_prompt": False,
        **members,
    }


JOB: Mapping[str, Any] = {
    "id": "0ddaaccff246",
    "name": "Nightly",
    "prompt": "Summarise the day.",
    "skills": [],
    "schedule": {"kind": "cron", "expr": "0 3 * * *", "display": "0 3 * * *"},
    "schedule_display": "0 3 * * *",
    "enabled": True,
    "state": "scheduled",
    "created_at": "2026-11-30T20:55:13.894258+00:00",
    "next_run_at": "2026-12-01T03:00:00+00:00",
    "deliver": "local",
}
RUN: Mapping[str, Any] = {
    "object": "hermes.run",
    "run_id": "run_1",
    "status": "waiting_for_approval",
    "created_at": 1796072111.5,
    "updated_at": 1796072112.25,
    "session_id": "s1",
    "model": "hermes-agent",
    "last_event": "approval.request",
}
RESPONSE: Mapping[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "created_at": 1796072095,
    "model": "hermes-agent",
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Echo"}]},
    ],
}
COMPLETION: Mapping[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Echo"}, "finish_reason": "stop"}],
}


def _of_v1(request: Arrived) -> Reply:
    """Answer the routes of completions, responses and runs."""
    match request.method, request.segments[1:]:
        case "POST", ["chat", "completions"]:
            session_id = request.headers.get("x-hermes-session-id", "api-0123456789abcdef")
            return reply_json(COMPLETION, headers={"x-hermes-session-id": session_id})
        case "DELETE", ["responses", response_id]:
            return reply_json({"id": response_id, "object": "response", "deleted": True})
        case _, ["responses", *_]:
            return reply_json(RESPONSE)
        case "POST", ["runs"]:
            return reply_json({"run_id": "run_1", "status": "started"}, status=202)
        case "POST", ["runs", run_id, "approval"]:
            choice = request.json["choice"]
            answered = {"object": "hermes.run.approval_response", "run_id": run_id, "choice": choice, "resolved": 1}
            return reply_json(answered)
        case "POST", ["runs", run_id, "stop"]:
            return reply_json({"run_id": run_id, "status": "stopping"})
    return reply_json(RUN)


class StubEndpoint:
    """Answers the session routes from `rows`, the others with one job, run and response;
    `on(method, suffix, …)` puts a rule in front, newest first."""

    def __init__(self, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        self.rows: dict[str, dict[str, Any]] = {row["id"]: dict(row) for row in rows}
        self.arrived: list[Arrived] = []
        self.stalled = asyncio.Event()
        self._rules: list[Rule] = []
        self._connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await asyncio.gather(*self._serving)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def mutations(self) -> list[Arrived]:
        return [request for request in self.arrived if request.method != "GET"]

    @property
    def reads(self) -> list[Arrived]:
        return [request for request in self.arrived if request.method == "GET"]

    @property
    def connections(self) -> int:
        return self._connections

    def on(
        self, method: str, ending: str, reply: Reply | Callable[[Arrived], Reply], *, times: int | None = None
    ) -> None:
        """Answer requests of `method` whose path ends with `ending` by `reply`, at most `times`."""
        left = [times]

        def rule(request: Arrived) -> Reply | None:
            if request.method != method or not request.target.split("?")[0].endswith(ending) or left[0] == 0:
                return None
            if left[0] is not None:
                left[0] -= 1
            return reply if isinstance(reply, Reply) else reply(request)

        self._rules.insert(0, rule)

    def answer(self, request: Arrived) -> Reply:
        for rule in self._rules:
            found = rule(request)
            if found is not None:
                return found
        return self._by_route(request)

    def _by_route(self, request: Arrived) -> Reply:
        match request.method, request.segments:
            case "GET", ["health"]:
                return reply_json({"status": "ok", "platform": "hermes-agent", "version": "0.19.0"})
            case "GET", ["api", "jobs"]:
                return reply_json({"jobs": [JOB]})
            case _, ["api", "jobs", *_]:
                return reply_json({"ok": True} if request.method == "DELETE" else {"job": JOB})
            case _, ["v1", ("chat" | "responses" | "runs"), *_]:
                return _of_v1(request)
            case "GET", ["api", "sessions"]:
                return reply_json({"object": "list", "data": list(self.rows.values()), "has_more": False})
            case "GET", [_, _]:
                return reply_json({"object": "list", "data": []})
            case "POST", ["api", "sessions"]:
                return self._stored(
                    row_of(request.json.get("id") or "api_1796071433_0a1b2c3d", title=request.json.get("title"))
                )
        session_id = request.segments[2]
        if session_id not in self.rows:
            return reply_error(404, "session_not_found", f"Session not found: {session_id}")
        return self._of_session(request, session_id, self.rows[session_id])

    def _of_session(self, request: Arrived, session_id: str, row: dict[str, Any]) -> Reply:
        match request.method, request.segments[3:]:
            case "GET", []:
                return reply_json({"object": "hermes.session", "session": row})
            case "GET", ["messages"]:
                return reply_json({"object": "list", "session_id": session_id, "data": []})
            case "PATCH", []:
                row |= {"title": request.json.get("title", row["title"])}
                if request.json.get("end_reason") and row["ended_at"] is None:
                    row |= {"ended_at": 1796071999.0, "end_reason": request.json["end_reason"]}
                return reply_json({"object": "hermes.session", "session": row})
            case "DELETE", []:
                del self.rows[session_id]
                return reply_json({"object": "hermes.session.deleted", "id": session_id, "deleted": True})
            case "POST", ["fork"]:
                if row["ended_at"] is None:
                    row |= {"ended_at": 1796071999.0, "end_reason": "branched"}
                child = request.json.get("id") or "api_1796071433_0a1b2c3d"
                return self._stored(
                    row_of(
                        child,
                        title=request.json.get("title"),
                        parent_session_id=session_id,
                        message_count=row["message_count"],
                    )
                )
            case "POST", ["chat"]:
                row["message_count"] += 2
                return reply_json(
                    {
                        "object": "hermes.session.chat.completion",
                        "session_id": session_id,
                        "message": {"role": "assistant", "content": "Echo"},
                        "usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11},
                    }
                )
        raise AssertionError(f"no route for {request.method} {request.target}")

    def _stored(self, row: dict[str, Any]) -> Reply:
        if row["id"] in self.rows:
            return reply_error(409, "session_exists")
        self.rows[row["id"]] = row
        return reply_json({"object": "hermes.session", "session": row}, status=201)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        self._writers.add(writer)
        if (task := asyncio.current_task()) is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            while (request := await _read(reader, number)) is not None:
                self.arrived.append(request)
                if not await self._reply(self.answer(request), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _reply(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.behaviour == "stall":
            self.stalled.set()
            await reader.read(1)
            return False
        if reply.behaviour == "reset":
            reset(writer)
            return False
        length = len(reply.body) if reply.declared_length is None else reply.declared_length
        head = [f"HTTP/1.1 {reply.status} Stub", f"content-length: {length}"]
        head += [f"{name}: {value}" for name, value in reply.headers.items()]
        body = reply.body[: len(reply.body) // 2] if reply.behaviour == "cut" else reply.body
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        await writer.drain()
        if reply.behaviour == "cut":
            reset(writer)
            return False
        return not reply.close


async def _read(reader: asyncio.StreamReader, connection: int) -> Arrived | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    line, *fields = head.decode("utf-8").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in fields if text)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Arrived(method=method, target=target, headers=headers, body=body, connection=connection)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN, as a proxy that gives up does."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
