"""Turn leases: one holder per conversation, between tasks and between processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.session_db import SessionTurnLeaseLostError, Usage
from aip_hermes.embedded.session_db.holders import holder_is_gone, process_holder
from aip_hermes.embedded.session_db.queries import QUERIES
from tests.support.lease_holder import ROUNDS
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock

ROOT = Path(__file__).resolve().parents[2]
TELLS_STARTS = Path("/proc/self/stat").exists()


@pytest.fixture
def clock(session_clock: ManualClock) -> ManualClock:
    return session_clock


@pytest.fixture
def db(session_db: SessionDB) -> SessionDB:
    return session_db


async def chain(db: SessionDB, *ids: str) -> None:
    """Make rows of which each was compressed into the next."""
    parent: str | None = None
    for session_id in ids:
        await db.create_session(session_id, "test", parent_session_id=parent)
        if parent is not None:
            await db.end_session(parent, "compression")
        parent = session_id


def process(order: str, file: Path, session_id: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.lease_holder", order, str(file), session_id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def ended_process() -> int:
    """Return the id of a process that is no more."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.mark.requirement("session_db:lease:one-holder")
async def test_a_lease_has_one_holder_who_may_take_it_again(db: SessionDB) -> None:
    assert await db.try_acquire_session_turn_lease("new", "a")
    assert not await db.try_acquire_session_turn_lease("new", "b")
    assert await db.try_acquire_session_turn_lease("new", "a", patience_s=30)
    assert await db.try_acquire_session_turn_lease("other", "b")
    assert await db.get_session_turn_lease_holder("new") == "a"
    assert not await db.release_session_turn_lease("new", "b")
    assert not await db.refresh_session_turn_lease("new", "b")
    assert await db.release_session_turn_lease("new", "a")
    assert not await db.release_session_turn_lease("new", "a")
    assert await db.try_acquire_session_turn_lease("new", "b")
    assert await db.get_session("new") is None


@pytest.mark.requirement("session_db:lease:one-holder")
async def test_every_row_of_a_chain_has_the_lease_of_its_root_and_a_fork_has_its_own(db: SessionDB) -> None:
    await chain(db, "one", "two", "three")
    await db.append_message("three", "user", "x")
    await db.fork_session("three", "fork")
    assert await db.try_acquire_session_turn_lease("two", "a")
    for session_id in ("one", "two", "three"):
        assert await db.get_session_turn_lease_holder(session_id) == "a"
        assert not await db.try_acquire_session_turn_lease(session_id, "b")
    assert await db.try_acquire_session_turn_lease("fork", "b")
    # A lease that was taken before its row exists goes on to hold.
    assert await db.try_acquire_session_turn_lease("later", "a")
    await chain(db, "later", "later-2")
    assert not await db.try_acquire_session_turn_lease("later-2", "b")


@pytest.mark.requirement("session_db:lease:takeover")
async def test_an_expired_lease_is_taken_over_and_a_renewed_one_is_not(db: SessionDB, clock: ManualClock) -> None:
    assert await db.try_acquire_session_turn_lease("s", "a", ttl_seconds=10)
    clock.advance(9_000)
    assert await db.refresh_session_turn_lease("s", "a", ttl_seconds=10)
    clock.advance(9_000)
    assert not await db.try_acquire_session_turn_lease("s", "b")
    clock.advance(1_000)
    assert await db.get_session_turn_lease_holder("s") is None
    assert await db.try_acquire_session_turn_lease("s", "b")
    assert not await db.refresh_session_turn_lease("s", "a")


@pytest.mark.requirement("session_db:lease:takeover")
async def test_a_holder_is_gone_only_where_its_process_provably_is(db: SessionDB) -> None:
    ended = await asyncio.to_thread(ended_process)
    mine = process_holder(turn="t", platform="p")
    before_restart = mine.replace(f":host={mine.split(':host=')[1].split(':')[0]}", "")
    gone = [f"pid={ended}:turn=1:platform=x", f"pid={os.getpid()}:since=1:turn=t"]
    there = [mine, before_restart, f"pid={os.getpid()}:turn=1", f"pid={ended}:host=elsewhere.example:turn=1", "x"]

    assert [holder_is_gone(holder) for holder in gone] == [True, TELLS_STARTS]
    assert not any(holder_is_gone(holder) for holder in there)
    assert await db.try_acquire_session_turn_lease("s", gone[0])
    # Who shares a store may run on another machine, where such a number means another process.
    assert await db.try_acquire_session_turn_lease("s", mine) is not db.is_shared
    on_this_machine = f"{gone[0]}:host={mine.split(':host=')[1].split(':')[0]}"
    assert await db.try_acquire_session_turn_lease("t", on_this_machine)
    assert await db.try_acquire_session_turn_lease("t", mine)
    assert not await db.try_acquire_session_turn_lease("s", "b")


@pytest.mark.requirement("session_db:lease:takeover", "session_db:lease:two-processes")
@pytest.mark.parametrize("session_id", ["known", "new"])
async def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path, session_id: str) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("known", "test")
        holding = await asyncio.to_thread(process, "hold", db.path, session_id)
        try:
            assert holding.stdout is not None
            assert await asyncio.to_thread(holding.stdout.readline) == "held\n"
            assert not await db.try_acquire_session_turn_lease(session_id, "me")
        finally:
            holding.kill()
            await asyncio.to_thread(holding.communicate)
        assert await db.try_acquire_session_turn_lease(session_id, "me")


