"""What a row remembers of compressions that failed or were broken off."""

from __future__ import annotations

import pytest

from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import chain, said

pytestmark = pytest.mark.requirement("session_db:compression-notes")


async def test_a_cool_down_holds_until_its_moment(session_db: SessionDB, session_clock: ManualClock) -> None:
    await session_db.create_session("s", "cli")
    until = session_clock.now_ms() / 1000 + 60
    assert await session_db.get_compression_failure_cooldown("s") is None
    await session_db.record_compression_failure_cooldown("s", until, "HTTP 500")
    held = {"cooldown_until": until, "remaining_seconds": 60.0, "error": "HTTP 500"}
    assert await session_db.get_compression_failure_cooldown("s") == held

    snapshot = await session_db.get_compression_failure_cooldown_row("s")
    assert snapshot == {"session_exists": True, "cooldown_until": until, "error": "HTTP 500"}
    await session_db.clear_compression_failure_cooldown("s")
    assert await session_db.get_compression_failure_cooldown("s") is None
    await session_db.restore_compression_failure_cooldown_row("s", snapshot)
    assert await session_db.get_compression_failure_cooldown("s") == held
    session_clock.advance(60_000)
    assert await session_db.get_compression_failure_cooldown("s") is None
    assert await session_db.get_compression_failure_cooldown_row("s") == snapshot


async def test_a_cool_down_goes_back_to_the_session_it_was_of(session_db: SessionDB) -> None:
    absent = await session_db.get_compression_failure_cooldown_row("s")
    assert absent == {"session_exists": False, "cooldown_until": None, "error": None}
    await session_db.restore_compression_failure_cooldown_row("s", absent)
    await session_db.create_session("s", "cli")
    with pytest.raises(RuntimeError, match="session s"):
        await session_db.restore_compression_failure_cooldown_row("s", absent)
    present = await session_db.get_compression_failure_cooldown_row("s")
    await session_db.delete_session("s")
    with pytest.raises(RuntimeError, match="session s"):
        await session_db.restore_compression_failure_cooldown_row("s", present)


async def test_streaks_are_kept_on_the_row(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.set_compression_fallback_streak("s", 2)
    await session_db.set_compression_ineffective_count("s", 3)
    assert await session_db.get_compression_fallback_streak("s") == 2
    assert await session_db.get_compression_ineffective_count("s") == 3
    assert await session_db.get_compression_fallback_streak("nobody") == 0
    assert await session_db.get_compression_ineffective_count("nobody") == 0


async def test_the_watermark_is_the_newest_live_row(session_db: SessionDB) -> None:
    assert await session_db.get_active_message_watermark("s") == 0
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", "a", "b", "c")
    await session_db.rewind_to_message("s", ids[2])
    assert await session_db.get_active_message_watermark("s") == ids[1]


async def test_continuations_that_nobody_worked_in_are_ended(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b")
    await chain(session_db, "c", "d")
    await session_db.update_token_counts("d", api_call_count=1)
    assert await session_db.finalize_orphaned_compression_sessions() == 1
    assert (await session_db.get_session("b") or {})["end_reason"] == "orphaned_compression"
    assert (await session_db.get_session("d") or {})["end_reason"] is None
    assert await session_db.finalize_orphaned_compression_sessions() == 0


async def test_a_row_is_reopened_where_a_compression_left_nothing(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b")
    for name in ("plain", "ended", "branched", "locked"):
        await session_db.create_session(name, "cli")
        await session_db.end_session(name, "client_closed" if name == "ended" else "compression")
    await session_db.fork_session("branched", "fork")
    assert await session_db.try_acquire_compression_lock("locked", "somebody")

    reopened = {
        name: await session_db.reopen_orphaned_compression_session(name)
        for name in ("a", "b", "plain", "ended", "branched", "locked", "nobody")
    }
    assert [name for name, done in reopened.items() if done] == ["plain", "branched"]
    assert (await session_db.get_session("plain") or {})["ended_at"] is None
    assert (await session_db.get_session("a") or {})["end_reason"] == "compression"
