"""Pruning and putting away what is old: what a selection means, and what is done now and then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.database.address import postgres_address
from aip_hermes.database.postgres import PostgresDatabase
from aip_hermes.embedded.session_db import SessionDB, pruning
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore
from tests.support.store_copies import INSERT

DAY_MS = 86_400_000
DAY_S = 86_400


@pytest.fixture
def db(session_db: SessionDB) -> SessionDB:
    return session_db


@pytest.fixture
def clock(session_clock: ManualClock) -> ManualClock:
    return session_clock


async def add(db: SessionDB, session_id: str, *words: str, ended: bool = True, **fields: Any) -> str:
    await db.create_session(session_id, fields.pop("source", "cli"), **fields)
    for word in words:
        await db.append_message(session_id, "user", word)
    if ended:
        await db.end_session(session_id, "done")
    return session_id


async def ids(db: SessionDB) -> set[str]:
    return {row["id"] for row in await db.list_sessions_rich(limit=1000, include_children=True, include_archived=True)}


async def change(db: SessionDB, session_id: str, **columns: object) -> None:
    """Give a row what no method of this store writes."""
    values = ", ".join(f"{name} = :{name}" for name in columns)
    asked = {**columns, "id": session_id}
    await db.write(lambda c: c.execute(f"UPDATE sessions SET {values} WHERE id = :id", asked))  # noqa: S608


@pytest.mark.requirement("session_db:prune:ended")
async def test_old_rows_that_have_ended_go_and_open_ones_are_counted(db: SessionDB, clock: ManualClock) -> None:
    await add(db, "old", "w")
    await add(db, "old-silent")
    await add(db, "old-open", "w", ended=False)
    await add(db, "old-begun", "w", ended=False)
    clock.advance(90 * DAY_MS)
    await db.append_message("old-begun", "user", "again")
    await db.end_session("old-begun", "done")
    await add(db, "young", "w")

    assert [row["id"] for row in await db.list_prune_candidates(90)] == ["old", "old-silent"]
    assert await db.count_open_prune_matches(90) == 1
    # Without an age it is that of nothing; a prune alone has one of its own.
    assert [row["id"] for row in await db.list_prune_candidates()] == ["old", "old-silent", "old-begun", "young"]
    assert await db.count_open_prune_matches() == 1
    assert await db.prune_sessions() == 2
    assert await ids(db) == {"old-open", "old-begun", "young"}
    assert await db.prune_sessions() == 0


@pytest.mark.requirement("session_db:prune:ended")
async def test_age_is_that_of_the_last_activity_to_the_millisecond(db: SessionDB, clock: ManualClock) -> None:
    await add(db, "s", "w")
    clock.advance(30 * DAY_MS - 1)
    assert await db.prune_sessions(30) == 0
    clock.advance(1)
    assert await db.prune_sessions(30) == 1


@pytest.mark.requirement("session_db:prune:ended")
async def test_children_stay_without_a_parent_subagents_included(db: SessionDB, clock: ManualClock) -> None:
    await add(db, "root", "w")
    clock.advance(90 * DAY_MS)
    await add(db, "d", "w", parent_session_id="root", model_config={"_delegate_from": "root"}, ended=False)

    assert await db.prune_sessions() == 1
    row = await db.get_session("d")
    assert row is not None
    assert row["parent_session_id"] is None
    assert await db.list_sessions_rich() == []


@pytest.mark.requirement("session_db:prune:ended")
async def test_a_prune_in_steps_takes_the_longest_inactive_first(db: SessionDB, clock: ManualClock) -> None:
    for name in ("c", "a", "b"):
        await add(db, name, "w")
        clock.advance(DAY_MS)
    assert [await db.prune_sessions(0, limit=2), await ids(db)] == [2, {"b"}]


ROW = {
    "title": "50%_Off \\ Sale",
    "cwd": "/srv/app_1",
    "model": "big-Model_7",
    "billing_provider": "prov",
    "user_id": "u",
    "chat_id": "c",
    "chat_type": "dm",
    "git_branch": "feature/x_y",
    "input_tokens": 60,
    "output_tokens": 40,
    "estimated_cost_usd": 9.0,
    "actual_cost_usd": 2.5,
    "tool_call_count": 3,
    "end_reason": "done_it",
}

FILTERS: list[tuple[dict[str, Any], bool]] = [
    ({"source": "cli"}, True),
    ({"source": "cl_"}, False),
    ({"title_like": "50%_off"}, True),
    ({"title_like": "50%off"}, False),
    ({"title_like": "50__Off"}, False),
    ({"title_like": "\\ s"}, True),
    ({"model_like": "model_7"}, True),
    ({"model_like": "model%7"}, False),
    ({"branch_like": "x_y"}, True),
    ({"branch_like": "x%y"}, False),
    ({"end_reason": "done_it"}, True),
    ({"end_reason": "done"}, False),
    ({"cwd_prefix": "/srv/app_1"}, True),
    ({"cwd_prefix": "/srv/"}, True),
    ({"cwd_prefix": "/srv/app_"}, False),
    ({"cwd_prefix": "/SRV"}, False),
    ({"cwd_prefix": "/s%"}, False),
    ({"provider": "prov"}, True),
    ({"provider": "other"}, False),
    ({"user_id": "u"}, True),
    ({"user_id": "x"}, False),
    ({"chat_id": "c"}, True),
    ({"chat_id": "x"}, False),
    ({"chat_type": "dm"}, True),
    ({"chat_type": "x"}, False),
    ({"archived": False}, True),
    ({"archived": True}, False),
    ({"min_messages": 2, "max_messages": 2}, True),
    ({"min_messages": 3}, False),
    ({"max_messages": 1}, False),
    ({"min_tokens": 100, "max_tokens": 100}, True),
    ({"min_tokens": 101}, False),
    ({"max_tokens": 99}, False),
    ({"min_cost": 2.5, "max_cost": 2.5}, True),
    ({"min_cost": 2.6}, False),
    ({"max_cost": 2.4}, False),
    ({"min_tool_calls": 3, "max_tool_calls": 3}, True),
    ({"min_tool_calls": 4}, False),
    ({"max_tool_calls": 2}, False),
    ({"started_after": 1_893_456_000.0, "started_before": 1_893_456_000.5}, True),
    ({"started_before": 1_893_456_000.0}, False),
    ({"started_after": 1_893_456_000.5}, False),
    ({"last_active_after": 1_893_456_000.0, "last_active_before": 1_893_456_000.5}, True),
    ({"last_active_before": 1_893_456_000.0}, False),
    ({"last_active_after": 1_893_456_000.5}, False),
]


@pytest.mark.requirement("session_db:prune:filters")
async def test_each_filter_means_the_same_rows_for_every_method(db: SessionDB, clock: ManualClock) -> None:
    for name in ("ended", "open"):
        await add(db, name, "w", "w", ended=name == "ended")
    for name in ("ended", "open"):
        await change(db, name, **{key: value for key, value in ROW.items() if name == "ended" or key != "title"})
    clock.advance(91 * DAY_MS)

    for filters, meant in FILTERS:
        listed = [row["id"] for row in await db.list_prune_candidates(**filters)]
        assert listed == (["ended"] if meant else []), filters
        if not filters.keys() & {"title_like"}:
            assert await db.count_open_prune_matches(**filters) == int(meant), filters
        assert await db.archive_sessions(**filters) == int(meant), filters
        if meant:
            await change(db, "ended", archived=0)

    for filters, meant in FILTERS:
        if not meant:
            assert await db.prune_sessions(**filters) == 0, filters
    assert (
        await db.prune_sessions(**{key: value for filters, meant in FILTERS if meant for key, value in filters.items()})
        == 1
    )


@pytest.mark.requirement("session_db:prune:filters")
async def test_a_filter_that_makes_no_sense_is_refused(db: SessionDB) -> None:
    with pytest.raises(TypeError):
        await db.prune_sessions(titel_like="x")
    with pytest.raises(ValueError, match="min_cost"):
        await db.prune_sessions(min_cost=float("nan"))
    with pytest.raises(ValueError, match="title_like"):
        await db.prune_sessions(title_like="x" * 2000)
    with pytest.raises(ValueError, match="zero or more"):
        await db.prune_sessions(-1)


@pytest.mark.requirement("session_db:prune:archive")
async def test_what_is_idle_is_put_away_with_the_rows_before_its_compressions(
    db: SessionDB, clock: ManualClock
) -> None:
    for chain in ("still", "live"):
        await add(db, f"{chain}-1", "w", ended=False)
        await db.end_session(f"{chain}-1", "compression")
        await add(db, f"{chain}-2", "w", ended=False, parent_session_id=f"{chain}-1")
    await add(db, "open", "w", ended=False)
    await add(db, "pinned", "w")
    await change(db, "pinned", pinned=1)
    clock.advance(30 * DAY_MS)
    await db.append_message("live-2", "user", "again")
    clock.advance(1)

    assert await db.archive_stale_sessions(30) == 3
    assert {row["id"] for row in await db.list_sessions_rich(include_children=True)} == {"live-1", "live-2", "pinned"}
    assert await db.archive_stale_sessions(30) == 0
    assert await db.archive_stale_sessions(30, exclude_pinned=False) == 1


@pytest.mark.requirement("session_db:prune:now-and-then")
async def test_of_two_processes_one_prunes_within_the_interval(
    db: SessionDB, clock: ManualClock, session_store: OpenStore
) -> None:
    await add(db, "old", "w" * 100_000)
    clock.advance(90 * DAY_MS)
    async with session_store() as other:
        done = await asyncio.gather(db.maybe_auto_prune_and_vacuum(), other.maybe_auto_prune_and_vacuum())
    quiet = {"skipped": True, "pruned": 0, "vacuumed": False}
    assert sorted(done, key=lambda each: each["skipped"]) == [
        {"skipped": False, "pruned": 1, "vacuumed": True},
        quiet,
    ]
    await add(db, "next", "w")
    clock.advance(DAY_MS - 1)
    assert await db.maybe_auto_prune_and_vacuum(0) == quiet
    clock.advance(1)
    assert await db.maybe_auto_prune_and_vacuum(0, vacuum=False) == {"skipped": False, "pruned": 1, "vacuumed": False}


@pytest.mark.requirement("session_db:prune:now-and-then")
async def test_an_automatic_archive_keeps_its_interval_too(db: SessionDB, clock: ManualClock) -> None:
    await add(db, "idle", "w", ended=False)
    clock.advance(31 * DAY_MS)
    assert await db.maybe_auto_archive(30) == {"skipped": False, "archived": 1}
    assert await db.maybe_auto_archive(30) == {"skipped": True, "archived": 0}


@pytest.mark.requirement("session_db:prune:now-and-then")
async def test_a_store_that_can_not_is_reported(db: SessionDB, tmp_path: Path) -> None:
    await db.get_session("")
    async with SessionDB(tmp_path / "hermes.db", read_only=True) as reader:
        done = await reader.maybe_auto_prune_and_vacuum()
        away = await reader.maybe_auto_archive()
    assert done.pop("error")
    assert done == {"skipped": False, "pruned": 0, "vacuumed": False}
    assert away.pop("error")
    assert away == {"skipped": False, "archived": 0}


@FILE_STORE
@pytest.mark.requirement("session_db:prune:room")
async def test_a_vacuum_gives_room_back_while_others_read_and_write(db: SessionDB, tmp_path: Path) -> None:
    for name in ("gone", "kept"):
        await add(db, name, *("w" * 20_000 for _ in range(50)))
    full = await db.logical_size_bytes()
    await db.delete_session("gone")
    emptied = await db.logical_size_bytes()
    assert emptied < full * 0.7

    await asyncio.gather(
        db.vacuum(), db.append_message("kept", "user", "meanwhile"), *(db.get_messages("kept") for _ in range(3))
    )
    assert await db.message_count("kept") == 51
    await db.close()
    assert (tmp_path / "hermes.db").stat().st_size < full * 0.7


@pytest.mark.requirement("session_db:prune:room")
async def test_a_store_for_reading_takes_no_vacuum(db: SessionDB, tmp_path: Path) -> None:
    await db.get_session("")
    async with SessionDB(tmp_path / "hermes.db", read_only=True) as reader:
        with pytest.raises(StoreUnavailable):
            await reader.vacuum()


@pytest.mark.requirement("session_db:prune:room")
async def test_a_shared_store_tells_its_size_too(postgres_dsn: str) -> None:
    place = postgres_address(postgres_dsn)
    assert place is not None
    async with PostgresDatabase(place, schema="sized", migrations="tests.support.store_migrations") as shared:
        before = await shared.read(pruning.logical_size)
        await shared.write(lambda c: [c.execute(INSERT, {"name": f"{one}" * 2000}) for one in range(100)])
        assert before < await shared.read(pruning.logical_size)
