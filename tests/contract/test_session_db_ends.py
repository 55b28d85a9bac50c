"""Ending, reopening, and flags of a whole conversation."""

from __future__ import annotations

import json

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.ending import RESET_REASONS
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import chain, ids_of, said


async def ended(db: SessionDB, session_id: str) -> tuple[float | None, str | None]:
    row = await db.get_session(session_id)
    assert row is not None
    return row["ended_at"], row["end_reason"]


@pytest.mark.requirement("session_db:ends:first-reason")
async def test_the_first_reason_wins_until_the_row_is_reopened(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await session_db.create_session("s", "cli")
    at = session_clock.now_ms() / 1000
    await session_db.end_session("s", "client_closed")
    session_clock.advance(5000)
    await session_db.end_session("s", "agent_close")
    assert await ended(session_db, "s") == (at, "client_closed")

    assert await said(session_db, "s", "still taken")
    assert await ended(session_db, "s") == (at, "client_closed")
    await session_db.reopen_session("s")
    assert await ended(session_db, "s") == (None, None)
    await session_db.end_session("s", "agent_close")
    assert await ended(session_db, "s") == (at + 5, "agent_close")


@pytest.mark.requirement("session_db:ends:first-reason")
async def test_an_unknown_id_is_nothing_to_end_or_reopen(session_db: SessionDB) -> None:
    await session_db.end_session("nobody", "agent_close")
    await session_db.reopen_session("nobody")
    assert await session_db.session_count() == 0


@pytest.mark.requirement("session_db:ends:reopen")
@pytest.mark.parametrize("reason", RESET_REASONS)
async def test_a_reset_stays_listed_when_what_it_left_is_reopened(session_db: SessionDB, reason: str) -> None:
    await session_db.create_session("old", "telegram", session_key="k")
    await session_db.end_session("old", reason)
    await session_db.create_session("new", "telegram", parent_session_id="old", session_key="k")
    await session_db.create_session("helper", "telegram", parent_session_id="old", session_key="other")
    assert set(ids_of(await session_db.list_sessions_rich())) == {"old", "new"}

    await session_db.reopen_session("old")
    assert set(ids_of(await session_db.list_sessions_rich())) == {"old", "new"}
    row = await session_db.get_session("new")
    assert row is not None
    assert json.loads(row["model_config"]) == {"_reset_from": "old"}
    await session_db.end_session("old", "compression")
    assert await session_db.resolve_resume_session_id("old") == "helper"


@pytest.mark.requirement("session_db:ends:reopen")
async def test_a_branch_stays_a_branch_when_its_source_is_reopened(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.end_session("s", "branched")
    await session_db.create_session("b", "cli", parent_session_id="s", model_config={"max_tokens": 5})
    await session_db.reopen_session("s")

    assert set(ids_of(await session_db.list_sessions_rich())) == {"s", "b"}
    assert await session_db.get_session_model_config_value("b", "_branched_from") == "s"
    assert await session_db.get_session_model_config_value("b", "max_tokens") == 5


@pytest.mark.requirement("session_db:flags:conversation")
@pytest.mark.parametrize("flag", ["archived", "pinned", "hidden"])
async def test_a_flag_is_set_on_all_rows_of_a_conversation(session_db: SessionDB, flag: str) -> None:
    await chain(session_db, "a", "b", "c")
    await session_db.fork_session("c", "fork")
    set_flag = getattr(session_db, f"set_session_{flag}")

    async def flags() -> list[int]:
        return [(await session_db.get_session(name) or {})[flag] for name in ("a", "b", "c", "fork")]

    assert await set_flag("b", True) is True
    assert await flags() == [1, 1, 1, 0]
    assert await set_flag("c", False) is True
    assert await flags() == [0, 0, 0, 0]
    assert await set_flag("nobody", True) is False


@pytest.mark.requirement("session_db:flags:conversation")
async def test_unread_is_what_came_after_the_last_reading(session_db: SessionDB, session_clock: ManualClock) -> None:
    await session_db.create_session("s", "cli")
    await said(session_db, "s", "one")

    async def unread() -> bool:
        row = await session_db.get_session_rich_row("s")
        assert row is not None
        assert SessionDB.session_unread(row) is row["unread"]
        return bool(row["unread"])

    assert not await unread()
    assert await session_db.set_session_read("s")
    assert not await unread()
    session_clock.advance(1000)
    await said(session_db, "s", "two")
    assert await unread()
    session_clock.advance(-3_600_000)
    assert await session_db.set_session_read("s")
    assert not await unread()
    assert await session_db.set_session_read("s", read=False)
    assert await unread()
    assert not await session_db.set_session_read("nobody")