@pytest.mark.requirement("session_db:lease:two-processes")
async def test_two_processes_are_never_inside_at_once(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "test")
        both = [process("count", db.path, "s") for _ in range(2)]
        await asyncio.gather(*(asyncio.to_thread(one.communicate, timeout=120) for one in both))
        assert [one.returncode for one in both] == [0, 0]
        assert (tmp_path / "number").read_text() == str(2 * ROUNDS)
        assert await db.get_session_turn_lease_holder("s") is None


@pytest.mark.requirement("session_db:lease:waiting")
async def test_a_wait_tells_of_itself_and_ends_with_its_time(db: SessionDB, clock: ManualClock) -> None:
    told: list[float] = []
    await db.try_acquire_session_turn_lease("s", "a", ttl_seconds=1_000)
    waiting = asyncio.create_task(
        db.acquire_session_turn_lease(
            "s", "b", wait_seconds=40, poll_interval_seconds=10, on_wait=told.append, acquire_patience_s=30
        )
    )
    for _ in range(4):
        await clock.until_asleep(10)
        clock.advance(10_000)
    assert await waiting is False
    assert [round(seconds) for seconds in told] == [0, 20]
    assert not await db.acquire_session_turn_lease("s", "b", should_abort=lambda: True, acquire_patience_s=30)
    assert await db.get_session_turn_lease_holder("s") == "a"


@pytest.mark.requirement("session_db:lease:waiting")
async def test_a_waiter_gets_a_lease_that_is_let_go_and_a_cancelled_one_holds_nothing(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db, asyncio.timeout(30):
        begun = asyncio.Event()
        await db.try_acquire_session_turn_lease("s", "a")
        waiting = asyncio.create_task(
            db.acquire_session_turn_lease("s", "b", poll_interval_seconds=0.01, on_wait=lambda _s: begun.set())
        )
        await begun.wait()
        await db.release_session_turn_lease("s", "a")
        assert await waiting
        begun.clear()
        cancelled = asyncio.create_task(
            db.acquire_session_turn_lease("s", "c", poll_interval_seconds=0.01, on_wait=lambda _s: begun.set())
        )
        await begun.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await db.release_session_turn_lease("s", "b")
        assert await db.get_session_turn_lease_holder("s") is None


@pytest.mark.requirement("session_db:lease:fencing")
async def test_a_stale_writer_writes_nothing(db: SessionDB, clock: ManualClock) -> None:
    await chain(db, "root", "s")
    await db.try_acquire_session_turn_lease("s", "a", ttl_seconds=10)
    await db.append_message("s", "user", "mine", turn_lease_holder="a")
    clock.advance(11_000)
    # Expired, but nobody's yet: the write renews it.
    await db.append_messages_batch("s", [{"role": "tool", "content": "r"}], turn_lease_holder="a")
    assert await db.get_session_turn_lease_holder("root") == "a"
    clock.advance(301_000)
    assert await db.try_acquire_session_turn_lease("root", "b")
    before = await db.get_session("s")
    with pytest.raises(SessionTurnLeaseLostError):
        await db.append_message("s", "assistant", "late", turn_lease_holder="a")
    with pytest.raises(SessionTurnLeaseLostError):
        await db.append_messages_batch("s", [{"role": "user", "content": "late"}], turn_lease_holder="a", chunk_rows=1)
    with pytest.raises(SessionTurnLeaseLostError):
        await db.record_reply("s", "late", finish_reason="stop", usage=Usage(), model="m", turn_lease_holder="a")
    with pytest.raises(SessionTurnLeaseLostError):
        await db.archive_and_compact("s", [{"role": "user", "content": "late"}], turn_lease_holder="a")
    with pytest.raises(SessionTurnLeaseLostError):
        await db.publish_compression_child("s", "c", [{"role": "user", "content": "late"}], turn_lease_holder="a")
    assert await db.get_session("s") == before
    assert [row["content"] for row in await db.get_messages("s")] == ["mine", "r"]
    # A write that names nobody is not held up.
    await db.append_message("s", "user", "from elsewhere")


@FILE_STORE
@pytest.mark.requirement("session_db:lease:chain-only")
async def test_the_guard_reads_no_other_sessions(db: SessionDB) -> None:
    plans = await db.read(
        lambda c: [
            *c.execute(f"EXPLAIN QUERY PLAN {QUERIES['compression_ancestors']}", {"id": "s"}),
            *c.execute(f"EXPLAIN QUERY PLAN {QUERIES['fetch_lease']}", {"kind": "turn", "subject": "s"}),
        ]
    )
    on_tables = [row["detail"] for row in plans if "sessions" in row["detail"] or "leases" in row["detail"]]
    steps = [row["detail"] for row in plans]
    assert not [step for step in steps if step.startswith("SCAN") and step not in ("SCAN up", "SCAN CONSTANT ROW")]
    assert len(on_tables) >= 1
