"""What a runtime does beside its callers: loops that go on, work that is heard of, and an end in time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aip_hermes.runtime import Runtime
from aip_hermes.runtime.background import BROKEN_REST_S, Background
from aip_hermes.runtime.keeper import LOOK_S
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_site import Site, action


@pytest.mark.requirement("runtime:background:goes-on")
async def test_a_loop_that_breaks_is_logged_and_begins_again() -> None:
    clock, begun, again = ManualClock(), 0, asyncio.Event()

    async def run() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise ValueError("one row is broken")
        again.set()
        await clock.sleep(1)

    background = Background(clock)
    with capture_logs() as told:
        background.keep("queue", run)
        await clock.until_asleep(BROKEN_REST_S)
        clock.advance(5000)
        async with asyncio.timeout(30):
            await again.wait()
        await background.aclose(wait_ms=0)
    assert [(entry["event"], entry["loop"]) for entry in told] == [("runtime.loop_broken", "queue")]
    assert begun == 2


@pytest.mark.requirement("runtime:background:goes-on")
async def test_work_that_nobody_listens_to_says_what_broke_it() -> None:
    async def broken() -> None:
        raise ValueError("no")

    background = Background(ManualClock())
    with capture_logs() as told:
        await asyncio.wait((background.start_alone(broken()),))
        await asyncio.sleep(0)
    assert [(entry["event"], entry["error_type"]) for entry in told] == [("runtime.work_broken", "ValueError")]


@pytest.mark.requirement("runtime:background:goes-on")
async def test_text_is_erased_behind_a_result_that_could_not_be_read(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def change(runtime: Runtime, statement: str) -> None:
        await runtime._footing.database.write(lambda connection: connection.execute(statement))

    async with site.open() as runtime:
        await site.submit(runtime, action("session_chat"))
        await site.clock.until_asleep(LOOK_S)
        await change(runtime, "UPDATE actions SET result = 'broken' || result")
        site.clock.advance(86_400_000)
        await site.clock.until_asleep(BROKEN_REST_S)
        await change(runtime, "UPDATE actions SET result = substr(result, 7)")
        site.clock.advance(5000)
        await site.clock.until_asleep(LOOK_S)
        assert await site.rows("SELECT holds_text FROM actions") == [{"holds_text": 0}]


@pytest.mark.requirement("runtime:close:finishes-or-leaves")
async def test_what_still_runs_when_the_time_is_up_is_cut_off() -> None:
    clock = ManualClock()
    background = Background(clock)
    running = background.start(asyncio.Event().wait())
    closing = asyncio.create_task(background.aclose(wait_ms=1000))
    await clock.until_asleep(1)
    clock.advance(1000)
    async with asyncio.timeout(30):
        await closing
    assert running.cancelled()
