"""Two tenants on one runtime: queue, message ids and cursors of one say and do nothing to the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.database import Database
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Caller, MessageContext, Runtime, RuntimeLimits
from aip_hermes.runtime.failures import CursorExpired
from aip_hermes.runtime.retention import prune
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from tests.support.runtime_site import Site, action, requester

SCOPES = frozenset({"action:read", "action:write", "events:read"})
WIDTH = RuntimeLimits().queue_width


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        site = Site(tmp_path)
        site.connector.tenant = None
        site.connector.queueing = frozenset({"session_chat"})
        yield site


def of(tenant: str) -> Caller:
    return requester(tenant=tenant, scopes=SCOPES)


async def queue(runtime: Runtime, tenant: str, session: str) -> str:
    given = action("session_chat", mode="async", input={"session_id": session, "message": "hi"})
    assert isinstance(await runtime.submit(given, of(tenant), MessageContext()), wire.Ack)
    return given.id


async def ended(runtime: Runtime, tenant: str, action_id: str) -> str:
    async with asyncio.timeout(30), runtime.watching(action_id, of(tenant)) as changed:
        while (status := await runtime.status(action_id, of(tenant))).state in ("queued", "running"):
            changed.clear()
            await asyncio.wait([asyncio.ensure_future(changed.wait())], timeout=0.1)
    return str(status.state)


@pytest.mark.requirement("tenants:queue:apart")
async def test_a_queue_full_of_one_tenants_slow_turns_holds_up_nobody_elses(site: Site) -> None:
    go_on = asyncio.Event()

    async def send(call: Call) -> Answer:
        if call.input["session_id"] != "quick":
            await go_on.wait()
        return Answer(output={"ok": True})

    site.connector.send = send
    async with site.open() as runtime:
        try:
            slow = [await queue(runtime, "tenant-a", f"s{number}") for number in range(3 * WIDTH)]
            quick = await queue(runtime, "tenant-b", "quick")
            assert await ended(runtime, "tenant-b", quick) == "completed"
            states = [(await runtime.status(one, of("tenant-a"))).state for one in slow]
            assert states.count("running") <= WIDTH
        finally:
            go_on.set()
        assert {await ended(runtime, "tenant-a", one) for one in slow} == {"completed"}


@pytest.mark.requirement("queue:clock:set-back")
async def test_what_was_queued_before_the_clock_was_set_back_runs(site: Site) -> None:
    site.limits = RuntimeLimits(queue_width=0)
    async with site.open() as runtime:
        waiting = await queue(runtime, "tenant-a", "s1")
    site.clock.advance(-3_600_000)
    site.limits = RuntimeLimits()
    async with site.open() as runtime:
        assert await ended(runtime, "tenant-a", waiting) == "completed"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("tenants:messages:apart")
async def test_a_message_id_of_one_tenant_is_free_for_another(site: Site) -> None:
    sent = site.clock.now_ms()
    async with site.open() as runtime:
        for tenant in ("tenant-a", "tenant-b"):
            await runtime.claim_message("msg_1", sent, of(tenant))
            with pytest.raises(RequestRefused) as refused:
                await runtime.claim_message("msg_1", sent, of(tenant))
            assert refused.value.code == "replay.message_id"


async def cursor_is_taken(runtime: Runtime, tenant: str, place: int) -> bool:
    try:
        await runtime.records.events(of(tenant), cursor=f"evt_cursor_{place}")
    except CursorExpired:
        return False
    return True


@pytest.mark.requirement("tenants:cursors:apart")
async def test_a_forged_cursor_tells_nothing_of_another_tenants_events(site: Site) -> None:
    async with site.open() as runtime:
        await site.submit(runtime, action(idempotency_key="k"), of("tenant-b"))
        taken = [await cursor_is_taken(runtime, "tenant-b", place) for place in range(12)]
        for number in range(5):
            await site.submit(runtime, action(idempotency_key=f"k{number}"), of("tenant-a"))
        assert [await cursor_is_taken(runtime, "tenant-b", place) for place in range(12)] == taken


@pytest.mark.requirement("tenants:cursors:apart")
async def test_pruning_one_tenants_events_ends_no_cursor_of_another(site: Site) -> None:
    async with site.open() as runtime:
        await site.submit(runtime, action("session_chat"), of("tenant-b"))
        cursor = (await runtime.records.events(of("tenant-b"))).next_cursor
        for _ in range(3):
            await site.submit(runtime, action("session_chat"), of("tenant-a"))
        async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
            site.clock.advance(1)
            pruned = await prune(database, older_than_ms=0, clock=site.clock)
        assert pruned.rows["events"] > 1
        assert (await runtime.records.events(of("tenant-b"), cursor=cursor)).events == []
