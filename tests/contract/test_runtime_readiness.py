"""Ready is said of a store that takes writes, and finding it out changes nothing."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aip_hermes.contract import Catalog
from aip_hermes.database import StoreUnavailable, obstacle_at
from aip_hermes.database.room import LEAST_FREE_BYTES, Obstacle
from aip_hermes.runtime import Authorities, Runtime
from aip_hermes.runtime.service import WRITE_WITHIN_S
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import requester


async def opened(folder: Path, clock: ManualClock, obstacles: list[Obstacle | None]) -> Runtime:
    connector = ScriptedConnector()
    return await Runtime.open(
        store=folder / "runtime.sqlite3",
        catalog=Catalog(connector.offers()),
        connectors=[connector],
        authorities=Authorities(),
        clock=clock,
        obstacle=lambda _: obstacles[0],
    )


async def ready(runtime: Runtime) -> tuple[bool, bool]:
    found = await runtime.health()
    return found["ready"], found["store"]["ready"]


@pytest.mark.requirement("server:ready:takes-writes")
async def test_a_file_system_that_takes_no_write_is_not_ready_and_is_again_when_it_does(tmp_path: Path) -> None:
    obstacles: list[Obstacle | None] = [None]
    async with await opened(tmp_path, ManualClock(), obstacles) as runtime:
        steps: tuple[tuple[Obstacle | None, bool], ...] = (
            (None, True), ("read_only", False), ("full", False), (None, True),
        )  # fmt: skip
        for obstacle, answer in steps:
            obstacles[0] = obstacle
            assert await ready(runtime) == (answer, answer)


@pytest.mark.requirement("server:ready:takes-writes")
async def test_a_store_that_another_program_keeps_from_writing_is_not_ready(tmp_path: Path) -> None:
    clock = ManualClock()
    async with asyncio.timeout(60), await opened(tmp_path, clock, [None]) as runtime:
        log = tmp_path / "runtime.sqlite3-wal"
        assert await ready(runtime) == (True, True)
        before = log.read_bytes()
        assert await ready(runtime) == (True, True)
        assert log.read_bytes() == before
        with closing(sqlite3.connect(tmp_path / "runtime.sqlite3", isolation_level=None)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            asking = asyncio.ensure_future(ready(runtime))
            await clock.until_asleep(WRITE_WITHIN_S)
            clock.advance(round(WRITE_WITHIN_S * 1000))
            assert await asking == (False, False)
            raw.execute("ROLLBACK")
        assert await ready(runtime) == (True, True)


@pytest.mark.requirement("server:ready:takes-writes")
@pytest.mark.parametrize("pages_left", [0, 1])
async def test_a_store_whose_last_commit_was_refused_is_ready_when_one_is_taken_again(
    tmp_path: Path, pages_left: int
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    clock = ManualClock()
    async with asyncio.timeout(60), await opened(tmp_path, clock, [None]) as runtime:
        log = tmp_path / "runtime.sqlite3-wal"
        assert await ready(runtime) == (True, True)
        # As a quota does: the file system has room, for others.
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + pages_left * 4120, hard))
        try:
            with pytest.raises(StoreUnavailable):
                await runtime.claim_message("msg_1", clock.now_ms(), requester())
            for _ in range(pages_left):
                await ready(runtime)
            assert await ready(runtime) == (False, False)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await ready(runtime) == (True, True)
        await runtime.claim_message("msg_1", clock.now_ms(), requester())
        before = log.read_bytes()
        assert await ready(runtime) == (True, True)
        assert log.read_bytes() == before


def told(*, flags: int = 0, free: int = LEAST_FREE_BYTES) -> os.statvfs_result:
    return os.statvfs_result((4096, 4096, 1000, 999, free // 4096, 9, 9, 9, flags, 255))


@pytest.mark.requirement("server:ready:takes-writes")
def test_what_a_file_system_says_of_itself_is_the_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def gone(_: Path) -> os.statvfs_result:
        raise OSError("gone")

    assert obstacle_at(path) is None
    assert obstacle_at(path, statvfs=lambda _: told()) is None
    assert obstacle_at(path, statvfs=lambda _: told(free=LEAST_FREE_BYTES - 4096)) == "full"
    assert obstacle_at(path, statvfs=lambda _: told(flags=os.ST_RDONLY)) == "read_only"
    assert obstacle_at(path, statvfs=gone) is None
