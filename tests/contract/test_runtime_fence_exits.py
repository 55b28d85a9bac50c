"""Every way out of an action, and what its key says the moment after: the result, or nothing at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import MessageContext, Runtime, RuntimeLimits
from tests.support.runtime_connector import (
    ScriptedConnector,
    ScriptedCredential,
    ScriptedRejected,
    ScriptedTemporary,
)
from tests.support.runtime_queue import ended, owner
from tests.support.runtime_site import Crash, Site, action, ask, decision, reviewer

Exit = Callable[[Site, Runtime], Awaitable[None]]
KEY = "K"


async def send(site: Site, runtime: Runtime, operation: str = "session_create", **members: Any) -> wire.ActionResult:
    return await site.submit(runtime, action(operation, idempotency_key=KEY, **members), owner())


def failing(step: str, failure: Exception) -> Exit:
    async def leave(site: Site, runtime: Runtime) -> None:
        site.connector.failures[step] = failure
        await send(site, runtime)
        site.connector.failures.clear()

    return leave


async def invalid(site: Site, runtime: Runtime) -> None:
    await send(site, runtime, input={"body": {"id": "a/b"}})


async def succeeds(site: Site, runtime: Runtime) -> None:
    await send(site, runtime)


async def denied(site: Site, runtime: Runtime) -> None:
    _, request = await ask(site, runtime, idempotency_key=KEY)
    await runtime.decide(decision(request, decision="denied"), reviewer())


async def expires(site: Site, runtime: Runtime) -> None:
    await ask(site, runtime, idempotency_key=KEY)
    site.clock.advance(900_000)


async def parked_cancelled(site: Site, runtime: Runtime) -> None:
    given, _ = await ask(site, runtime, idempotency_key=KEY)
    await runtime.cancel(given.id, owner())


async def overruns(site: Site, runtime: Runtime) -> None:
    async def never(_: Call) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    site.connector.send = never
    sending = asyncio.create_task(send(site, runtime))
    await site.clock.until_asleep(61)
    site.clock.advance(61_000)
    await sending


async def waits_too_long(site: Site, runtime: Runtime) -> None:
    """The one place of the queue is taken; the action behind it ends when its time comes."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Answer:
        begun.set()
        await go_on.wait()
        return Answer(output={})

    site.connector.send = slow
    await runtime.submit(action("session_chat", mode="async"), owner(), MessageContext())
    await begun.wait()
    given = action("session_create", mode="async", idempotency_key=KEY)
    await runtime.submit(given, owner(), MessageContext())
    await site.clock.until_asleep(10)
    site.clock.advance(10_000)
    await ended(runtime, given.id)
    go_on.set()


EXITS = [
    pytest.param(succeeds, "completed", id="success"),
    pytest.param(invalid, None, id="validation error"),
    pytest.param(failing("prepare", ScriptedRejected("closed")), "failed", id="refused when read"),
    pytest.param(failing("prepare", ScriptedTemporary("down")), None, id="unreadable for now"),
    pytest.param(failing("send", ScriptedRejected("in use")), "failed", id="final failure"),
    pytest.param(failing("send", ScriptedTemporary("refused")), None, id="retryable failure"),
    pytest.param(failing("send", ScriptedTemporary("lost", uncertain=True)), "failed", id="uncertain failure"),
    pytest.param(failing("send", ScriptedCredential("refused")), None, id="cause outside the request"),
    pytest.param(failing("send", ZeroDivisionError()), "failed", id="broken handler"),
    pytest.param(overruns, "failed", id="deadline"),
    pytest.param(denied, "failed", id="denial"),
    pytest.param(expires, "failed", id="expiry"),
    pytest.param(parked_cancelled, "cancelled", id="cancel while it waits for a decision"),
    pytest.param(waits_too_long, None, id="queue delay"),
]


@pytest.mark.requirement("fence:exit:at-once")
@pytest.mark.parametrize(("leave", "answers"), EXITS)
async def test_a_key_answers_or_is_free_the_moment_its_action_ends(
    tmp_path: Path, leave: Exit, answers: str | None
) -> None:
    """answers: the status that another submission of the key gets; None where the key is free and it runs."""
    connector = ScriptedConnector(queueing=frozenset({"session_chat", "session_create"}))
    site = Site(tmp_path, connector=connector, limits=RuntimeLimits(queue_width=1))
    operation = "session_delete" if leave in (denied, expires, parked_cancelled) else "session_create"
    async with site.open() as runtime, asyncio.timeout(30):
        await leave(site, runtime)
        sends = len(site.connector.sends)
        site.connector.send = ScriptedConnector().send
        result = await send(site, runtime, operation)
    replayed = isinstance(result.output, dict) and result.output.get("idempotent_replay", False)
    assert (result.status, replayed) == (answers or "completed", answers is not None)
    assert len(site.connector.sends) == sends + (answers is None)


@pytest.mark.requirement("fence:exit:at-once")
@pytest.mark.parametrize(
    ("point", "answers"),
    [
        ("after_claim", None),
        ("after_lock", None),
        ("after_prepare", None),
        ("after_intent", "failed"),
        ("after_answer", "failed"),
        ("before_settle", "failed"),
        ("after_settle", "completed"),
    ],
)
async def test_a_key_answers_or_is_free_as_soon_as_the_store_is_opened_after_a_crash(
    tmp_path: Path, point: str, answers: str | None
) -> None:
    site = Site(tmp_path)
    site.faults.point = point
    async with site.open() as runtime:
        with contextlib.suppress(Crash):
            await send(site, runtime, "session_fork")
    assert site.faults.point is None
    sends = len(site.connector.sends)
    async with site.open() as runtime, asyncio.timeout(30):
        result = await send(site, runtime, "session_fork")
    replayed = isinstance(result.output, dict) and result.output.get("idempotent_replay", False)
    assert (result.status, replayed) == (answers or "completed", answers is not None)
    assert len(site.connector.sends) == sends + (answers is None)
