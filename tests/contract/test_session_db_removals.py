"""The record of removals: every way in which a row can go leaves an entry."""

from __future__ import annotations

import re

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.queries import QUERIES
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import chain, ids_of, said

DAY_MS = 86_400_000


@pytest.mark.requirement("session_db:removals")
async def test_each_removal_says_what_when_by_what_and_by_whom(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await session_db.create_session(name, "tui" if name == "e" else "cli")
    await session_db.create_session("sub", "cli", parent_session_id="a", model_config={"_delegate_from": "a"})
    await said(session_db, "d", "old")
    await session_db.end_session("d", "agent_close")
    await session_db.end_session("e", "agent_close")
    session_clock.advance(100 * DAY_MS)
    at = session_clock.now_ms() / 1000

    assert await session_db.list_removals() == []
    session_db.actor = "somebody"
    assert await session_db.delete_session("a")
    assert not await session_db.delete_session("a")
    assert await session_db.delete_session_if_empty("b")
    assert await session_db.delete_sessions(["c", "nobody"]) == 1
    assert await session_db.prune_empty_ghost_sessions() == 1
    assert await session_db.prune_sessions(older_than_days=90) == 1
    noted = {entry["session_id"]: entry["cause"] for entry in await session_db.list_removals()}
    assert noted == {
        "a": "delete",
        "sub": "delete",
        "b": "delete_if_empty",
        "c": "delete_several",
        "e": "prune_ghosts",
        "d": "prune",
    }
    expected = {"session_id": "d", "removed_at": at, "cause": "prune", "actor": "somebody"}
    assert await session_db.list_removals("d") == [expected]
    assert len(await session_db.list_removals(limit=2)) == 2

    session_clock.advance(401 * DAY_MS)
    await session_db.create_session("late", "cli")
    await session_db.delete_session("late")
    assert [entry["session_id"] for entry in await session_db.list_removals()] == ["late"]


@pytest.mark.requirement("session_db:removals")
def test_one_statement_alone_removes_sessions() -> None:
    removing = [name for name, sql in QUERIES.items() if re.search(r"\bDELETE FROM sessions\b", sql)]
    assert removing == ["delete_doomed"]


@pytest.mark.requirement("session_db:listing:visible")
@pytest.mark.parametrize("way", ["delete", "several", "prune"])
async def test_whoever_loses_a_parent_can_be_listed_opened_and_deleted(session_db: SessionDB, way: str) -> None:
    await session_db.create_session("p", "cli")
    await said(session_db, "p", "one")
    await session_db.fork_session("p", "fork")
    await session_db.create_session("next", "cli", parent_session_id="p")
    if way == "delete":
        assert await session_db.delete_session("p")
    elif way == "several":
        assert await session_db.delete_sessions(["p"]) == 1
    else:
        assert await session_db.prune_sessions(older_than_days=0) == 1

    assert set(ids_of(await session_db.list_sessions_rich())) == {"fork", "next"}
    for name in ("fork", "next"):
        row = await session_db.get_session(name)
        assert row is not None
        assert row["parent_session_id"] is None
        model, display = await session_db.get_resume_conversations(name)
        assert len(model) == len(display) == (1 if name == "fork" else 0)
        assert await session_db.delete_session(name)
    assert await session_db.session_count(include_archived=True) == 0


@pytest.mark.requirement("session_db:removals")
async def test_a_chain_with_a_hole_is_pruned_without_a_complaint(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await chain(session_db, "a", "b", "c", "d")
    assert await session_db.delete_session("b")
    session_clock.advance(DAY_MS)
    assert await session_db.prune_sessions(older_than_days=0) == 2

    row = await session_db.get_session("d")
    assert row is not None
    assert row["parent_session_id"] is None
    assert ids_of(await session_db.list_sessions_rich()) == ["d"]
    assert len(await session_db.get_messages("d")) == 1
    assert {entry["session_id"] for entry in await session_db.list_removals()} == {"a", "b", "c"}
