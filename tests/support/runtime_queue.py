"""Asynchronous actions on a scripted connector: submitted, followed to their end, looked at on their way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aip_hermes import wire
from aip_hermes.runtime import Caller, MessageContext, Runtime
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import Site, action, requester

__all__ = ["ended", "events_of", "owner", "queued", "queueing_site"]

WRITING = frozenset({"action:read", "action:write"})


def owner() -> Caller:
    return requester(scopes=WRITING)


def queueing_site(folder: Path, **script: Any) -> Site:
    """Return a site whose chat, create and get may be queued; of these only get may be tried again."""
    names = frozenset({"session_chat", "session_create", "session_get"})
    return Site(folder, connector=ScriptedConnector(queueing=names, **script))


async def queued(runtime: Runtime, operation: str = "session_chat", **members: Any) -> wire.Action:
    """Submit an asynchronous action and check its acknowledgement."""
    given = action(operation, mode="async", **members)
    answered = await runtime.submit(given, owner(), MessageContext())
    assert isinstance(answered, wire.Ack)
    assert answered.wire() == {
        "action_id": given.id,
        "status": "queued",
        "reason": "accepted for asynchronous execution",
        "queue": {"scheduler": "aip-runtime"},
    }
    return given


async def ended(runtime: Runtime, action_id: str) -> wire.ActionStatus:
    """Wait for the end."""
    async with asyncio.timeout(30):
        while True:
            status = await runtime.status(action_id, owner(), include_result=True)
            if status.state not in ("queued", "running"):
                return status


async def events_of(runtime: Runtime, action_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and data of an action's events."""
    page = await runtime.events(action_id, owner())
    return [(event.kind, event.data if isinstance(event.data, dict) else {}) for event in page.events]
