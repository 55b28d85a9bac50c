"""The yardstick of bench/overhead.py: the least that a governed relay does.

One starlette route: the envelope decoded, one durable row before a mutation, one call to the provider by httpx, one
durable row with the outcome, an envelope as the answer. No tokens, no schemas, no policy, no fence, no audit, no log.
Served by uvicorn with the same protocol and settings as our server. Arguments: the provider's URL, a new file.
Prints its port on stdout and serves until its stdin closes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

import aiosqlite
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KEEP = "INSERT INTO calls (action_id, state, content) VALUES (?, ?, ?)"


class Relay:
    """client: to the provider. store: WAL and synchronous=FULL, as ours."""

    def __init__(self, client: httpx.AsyncClient, store: aiosqlite.Connection) -> None:
        self._client = client
        self._store = store

    async def post(self, request: Request) -> Response:
        envelope = json.loads(await request.body())
        action = envelope["body"]["action"]
        if action["capability_id"].endswith(":session_create"):
            await self._keep(action["id"], "running", json.dumps(action))
            answer = await self._client.post("/api/sessions", json=action["input"]["body"])
        else:
            answer = await self._client.get(f"/api/sessions/{action['input']['session_id']}")
        result = {"action_id": action["id"], "status": "completed", "output": answer.json()}
        await self._keep(action["id"], "completed", json.dumps(result))
        return Response(_reply(envelope, {"action_result": result}), media_type="application/json")

    async def _keep(self, action_id: str, state: str, content: str) -> None:
        await self._store.execute(KEEP, (action_id, state, content))
        await self._store.commit()


def _reply(envelope: dict[str, Any], body: dict[str, Any]) -> bytes:
    return json.dumps(
        {
            "aip_version": "1.0",
            "message_type": "aip.core.v1.action_result",
            "message_id": f"msg_{uuid.uuid4().hex}",
            "sent_at": datetime.now(UTC).isoformat(),
            "in_response_to": envelope["message_id"],
            "body": body,
        }
    ).encode()


async def main(provider: str, file: str) -> None:
    async with (
        httpx.AsyncClient(base_url=provider, trust_env=False) as client,
        aiosqlite.connect(file) as store,
    ):
        for line in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE calls (id INTEGER PRIMARY KEY, action_id TEXT, state TEXT, content TEXT)",
        ):
            await store.execute(line)
        await store.commit()
        app = Starlette(routes=[Route("/aip/v1/messages", Relay(client, store).post, methods=["POST"])])
        # The protocol is named, else asyncio leaves Nagle's algorithm on and every answer waits 40 ms.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind(("127.0.0.1", 0))
            server = uvicorn.Server(
                uvicorn.Config(
                    app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, timeout_keep_alive=75
                )
            )
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            sys.stdout.write(f"{listener.getsockname()[1]}\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
