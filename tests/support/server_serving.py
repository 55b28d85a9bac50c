"""The composed server on a free port of this machine, with the settings that `init` writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from aip_hermes import wire
from aip_hermes.app import serve
from aip_hermes.ports import SystemClock
from aip_hermes.settings import Settings, render_template
from tests.support.server_site import write_secret, write_settings

__all__ = ["REQUESTER", "action", "envelope", "serving", "written_settings"]

REQUESTER: Final = {"authorization": "Bearer requester-0123456789"}
AUTHORITY: Final = [
    {
        "principal_id": "human:local:reviewer",
        "tenant_id": "local",
        "roles": [],
        "groups": [],
        "tenant_policies": ["hermes-session-approval"],
        "external_systems": [],
        "delegated_scopes": [],
        "revision": 1,
        "revoked": False,
    }
]


def written_settings(
    folder: Path,
    *,
    endpoint_url: str = "http://127.0.0.1:9/",
    endpoint_key: str = "hermes-key-0123456789",
    port: int = 0,
    store: str = "data/aip.sqlite3",
    extra: str = "",
) -> Settings:
    """Write what `init` writes, with short secrets, and load it."""
    write_secret(folder / "hermes.key", endpoint_key)
    write_secret(folder / "tokens" / "requester", "requester-0123456789")
    write_secret(folder / "tokens" / "reviewer", "reviewer-0123456789")
    (folder / "approval-authority.json").write_text(json.dumps(AUTHORITY), encoding="utf-8")
    text = render_template(port=port, endpoint_url=endpoint_url, store=store) + extra
    return Settings.load(write_settings(folder / "aip-hermes.toml", text))


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Event]]:
    """Serve in this process until the block ends or the event is set."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, on_ready=ready.set_result, stop=stop))
    try:
        async with asyncio.timeout(30):
            await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        async with httpx.AsyncClient(base_url=ready.result(), headers=REQUESTER, trust_env=False, timeout=30) as client:
            yield client, stop
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await task


def action(
    action_id: str, operation: str = "session_get", *, key: str | None = None, message_id: str | None = None
) -> dict[str, Any]:
    """Return an envelope, sent now, with an action on the endpoint's one session."""
    body = {
        "id": action_id,
        "capability_id": f"cap:hermes_agent:primary:{operation}",
        "input": {"session_id": "s"},
        "mode": "sync",
        **({} if key is None else {"idempotency_key": key}),
    }
    return envelope({"action": body}, message_id=message_id or f"msg_{action_id}")


def envelope(body: dict[str, Any], *, message_id: str) -> dict[str, Any]:
    """Return an envelope, sent now."""
    [key] = body
    return {
        "aip_version": "1.0",
        "message_type": wire.MESSAGE_TYPES[key],
        "message_id": message_id,
        "sent_at": wire.rfc3339(SystemClock().now_ms()),
        "body": body,
    }
