"""What happens when the store can't be written."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.database import StoreRefused, StoreUnavailable
from tests.support.runtime_site import Site, action, requester


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with capture_logs():
        yield Site(tmp_path)


def forbid(site: Site, table: str, operation: str) -> None:
    """Make the store refuse a kind of write, as a full disk does."""
    with sqlite3.connect(site.path) as raw:
        raw.execute(f"CREATE TRIGGER refuse BEFORE {operation} ON {table} BEGIN SELECT json('disk is full'); END")
    raw.close()


def allow(site: Site) -> None:
    with sqlite3.connect(site.path) as raw:
        raw.execute("DROP TRIGGER refuse")
    raw.close()


@pytest.mark.requirement("runtime:fence:every-exit-settles")
async def test_a_result_that_could_not_be_stored_is_settled_as_soon_as_it_can(site: Site) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def send(call: Call) -> Answer:
        entered.set()
        await release.wait()
        return Answer(output={"n": 1})

    site.connector.send = send
    given = action("session_chat", idempotency_key="K")
    async with site.open() as runtime, asyncio.timeout(30):
        running = asyncio.create_task(site.submit(runtime, given))
        await entered.wait()
        forbid(site, "events", "INSERT")
        release.set()
        await site.clock.until_asleep(0.1)
        site.clock.advance(5_000)
        with pytest.raises(StoreUnavailable):
            await running
        assert (await runtime.status(given.id, requester())).state == "running"
        allow(site)
        while (await runtime.status(given.id, requester())).state == "running":
            site.clock.advance(200)
        assert (await site.submit(runtime, given)).status == "completed"
    assert len(site.connector.sends) == 1


async def test_an_intent_that_could_not_be_recorded_is_a_certain_failure(site: Site) -> None:
    async with site.open() as runtime, asyncio.timeout(30):
        given = action("session_chat", idempotency_key="K")
        warm = await site.submit(runtime, action("session_chat"))
        assert warm.status == "completed"
        with sqlite3.connect(site.path) as raw:
            raw.execute(
                "CREATE TRIGGER refuse BEFORE UPDATE OF intent_at ON actions BEGIN SELECT json('disk is full'); END"
            )
        raw.close()
        failed = await site.submit(runtime, given)
        allow(site)
        assert failed.error is not None
        assert (failed.error.code, failed.error.retryable, failed.error.details) == ("runtime.interrupted", True, None)
        assert (await site.submit(runtime, given)).status == "completed"
    assert len(site.connector.sends) == 2


async def test_a_file_of_somebody_else_is_refused_and_the_folder_is_free_again(site: Site) -> None:
    with sqlite3.connect(site.path) as raw:
        raw.execute("CREATE TABLE messages (id TEXT)")
    raw.close()
    for _ in range(2):
        with pytest.raises(StoreRefused):
            async with site.open():
                pass


@pytest.mark.requirement("server:health:liveness")
async def test_a_runtime_whose_store_is_gone_is_not_ready(site: Site) -> None:
    async with site.open() as runtime:
        assert await runtime.health() == {
            "ready": True,
            "store": {"ready": True},
            "endpoints": {"primary": {"ready": True, "detail": "answers"}},
        }
    found = await runtime.health()
    assert (found["ready"], found["store"], found["endpoints"]["primary"]["ready"]) == (False, {"ready": False}, True)
