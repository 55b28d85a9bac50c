"""A client process that submits one key many times at once: `python -m tests.support.key_race URL KEY COUNT`.

It prints `{"ready": COUNT}`, waits for a line on stdin, sends COUNT actions in parallel, and prints their results:
`{"told": [{"status", "action_id", "code", "session", "replay"}, …]}`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx

from aip_hermes.cli.ready import announce
from tests.support.server_serving import REQUESTER, envelope

__all__ = ["SESSION"]

SESSION = "raced"


def _submission(key: str, name: str) -> dict[str, Any]:
    action = {
        "id": f"act_{name}",
        "capability_id": "cap:hermes_agent:primary:session_create",
        "input": {"body": {"id": SESSION}},
        "mode": "sync",
        "idempotency_key": key,
    }
    return envelope({"action": action}, message_id=f"msg_{name}")


def _told(reply: dict[str, Any]) -> dict[str, Any]:
    result = reply["body"]["action_result"]
    output = result.get("output") or {}
    return {
        "status": result["status"],
        "action_id": result["action_id"],
        "code": result.get("error", {}).get("code"),
        "session": output.get("session", {}).get("id"),
        "replay": output.get("idempotent_replay", False),
    }


async def _race(url: str, key: str, count: int) -> list[dict[str, Any]]:
    names = [f"{key}_{os.getpid()}_{number}" for number in range(count)]
    async with httpx.AsyncClient(base_url=url, headers=REQUESTER, trust_env=False, timeout=60) as client:
        announce({"ready": count})
        await asyncio.to_thread(sys.stdin.readline)
        replies = await asyncio.gather(
            *(client.post("/aip/v1/messages", json=_submission(key, name)) for name in names)
        )
    return [_told(reply.json()) for reply in replies]


if __name__ == "__main__":
    announce({"told": asyncio.run(_race(sys.argv[1], sys.argv[2], int(sys.argv[3])))})
