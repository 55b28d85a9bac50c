"""Removing sessions: by name, because they are empty, with their files, and in any number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock

MANY = 40_500


@pytest.fixture
def db(session_db: SessionDB) -> SessionDB:
    return session_db


async def add(db: SessionDB, session_id: str, *words: str, **fields: Any) -> str:
    """Make a row with one user message per word."""
    await db.create_session(session_id, fields.pop("source", "cli"), **fields)
    for word in words:
        await db.append_message(session_id, "user", word)
    return session_id


async def delegate(db: SessionDB, session_id: str, parent: str) -> str:
    return await add(db, session_id, "w", parent_session_id=parent, model_config={"_delegate_from": parent})


async def ids(db: SessionDB) -> set[str]:
    return {row["id"] for row in await db.list_sessions_rich(limit=100_000, include_children=True)}


async def counted(db: SessionDB, table: str) -> int:
    (row,) = await db.read(lambda c: c.execute(f"SELECT COUNT(*) AS number FROM {table}"))  # noqa: S608 - our own name
    return int(row["number"])


@pytest.mark.requirement("session_db:delete:lineage")
async def test_subagents_go_with_their_parent_and_every_other_child_stays_without_one(db: SessionDB) -> None:
    await add(db, "root", "hello")
    await delegate(db, "d2", "root")
    await delegate(db, "d1", "d2")
    await add(db, "fork", "f", parent_session_id="root", model_config={"_branched_from": "root"})
    await add(db, "plain", parent_session_id="root")
    await add(db, "of-delegate", "x", parent_session_id="d1", model_config={"_branched_from": "d1"})
    await add(db, "other", "y")

    assert await db.get_session_delete_targets("root") == ["root", "d1", "d2"]
    assert await db.delete_session("root") is True

    assert await ids(db) == {"fork", "plain", "of-delegate", "other"}
    for kept in ("fork", "plain", "of-delegate"):
        row = await db.get_session(kept)
        assert row is not None
        assert row["parent_session_id"] is None
    assert [m["content"] for m in await db.get_messages("fork")] == ["f"]
    assert await counted(db, "messages") == 3


@pytest.mark.requirement("session_db:delete:lineage")
async def test_an_unknown_id_is_false_and_has_no_targets(db: SessionDB) -> None:
    assert await db.delete_session("nobody") is False
    assert await db.get_session_delete_targets("nobody") == []


@pytest.mark.requirement("session_db:delete:lineage")
async def test_a_prompt_goes_with_its_last_user(db: SessionDB) -> None:
    await add(db, "a", system_prompt="shared")
    await add(db, "b", system_prompt="shared")
    await add(db, "c", system_prompt="alone")

    await db.delete_sessions(["a", "c"])
    assert await counted(db, "system_prompts") == 1
    kept = await db.get_session("b")
    assert kept is not None
    assert kept["system_prompt"] == "shared"
    await db.delete_session("b")
    assert await counted(db, "system_prompts") == 0


@pytest.mark.requirement("session_db:delete:lineage")
async def test_the_middle_of_a_chain_cuts_it(db: SessionDB) -> None:
    for one, parent in (("one", None), ("two", "one"), ("three", "two")):
        await add(db, one, one, parent_session_id=parent)
        if one != "three":
            await db.end_session(one, "compression")
    assert await db.resolve_resume_session_id("one") == "three"

    assert await db.delete_session("two") is True

    assert await db.resolve_resume_session_id("one") == "one"
    assert await ids(db) == {"one", "three"}


@pytest.mark.requirement("session_db:delete:lineage")
async def test_a_subagent_that_outlives_its_parent_is_still_no_conversation(db: SessionDB) -> None:
    await add(db, "root", "hello")
    await delegate(db, "d", "root")
    assert await db.delete_sessions(["root"]) == 1

    assert await ids(db) == {"d"}
    assert await db.list_sessions_rich() == []


@pytest.mark.requirement("session_db:delete:expected")
async def test_a_delete_whose_targets_have_changed_removes_nothing(db: SessionDB) -> None:
    await add(db, "root", "hello")
    await delegate(db, "d", "root")
    shown = await db.get_session_delete_targets("root")
    await delegate(db, "e", "d")

    assert await db.delete_session("root", expected_delete_ids=shown) is False
    assert await ids(db) == {"root", "d", "e"}

    assert await db.delete_session("root", expected_delete_ids={"root", "e", "d"}) is True
    assert await ids(db) == set()


@pytest.mark.requirement("session_db:delete:empty")
@pytest.mark.parametrize(
    ("title", "words", "child", "goes"),
    [(None, (), False, True), ("T", (), False, False), (None, ("w",), False, False), (None, (), True, False)],
)
async def test_a_row_goes_as_empty_only_when_nothing_is_in_it(
    db: SessionDB, title: str | None, words: tuple[str, ...], child: bool, goes: bool
) -> None:
    await add(db, "s", *words)
    await db.set_session_title("s", title)
    if child:
        await add(db, "c", "w", parent_session_id="s")

    assert await db.delete_session_if_empty("s") is goes
    assert ("s" in await ids(db)) is not goes


@pytest.mark.requirement("session_db:delete:empty")
async def test_all_empty_rows_go_but_for_those_that_are_open(db: SessionDB) -> None:
    for name in ("open", "ended", "titled", "pinned", "parent"):
        await add(db, name)
    await add(db, "child", "w", parent_session_id="parent")
    await db.set_session_pinned("pinned", True)
    await add(db, "full", "w")
    await db.set_session_title("titled", "T")
    for name in ("ended", "titled", "full", "pinned", "parent"):
        await db.end_session(name, "done")

    assert await db.count_empty_sessions() == 1
    assert await db.delete_empty_sessions() == 1
    assert await db.count_empty_sessions() == 0
    assert await ids(db) == {"open", "titled", "full", "pinned", "parent", "child"}


@pytest.mark.requirement("session_db:delete:empty")
async def test_ghosts_are_empty_rows_that_a_terminal_left_a_day_ago(db: SessionDB, session_clock: ManualClock) -> None:
    await add(db, "ghost", source="tui")
    await add(db, "said", "w", source="tui")
    await add(db, "other", source="cli")
    await add(db, "open", source="tui")
    session_clock.advance(86_400_001)
    await add(db, "young", source="tui")
    for name in ("ghost", "said", "other", "young"):
        await db.end_session(name, "done")

    assert await db.prune_empty_ghost_sessions() == 1
    assert await ids(db) == {"said", "other", "open", "young"}


@pytest.mark.requirement("session_db:delete:files")
async def test_the_files_of_a_removed_session_go_and_no_others(db: SessionDB, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    mine = ("a.json", "a.jsonl", "request_dump_a_1.json", "request_dump_a_2_3.json")
    others = ("b.json", "ab.json", "request_dump_b_1.json", "request_dump_ab_1.json", "request_dump_a_1.txt", "a.txt")
    for name in (*mine, *others):
        (folder / name).write_text("x", encoding="utf-8")
    (tmp_path / "outside.json").write_text("x", encoding="utf-8")
    for name in ("a", "../outside", "*"):
        await add(db, name, "w")

    assert await db.delete_session("a", sessions_dir=folder) is True
    assert await db.delete_sessions(["../outside", "*"], sessions_dir=str(folder)) == 2

    assert {path.name for path in folder.iterdir()} == set(others)
    assert (tmp_path / "outside.json").exists()


@pytest.mark.requirement("session_db:delete:files")
async def test_a_folder_that_is_not_there_keeps_no_row(db: SessionDB, tmp_path: Path) -> None:
    await add(db, "a", "w")
    assert await db.delete_session("a", sessions_dir=tmp_path / "none") is True
    assert await ids(db) == set()


def fill(connection: Connection) -> None:
    """Make ended rows with a message each."""
    for one in range(MANY):
        row = {"id": f"s{one}"}
        connection.execute(
            "INSERT INTO sessions (id, source, started_at, ended_at, end_reason) VALUES (:id, 'cli', 1, 2, 'done')", row
        )
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (:id, 'user', 'w', 1)", row
        )


@pytest.mark.requirement("session_db:delete:any-number")
async def test_more_rows_than_a_statement_can_list_are_put_away_and_removed(db: SessionDB) -> None:
    await add(db, "kept")
    await db.write(fill)
    assert await db.archive_sessions() == MANY
    assert await db.delete_sessions(f"s{one}" for one in range(0, MANY, 2)) == MANY // 2
    assert await db.prune_sessions() == MANY // 2
    assert (await counted(db, "sessions"), await counted(db, "messages")) == (1, 0)
