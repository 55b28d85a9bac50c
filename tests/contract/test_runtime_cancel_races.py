"""A cancel in the moments between two steps: just claimed, just about to send, just about to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.runtime import MessageContext, Runtime, RuntimeLimits
from aip_hermes.runtime.cancel_requests import LOOK_S
from aip_hermes.runtime.cancellation import RunningAction
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import CrashAt, Site, action, requester

WRITING = frozenset({"action:read", "action:write"})


def owner() -> Any:
    return requester(scopes=WRITING)


@dataclass
class HookAt(CrashAt):
    """Calls `hook` at the point instead of crashing there, once."""

    hook: Callable[[], Awaitable[None]] | None = None

    async def reach(self, point: str) -> None:
        if point == self.point and self.hook is not None:
            self.point = None
            await self.hook()


def cancelling(site: Site, runtime: Runtime, given: wire.Action) -> list[asyncio.Task[wire.ActionResult]]:
    """Cancel the action, from two clients, at the point of the site's faults; go on when both wait."""
    tasks: list[asyncio.Task[wire.ActionResult]] = []

    async def hook() -> None:
        tasks.extend(asyncio.create_task(runtime.cancel(given.id, owner(), reason="no")) for _ in range(2))
        await site.clock.until_asleep(LOOK_S, number=2)

    assert isinstance(site.faults, HookAt)
    site.faults.hook = hook
    return tasks


@pytest.mark.requirement("runtime:cancel:just-claimed")
@pytest.mark.parametrize("operation", ["session_chat", "session_create"])
async def test_a_cancel_between_the_claim_and_the_first_step_stops_it(tmp_path: Path, operation: str) -> None:
    site = Site(tmp_path, faults=HookAt("after_claim"))
    async with site.open() as runtime, asyncio.timeout(30):
        given = action(operation, idempotency_key="k1")
        cancels = cancelling(site, runtime, given)
        result = await site.submit(runtime, given)
        assert result.status == "cancelled"
        assert [(await cancel).wire() for cancel in cancels] == [result.wire()] * 2
        assert (await site.submit(runtime, action(operation, idempotency_key="k1"))).status == "cancelled"
    assert site.connector.sends == []


@pytest.mark.requirement("runtime:cancel:just-claimed")
async def test_a_cancel_before_it_is_acknowledged_takes_it_out_of_the_queue(tmp_path: Path) -> None:
    connector = ScriptedConnector(queueing=frozenset({"session_chat"}))
    site = Site(tmp_path, connector=connector, faults=HookAt("after_claim"), limits=RuntimeLimits(queue_width=0))
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat", mode="async")
        cancelled: list[str] = []

        async def cancel() -> None:
            cancelled.append((await runtime.cancel(given.id, owner())).status)

        site.faults.hook = cancel  # type: ignore[attr-defined]
        assert isinstance(await runtime.submit(given, owner(), MessageContext()), wire.Ack)
        assert cancelled == ["cancelled"]
        assert (await runtime.status(given.id, owner())).state == "cancelled"
    assert connector.sends == []


@pytest.mark.requirement("runtime:cancel:last-moment")
async def test_who_was_asked_in_time_never_begins_to_send(tmp_path: Path) -> None:
    site = Site(tmp_path, faults=HookAt("after_intent"))
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat")

        async def ask() -> None:
            # Without giving the loop a turn: the next step is the one that sends.
            running = runtime._footing.running.find(tenant="tenant-a", action_id=given.id)
            assert running is not None
            assert running.ask("no")

        site.faults.hook = ask  # type: ignore[attr-defined]
        result = await site.submit(runtime, given)
        assert (result.status, result.error and result.error.details["sent"]) == ("cancelled", False)  # type: ignore[index]
    assert site.connector.sends == []
    assert site.connector.seen("cancel") == 0


@pytest.mark.requirement("runtime:cancel:last-moment")
def test_asking_and_sending_exclude_each_other() -> None:
    running = RunningAction(cancellable=False, cancel_ms=5_000)
    assert running.begin_sending()
    assert not running.ask(None)
    running = RunningAction(cancellable=False, cancel_ms=5_000)
    assert running.ask(None)
    assert not running.begin_sending()
    assert running.phase == "before"
