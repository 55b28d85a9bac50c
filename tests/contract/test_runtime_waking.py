"""Whoever follows an action is woken by its end at once, wherever that comes from: nothing is left to the next look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.runtime import Runtime
from tests.support.runtime_queue import owner, queued, queueing_site
from tests.support.runtime_site import Site, action, approval_request, ask, authority, decision, requester, reviewer

Happens = Callable[[Site, Runtime, wire.ApprovalRequest], Awaitable[object]]
LIFE_MS = 900_000


async def denied(_: Site, runtime: Runtime, request: wire.ApprovalRequest) -> object:
    return await runtime.decide(decision(request, decision="denied"), reviewer())


async def approved(_: Site, runtime: Runtime, request: wire.ApprovalRequest) -> object:
    return await runtime.decide(decision(request), reviewer())


async def cancelled(_: Site, runtime: Runtime, request: wire.ApprovalRequest) -> object:
    return await runtime.cancel(request.action_id, owner())


async def expired_by_a_reader(site: Site, runtime: Runtime, _: wire.ApprovalRequest) -> object:
    site.clock.advance(LIFE_MS)
    return await runtime.approvals(reviewer())


@pytest.mark.requirement("runtime:waking:at-once")
@pytest.mark.parametrize("happens", [denied, approved, cancelled, expired_by_a_reader])
async def test_what_becomes_of_a_parked_action_wakes_who_follows_it(tmp_path: Path, happens: Happens) -> None:
    site = Site(tmp_path, authorities=(authority(), authority("human:example:second")))
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
        async with runtime.watching(given.id, requester()) as one, runtime.watching_log(requester()) as all_of_them:
            await happens(site, runtime, request)
            assert one.is_set()
            assert all_of_them.is_set()


@pytest.mark.requirement("runtime:waking:at-once")
async def test_an_action_that_is_parked_or_cancelled_in_the_queue_wakes_who_follows_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.open() as runtime:
        given = action("session_delete", idempotency_key="D")
        async with runtime.watching(given.id, requester()) as changed:
            assert approval_request(await site.submit(runtime, given)).action_id == given.id
            assert changed.is_set()
    waiting = queueing_site(tmp_path / "queue")
    waiting.limits = type(waiting.limits)(queue_width=0)
    async with waiting.open() as runtime:
        queued_action = await queued(runtime)
        async with runtime.watching(queued_action.id, owner()) as changed:
            assert (await runtime.cancel(queued_action.id, owner())).status == "cancelled"
            assert changed.is_set()
