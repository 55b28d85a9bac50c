"""Work that ends, is cancelled or is waited for at each turn of the loop at which something else happens."""

from __future__ import annotations

import asyncio

import pytest

from aip_hermes.ports import SystemClock
from aip_hermes.runtime.background import Background
from aip_hermes.runtime.waiting import within

TURNS = range(12)


async def _ended_after(turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return turns


async def _failing_after(turns: int) -> None:
    await _ended_after(turns)
    raise ValueError("what nobody waits for")


@pytest.mark.requirement("runtime:background:ends-cleanly")
@pytest.mark.parametrize("turns", TURNS)
async def test_closing_is_clean_whenever_the_last_work_ends(turns: int) -> None:
    background = Background(SystemClock())
    background.start(_ended_after(turns))
    async with asyncio.timeout(30):
        await background.aclose(wait_ms=0)


@pytest.mark.requirement("runtime:background:ends-cleanly")
@pytest.mark.parametrize("turns", TURNS)
async def test_who_waits_hears_of_work_that_was_cancelled_at_any_turn(turns: int) -> None:
    background = Background(SystemClock())
    waiter = asyncio.create_task(background.outlast(_ended_after(5)))
    await _ended_after(1)  # the waiter's first: it has made the task, which has not begun
    work = asyncio.all_tasks() - {waiter, asyncio.current_task()}
    await _ended_after(turns)
    for task in work:
        task.cancel()
    async with asyncio.timeout(30):
        [outcome] = await asyncio.gather(waiter, return_exceptions=True)
    assert outcome == 5 or isinstance(outcome, asyncio.CancelledError)


@pytest.mark.requirement("runtime:background:ends-cleanly")
@pytest.mark.parametrize("turns", TURNS)
async def test_a_failure_that_ends_with_its_waiter_is_no_complaint_of_the_loop(turns: int) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
    waiter = asyncio.create_task(within(30, _failing_after(3), clock=SystemClock()))
    await _ended_after(1 + turns)
    waiter.cancel()
    [outcome] = await asyncio.gather(waiter, return_exceptions=True)
    assert isinstance(outcome, ValueError | asyncio.CancelledError)
    await _ended_after(5)
    assert complaints == []
