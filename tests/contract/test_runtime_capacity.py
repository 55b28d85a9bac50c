"""Limits of what runs and what waits: refused before anything is stored, and free again when something ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import MessageContext, Runtime, RuntimeLimits
from tests.support.runtime_connector import ScriptedRejected
from tests.support.runtime_site import CrashAt, Site, action, approval_request, caller, decision, requester, reviewer

Answered = wire.ActionResult | wire.Ack | RequestRefused


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        site = Site(tmp_path)
        site.connector.tenant = None
        site.connector.queueing = frozenset({"session_chat"})
        yield site


class Stage:
    """A provider that answers nobody before it is told to. entered: set by each call."""

    def __init__(self, site: Site) -> None:
        self.go_on, self.entered = asyncio.Event(), asyncio.Event()
        site.connector.send = self._send

    async def _send(self, call: Call) -> Answer:
        self.entered.set()
        await self.go_on.wait()
        return Answer(output={"ok": True})


async def submit(runtime: Runtime, given: wire.Action, tenant: str = "tenant-a") -> Answered:
    try:
        return await runtime.submit(given, requester(tenant=tenant), MessageContext())
    except RequestRefused as refused:
        return refused


def limit_of(answered: Answered) -> str | None:
    """Return the limit that was reached."""
    if not isinstance(answered, RequestRefused):
        return None
    assert (answered.code, answered.category, answered.retryable) == ("runtime.at_capacity", "temporary", True)
    assert answered.retry_after_ms is not None
    return str(answered.details["limit"])


async def stored(site: Site) -> tuple[int, int]:
    """Return how many actions and keys there are."""
    (row,) = await site.rows(
        "SELECT (SELECT COUNT(*) FROM actions) AS actions, (SELECT COUNT(*) FROM idempotency_keys) AS keys"
    )
    return row["actions"], row["keys"]


KINDS: list[tuple[str, dict[str, Any], str]] = [
    ("session_fork", {}, "running"),
    ("session_get", {}, "running"),
    ("session_chat", {"mode": "async"}, "queued"),
    ("session_delete", {}, "waiting"),
]


def some(operation: str, members: dict[str, Any], number: int) -> wire.Action:
    keyed = {} if operation in ("session_get", "session_chat") else {"idempotency_key": f"K{number}"}
    return action(operation, input=_input(operation, number), **keyed, **members)


def _input(operation: str, number: int) -> dict[str, Any]:
    session = {"session_id": f"s{number}"}
    return {**session, "message": "hi"} if operation == "session_chat" else session


@pytest.mark.requirement("runtime:capacity:refused")
@pytest.mark.parametrize(("operation", "members", "kind"), KINDS)
@pytest.mark.parametrize("own", [True, False])
async def test_at_most_as_many_are_taken_on_as_the_limit_says(
    site: Site, operation: str, members: dict[str, Any], kind: str, own: bool
) -> None:
    name = f"max_{kind}{'_per_tenant' if own else ''}"
    site.limits = replace(RuntimeLimits(queue_width=0 if kind == "queued" else 8), **{name: 3})
    stage = Stage(site)
    async with site.open() as runtime, asyncio.timeout(30):
        tasks = [asyncio.create_task(submit(runtime, some(operation, members, n))) for n in range(8)]
        done: set[asyncio.Task[Answered]] = set()
        while len(done) < (5 if kind == "running" else 8):
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            done = {task for task in tasks if task.done()}
            await asyncio.sleep(0)
        assert [limit_of(task.result()) for task in done].count(name) == 5
        other = asyncio.create_task(submit(runtime, some(operation, members, 9), "tenant-b"))
        if not own:
            assert limit_of(await other) == name
        stage.go_on.set()
        assert [limit_of(answered) for answered in await asyncio.gather(*tasks)].count(None) == 3
        assert limit_of(await other) == (None if own else name)
    assert (await stored(site))[0] == (4 if own else 3)
    assert (await stored(site))[1] == (0 if operation in ("session_get", "session_chat") else 4 if own else 3)


@pytest.mark.requirement("runtime:capacity:repeats")
async def test_repeats_are_answered_and_a_free_place_is_given_again(site: Site) -> None:
    site.limits = RuntimeLimits(max_waiting=1)
    async with site.open() as runtime:
        first = action("session_delete", idempotency_key="D1")
        pending = await site.submit(runtime, first)
        next_one = action("session_delete", idempotency_key="D2", input={"session_id": "s2"})
        assert limit_of(await submit(runtime, next_one)) == "max_waiting"
        assert (await site.submit(runtime, first)).status == "pending_approval"
        again = await site.submit(runtime, action("session_delete", idempotency_key="D1"))
        assert (again.action_id, again.status) == (first.id, "pending_approval")
        await runtime.decide(decision(approval_request(pending)), reviewer())
        assert (await site.submit(runtime, next_one)).status == "pending_approval"


@dataclass
class AskAt(CrashAt):
    """Lets another one ask at a point of the first one's way."""

    ask: Callable[[], Awaitable[None]] | None = None

    async def reach(self, point: str) -> None:
        if point == self.point and self.ask is not None:
            self.point = None
            await self.ask()


@pytest.mark.requirement("runtime:capacity:refused")
@pytest.mark.parametrize("point", ["after_claim", "after_park"])
@pytest.mark.parametrize(("name", "most"), [("max_waiting", 1), ("max_waiting", 2), ("max_waiting_per_tenant", 1)])
async def test_who_is_on_its_way_to_a_decision_is_counted_once(site: Site, point: str, name: str, most: int) -> None:
    site.limits, site.faults = replace(RuntimeLimits(), **{name: most}), AskAt(point)
    answered: list[str | None] = []
    async with site.open() as runtime, asyncio.timeout(30):

        async def ask() -> None:
            answered.append(limit_of(await submit(runtime, some("session_delete", {}, 2))))

        site.faults.ask = ask
        assert limit_of(await submit(runtime, some("session_delete", {}, 1))) is None
    assert answered == [name if most == 1 else None]


@pytest.mark.requirement("runtime:capacity:repeats")
async def test_who_could_not_ask_after_all_leaves_its_place(site: Site) -> None:
    site.limits = RuntimeLimits(max_waiting=1)
    site.connector.failures["describe"] = ScriptedRejected("no such session")
    async with site.open() as runtime, asyncio.timeout(30):
        for number in range(2):
            answered = await submit(runtime, some("session_delete", {}, number))
            assert isinstance(answered, wire.ActionResult)
            assert answered.status == "failed"


@pytest.mark.requirement("runtime:capacity:refused")
async def test_what_waits_is_counted_over_a_restart(site: Site) -> None:
    site.limits = RuntimeLimits(queue_width=0, max_queued_per_tenant=2)
    async with site.open() as runtime:
        for number in range(2):
            assert isinstance(await submit(runtime, some("session_chat", {"mode": "async"}, number)), wire.Ack)
    async with site.open() as runtime:
        late = some("session_chat", {"mode": "async"}, 3)
        assert limit_of(await submit(runtime, late)) == "max_queued_per_tenant"
        assert isinstance(await submit(runtime, late, "tenant-b"), wire.Ack)
        state = (await runtime.status(late.id, caller(scopes=frozenset({"action:read"})))).state
        assert state == "unknown"
