"""A life of many actions at a real server in which every field that somebody fills holds a marker.

The endpoint is the double, so that what Hermes says holds markers too: replies, reasoning, tool calls, complaints.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from aip_hermes import wire
from aip_hermes.cli.conformance.run_events import told
from aip_hermes.ports import SystemClock, new_id
from tests.support.hermes_streams import StreamStub, reply_stream
from tests.support.hermes_stub import Reply, reply_error, reply_json, row_of
from tests.support.markers import mark
from tests.support.processes import finish, start
from tests.support.server_serving import AUTHORITY, envelope
from tests.support.server_site import write_secret, write_settings
from tests.support.webhook import Receiver

__all__ = ["SESSION", "Life", "living"]

SESSION = "s1"


@dataclass(kw_only=True)
class Life:
    """heard: every answer of the server, as text. log: what it wrote to stderr. hooks: what the webhook got."""

    folder: Path
    client: httpx.AsyncClient
    stub: StreamStub
    hooks: Receiver
    log: Path
    heard: list[str] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.folder / "data" / "aip.sqlite3"

    async def act(self, operation: str, given: Mapping[str, Any], **members: Any) -> dict[str, Any]:
        """Send one action and return the body of its answer, without the key that says what it is."""
        inner = {
            "id": new_id("act_"),
            "capability_id": f"cap:hermes_agent:primary:{operation}",
            "input": dict(given),
            "mode": "sync",
            "observability": {"trace_id": mark("trace")},
            **members,
        }
        [body] = (await self.send({"action": inner})).values()
        return dict(body)

    async def send(self, body: Mapping[str, Any], *, who: str = "requester") -> Any:
        message = envelope(dict(body), message_id=new_id("msg_"))
        return (await self.ask("POST", "/aip/v1/messages", who=who, json=message)).json()["body"]

    async def ask(self, method: str, path: str, *, who: str = "requester", **members: Any) -> httpx.Response:
        """Send one request under the token `who`, with markers in its headers; remember the answer."""
        headers = {"authorization": f"Bearer {mark(who)}", "x-marker": mark("header"), "user-agent": mark("header")}
        answer = await self.client.request(method, path, headers=headers | members.pop("headers", {}), **members)
        self.heard.append(str(answer.headers) + answer.text)
        return answer

    async def decide(self, parked: Mapping[str, Any], decision: str, reason: str) -> Any:
        """Let the reviewer decide."""
        approval_id = parked["output"]["approval_id"]
        answer = await self.ask("GET", f"/aip/v1/approvals/{approval_id}", who="reviewer")
        request = answer.json()["approval_record_view"]["request"]
        members = {
            "approval_id": approval_id,
            "decision": decision,
            "approver": {"id": "human:local:reviewer", "kind": "human"},
            "decided_at": wire.rfc3339(SystemClock().now_ms()),
            "reason": mark(reason),
            "decision_id": new_id("decision_"),
            "policy_hash": request["policy_hash"],
        }
        return await self.send({"approval_decision": members}, who="reviewer")


@asynccontextmanager
async def living(folder: Path) -> AsyncIterator[Life]:
    """Run a server of its own process in front of the double."""
    log = folder / "server.log"
    rows = [row_of(name, title=mark("title")) for name in ("s2", "s3")]
    async with StreamStub([row_of(SESSION), *rows]) as stub, Receiver() as hooks:
        _answers(stub)
        config = _settings(folder, stub.base_url, hooks.url)
        process = await asyncio.to_thread(start, ["serve", "--config", str(config)], log=log)
        try:
            assert process.stdout is not None
            ready = json.loads(await asyncio.to_thread(process.stdout.readline))
            async with httpx.AsyncClient(base_url=ready["aip_url"], trust_env=False, timeout=60) as client:
                yield Life(folder=folder, client=client, stub=stub, hooks=hooks, log=log)
        finally:
            process.terminate()
            await asyncio.to_thread(finish, process)


def _settings(folder: Path, endpoint_url: str, hook_url: str) -> Path:
    write_secret(folder / "hermes.key", mark("endpoint"))
    write_secret(folder / "notify.secret", mark("webhook"))
    write_secret(folder / "tokens" / "requester", mark("requester"))
    write_secret(folder / "tokens" / "reviewer", mark("reviewer"))
    (folder / "approval-authority.json").write_text(json.dumps(AUTHORITY), encoding="utf-8")
    every = ["action", "approval", "events", "receipt", "audit", "session"]
    scopes = [f"{name}:{right}" for name in every for right in ("read", "read:any", "write", "export", "sensitive")]
    tables = [
        "[server]\nport = 0\n",
        f'[[endpoints]]\nid = "primary"\nbase_url = "{endpoint_url}"\nkey_file = "hermes.key"\ntenant_id = "local"\n'
        'display_name = "Double"\n',
        *(
            f'[[tokens]]\nfile = "tokens/{name}"\nprincipal = "{principal}"\ntenant = "local"\n'
            f"scopes = {json.dumps([*scopes, 'metrics:read:any'])}\n" + ("" if name == "requester" else "invoke = []\n")
            for name, principal in (("requester", "agent:local:requester"), ("reviewer", "human:local:reviewer"))
        ),
        '[store]\ndsn = "data/aip.sqlite3"\n',
        '[approvals]\nauthority_file = "approval-authority.json"\n',
        '[log]\nlevel = "debug"\nformat = "json"\n',
        f'[notify]\nurl = "{hook_url}"\nsecret_file = "notify.secret"\n',
    ]
    return write_settings(folder / "aip-hermes.toml", "\n".join(tables))


def _answers(stub: StreamStub) -> None:
    """Let the endpoint put markers into everything that it says."""
    said = {
        "role": "assistant",
        "content": mark("reply"),
        "reasoning": mark("reasoning"),
        "tool_calls": [{"id": "call_1", "function": {"name": "x", "arguments": mark("toolargs")}}],
    }
    result = {"role": "tool", "content": mark("toolresult"), "tool_call_id": "call_1"}
    turn = {"object": "hermes.session.chat.completion", "session_id": SESSION, "message": said, "usage": {}}
    listed = [{"role": "user", "content": mark("message")}, said, result]

    def chat(_request: object) -> Reply:
        stub.rows[SESSION]["message_count"] += 2
        return reply_json(turn)

    stub.on("POST", f"/{SESSION}/chat", chat)
    stub.on("POST", f"/{SESSION}/chat/stream", lambda _request: reply_stream(_stream()))
    stub.on("GET", f"/{SESSION}/messages", reply_json({"object": "list", "session_id": SESSION, "data": listed}))
    stub.on("GET", "/runs/run_1/events", reply_stream(_run()))
    complaint = f"{mark('complaint')} Authorization: Bearer {mark('quoted')} key {mark('endpoint')}"
    stub.on("POST", "/s2/chat", reply_error(400, "bad_request", complaint))
    page = f"<html>{mark('page')}</html>".encode()
    stub.on("POST", "/s3/chat", Reply(status=502, body=page, headers={"content-type": "text/html"}))
    stub.on("PATCH", "/s3", Reply(status=200, body=b"{}" * 64, behaviour="cut"))


def _stream() -> bytes:
    tool = {"tool_name": "terminal", "session_id": SESSION}
    events: list[tuple[str, dict[str, Any]]] = [
        ("run.started", {"user_message": {"role": "user", "content": mark("message")}, "session_id": SESSION}),
        ("message.started", {"message": {"id": "msg_1", "role": "assistant"}, "session_id": SESSION}),
        ("tool.progress", {"tool_name": "_thinking", "delta": mark("reasoning"), "session_id": SESSION}),
        ("tool.started", {**tool, "preview": mark("toolargs"), "args": {"command": mark("toolargs")}}),
        ("tool.completed", {**tool, "result": mark("toolresult")}),
        ("assistant.delta", {"message_id": "msg_1", "delta": mark("reply"), "session_id": SESSION}),
        ("assistant.completed", {"session_id": SESSION, "content": mark("reply"), "completed": True}),
        ("run.completed", {"session_id": SESSION, "messages": [{"role": "assistant", "content": mark("reply")}]}),
        ("done", {"session_id": SESSION}),
    ]
    return b"".join(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in events)


def _run() -> bytes:
    return told(
        ("tool.started", {"tool": "terminal", "preview": mark("runtext")}),
        ("tool.completed", {"tool": "terminal", "result": mark("runtext")}),
        ("run.completed", {"output": mark("runtext"), "usage": {"total_tokens": 7}}),
    )
