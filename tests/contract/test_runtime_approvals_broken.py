"""An approval that can't be ended: it keeps no other one from its end, and nobody from an answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes import wire
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime
from tests.support.runtime_site import Site, ask, decision, error_code, requester, reviewer

LIFE_MS = 900_000

REFUSED_BY_THE_STORE = """CREATE TRIGGER broken BEFORE UPDATE ON approvals WHEN OLD.action_id = '{id}'
BEGIN SELECT RAISE(ABORT, 'broken'); END"""
UNREADABLE = "UPDATE actions SET correlation_id = x'00' WHERE action_id = '{id}'"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def ask_twice(site: Site, runtime: Runtime) -> tuple[wire.Action, wire.Action, wire.ApprovalRequest]:
    """Return the action that will break, another one, and what that one waits for."""
    broken, _ = await ask(site, runtime, idempotency_key="A")
    site.clock.advance(1)
    other, request = await ask(site, runtime, idempotency_key="B")
    return broken, other, request


async def statuses(site: Site) -> list[object]:
    return [row["status"] for row in await site.rows("SELECT status FROM approvals ORDER BY created_at, rowid")]


@pytest.mark.requirement("approval:expiry:alone")
@pytest.mark.parametrize("how", [REFUSED_BY_THE_STORE, UNREADABLE])
async def test_the_clock_ends_the_others_and_rests(site: Site, how: str) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        broken, other, _ = await ask_twice(site, runtime)
        await site.edit(how.format(id=broken.id))
        async with runtime.watching(other.id, requester()) as changed:
            site.clock.advance(LIFE_MS)
            await changed.wait()
        await site.clock.until_asleep(30)
    assert await statuses(site) == ["pending", "expired"]


@pytest.mark.requirement("approval:expiry:alone")
@pytest.mark.parametrize("how", [REFUSED_BY_THE_STORE, UNREADABLE])
@pytest.mark.parametrize("begun_again", [True, False])
async def test_reads_are_answered_and_a_start_succeeds(site: Site, how: str, begun_again: bool) -> None:
    async with site.open() as runtime:
        broken, other, request = await ask_twice(site, runtime)
        await site.edit(how.format(id=broken.id))
        if not begun_again:
            site.clock.advance(LIFE_MS)
            await look(runtime, other, request)
    if begun_again:
        site.clock.advance(LIFE_MS)
        async with site.open() as runtime:
            await look(runtime, other, request)
    assert await statuses(site) == ["pending", "expired"]


async def look(runtime: Runtime, other: wire.Action, request: wire.ApprovalRequest) -> None:
    """Ask whatever ends approvals first, twice: what failed once is not met as something new."""
    for _ in range(2):
        listed = await runtime.approvals(reviewer())
        assert [view.status for view in listed.approvals] == ["pending", "expired"]
        assert (await runtime.status(other.id, requester())).state == "failed"
        assert error_code(await runtime.result(other.id, requester())) == "policy.approval_expired"
        assert (await runtime.approval(request.id, reviewer())).status == "expired"


@pytest.mark.requirement("approval:expiry:alone")
async def test_what_was_broken_for_a_while_ends_when_it_is_whole_again(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        broken, other, _ = await ask_twice(site, runtime)
        await site.edit(REFUSED_BY_THE_STORE.format(id=broken.id))
        async with runtime.watching(other.id, requester()) as changed:
            site.clock.advance(LIFE_MS)
            await changed.wait()
        await site.clock.until_asleep(30)
        await site.edit("DROP TRIGGER broken")
        async with runtime.watching(broken.id, requester()) as changed:
            site.clock.advance(30_000)
            await changed.wait()
    assert await statuses(site) == ["expired", "expired"]


HALF = "UPDATE approvals SET request = '{{\"id\": 1}}' WHERE action_id = '{id}'"
TORN = "UPDATE approvals SET request = substr(request, 1, 40) WHERE action_id = '{id}'"


@pytest.mark.requirement("approval:unreadable-said")
@pytest.mark.parametrize("how", [UNREADABLE, HALF, TORN])
async def test_a_decision_on_what_can_not_be_read_is_refused_for_that_and_changes_nothing(site: Site, how: str) -> None:
    async with site.open() as runtime:
        broken, request = await ask(site, runtime, idempotency_key="A")
        await site.edit(how.format(id=broken.id))
        for verdict in ("approved", "denied"):
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request, decision=verdict), reviewer())
            assert (refused.value.code, refused.value.retryable) == ("approval.unreadable", False)
            assert refused.value.details == {"approval_id": request.id}
    assert await statuses(site) == ["pending"]
    assert site.connector.sends == []


@pytest.mark.requirement("approval:unreadable-said")
@pytest.mark.parametrize("how", [HALF, TORN])
async def test_a_list_goes_on_without_what_can_not_be_read_and_who_asks_for_it_is_told(site: Site, how: str) -> None:
    async with site.open() as runtime:
        broken, hidden = await ask(site, runtime, idempotency_key="A")
        _, other = await ask(site, runtime, idempotency_key="B")
        await site.edit(how.format(id=broken.id))
        with capture_logs() as logs:
            for by in (reviewer(), requester()):
                listed = await runtime.approvals(by)
                assert [view.request.id for view in listed.approvals] == [other.id]
                with pytest.raises(RequestRefused) as refused:
                    await runtime.approval(hidden.id, by)
                assert refused.value.code == "approval.unreadable"
        said = [entry for entry in logs if entry["event"] == "approval.unreadable"]
        assert {entry["approval_id"] for entry in said} == {hidden.id}
        assert all("s1" not in repr(entry) for entry in said)
