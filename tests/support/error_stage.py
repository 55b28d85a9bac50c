"""A served runtime on which a test provokes an error, and reads it from whatever carries it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import Authorities, RuntimeLimits
from tests.support.runtime_connector import ScriptedConnector, capability
from tests.support.runtime_site import authority
from tests.support.server_serving import envelope
from tests.support.server_site import write_secret
from tests.support.server_streams import streaming_server

__all__ = ["Stage", "staged"]

TOKENS: Final = "".join(
    f'\n[[tokens]]\nfile = "tokens/{name}"\nprincipal = "{principal}"\ntenant = "local"\nscopes = {scopes}\n'
    for name, principal, scopes in (
        ("mate", "agent:local:mate", '["action:read", "action:write"]'),
        (
            "outsider",
            "human:local:outsider",
            '["approval:read", "approval:export", "approval:sensitive", "session:read"]',
        ),
    )
)
INPUTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "session_create": {"body": {"id": "s1"}},
    "session_chat": {"session_id": "s1", "message": "hi"},
}
_numbers = count(1)


@dataclass
class Stage:
    """client: speaks as the requester unless told otherwise. go_on: what the provider waits for, where it is held."""

    client: httpx.AsyncClient
    folder: Path
    connector: ScriptedConnector
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def post(self, body: dict[str, Any], *, who: str = "requester", **members: Any) -> httpx.Response:
        sent = {**envelope(body, message_id=f"msg_{next(_numbers)}"), **members}
        return await self.client.post("/aip/v1/messages", json=sent, headers=bearer(who))

    async def act(self, operation: str = "session_get", *, who: str = "requester", **members: Any) -> httpx.Response:
        plain = {
            "id": f"act_{next(_numbers)}",
            "capability_id": capability(operation),
            "input": INPUTS.get(operation, {"session_id": "s1"}),
        }
        given = {name: value for name, value in {**plain, **members}.items() if value is not None}
        return await self.post({"action": given}, who=who)

    async def get(self, path: str, *, who: str = "requester") -> httpx.Response:
        return await self.client.get(path, headers=bearer(who))

    async def pending(self) -> dict[str, Any]:
        """Ask for an approval; return its request."""
        answered = await self.act("session_delete", idempotency_key="k1")
        request: dict[str, Any] = answered.json()["body"]["action_result"]["output"]["approval_request"]
        return request

    async def decide(self, request: Mapping[str, Any], *, who: str = "reviewer", **changes: Any) -> httpx.Response:
        """Decide as `who`, who names itself; None leaves a member out."""
        principal = (await self.get("/aip/v1/me", who=who)).json()["principal"]
        members = {
            "approval_id": request["id"],
            "decision": "approved",
            "approver": {"id": principal["id"], "kind": principal["kind"]},
            "decided_at": "2030-01-01T00:00:00Z",
            "reason": "The case is closed.",
            "decision_id": "decision:1",
            "policy_hash": request["policy_hash"],
        }
        given = {name: value for name, value in {**members, **changes}.items() if value is not None}
        return await self.post({"approval_decision": given}, who=who)

    async def result(self, action_id: str) -> httpx.Response:
        return await self.get(f"/aip/v1/actions/{action_id}/result?wait_ms=20000")

    def change(self, statement: str) -> None:
        """Change the store behind the server's back."""
        with closing(sqlite3.connect(self.folder / "data" / "runtime.sqlite3")) as raw:
            raw.execute(statement)
            raw.commit()

    def hold(self) -> None:
        """Let the provider answer nobody before `go_on`."""

        async def send(_: Call) -> Answer:
            self.entered.set()
            await self.go_on.wait()
            return Answer(output={"ok": True})

        self.connector.send = send


def bearer(who: str) -> dict[str, str]:
    return {"authorization": f"Bearer {who}-0123456789"}


@asynccontextmanager
async def staged(folder: Path, limits: RuntimeLimits) -> AsyncIterator[Stage]:
    """Serve a scripted provider for three callers and a reviewer of one tenant."""
    for name in ("mate", "outsider"):
        write_secret(folder / "tokens" / name, f"{name}-0123456789")
    connector = ScriptedConnector(tenant="local", queueing=frozenset({"session_chat"}))
    authorities = Authorities(
        tuple(authority(who, tenant_id="local") for who in ("human:local:reviewer", "agent:local:requester"))
    )
    async with streaming_server(folder, connector, extra=TOKENS, limits=limits, authorities=authorities) as client:
        stage = Stage(client=client, folder=folder, connector=connector)
        try:
            yield stage
        finally:
            stage.go_on.set()
