"""Making rows: what a second create fills, what a child inherits, and where a system prompt is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB, UnknownSession
from aip_hermes.embedded.session_db.columns import SESSION_COLUMNS
from tests.support.runtime_clock import ManualClock

FIELDS: dict[str, Any] = {
    "model": "m",
    "model_config": {"max_tokens": 5},
    "system_prompt": "P",
    "user_id": "u",
    "session_key": "k",
    "chat_id": "c",
    "chat_type": "group",
    "thread_id": "t",
    "cwd": "/x",
    "profile_name": "p",
    "git_repo_root": "/",
    "origin_json": "{}",
    "display_name": "D",
}


async def row_of(db: SessionDB, session_id: str) -> dict[str, Any]:
    row = await db.get_session(session_id)
    assert row is not None
    return row


@pytest.mark.requirement("session_db:create:inherit")
async def test_a_row_has_every_column_and_counts_from_nothing(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    assert await session_db.create_session("s", "cli", **FIELDS) == "s"
    row = await row_of(session_db, "s")

    assert tuple(row) == SESSION_COLUMNS
    for name, value in FIELDS.items():
        assert row[name] == (json.dumps(value) if name == "model_config" else value)
    assert row["started_at"] == session_clock.now_ms() / 1000
    counters = [name for name in SESSION_COLUMNS if name.endswith(("_tokens", "_count", "_streak"))]
    assert {name: row[name] for name in counters} == dict.fromkeys(counters, 0)
    assert [row[name] for name in ("archived", "pinned", "hidden", "expiry_finalized")] == [0, 0, 0, 0]
    assert [row[name] for name in ("ended_at", "end_reason", "title", "last_activity_at", "last_read_at")] == [None] * 5


@pytest.mark.requirement("session_db:create:inherit")
@pytest.mark.parametrize("again", ["create_session", "ensure_session"])
async def test_a_second_create_fills_what_is_null(
    session_db: SessionDB, session_clock: ManualClock, again: str
) -> None:
    await session_db.create_session("s", "cli", model="first", cwd="/first")
    started = (await row_of(session_db, "s"))["started_at"]
    session_clock.advance(60_000)
    await getattr(session_db, again)("s", "other", **FIELDS)
    row = await row_of(session_db, "s")

    kept = {"model": "first", "cwd": "/first", "user_id": None, "model_config": '{"max_tokens": 5}'}
    assert {name: row[name] for name in FIELDS} == FIELDS | kept
    assert (row["source"], row["started_at"]) == ("cli", started)


@pytest.mark.requirement("session_db:create:inherit")
async def test_ensure_makes_a_row_of_unknown_source(session_db: SessionDB) -> None:
    assert await session_db.ensure_session("s", model="m") == "s"
    assert (await row_of(session_db, "s"))["source"] == "unknown"


@pytest.mark.requirement("session_db:create:inherit")
async def test_a_configuration_stays_unless_it_is_the_mark_of_a_reset_alone(session_db: SessionDB) -> None:
    await session_db.create_session("p", "cli")
    await session_db.create_session("s", "cli", parent_session_id="p", model_config={"_reset_from": "p"})
    await session_db.create_session("s", "cli", model_config={"max_tokens": 5})
    await session_db.create_session("s", "cli", model_config={"max_tokens": 9})
    await session_db.create_session("e", "cli", model_config={})

    assert json.loads((await row_of(session_db, "s"))["model_config"]) == {"_reset_from": "p", "max_tokens": 5}
    assert (await row_of(session_db, "e"))["model_config"] is None


@pytest.mark.requirement("session_db:create:inherit")
@pytest.mark.parametrize("reason", [None, "branched", "compression"])
async def test_a_child_inherits_its_place_and_after_a_compression_its_owner(
    session_db: SessionDB, reason: str | None
) -> None:
    await session_db.create_session("p", "cli", **FIELDS)
    if reason:
        await session_db.end_session("p", reason)
    await session_db.create_session("c", "cli", parent_session_id="p", git_repo_root="/own")
    child = await row_of(session_db, "c")

    place = {"cwd": "/x", "git_repo_root": "/own", "profile_name": "p"}
    assert {name: child[name] for name in place} == place
    owner = ("user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json")
    inherited = {name: FIELDS[name] if reason == "compression" else None for name in owner}
    assert {name: child[name] for name in owner} == inherited
    assert child["model"] is None


@pytest.mark.requirement("session_db:create:inherit")
async def test_an_unknown_parent_is_refused(session_db: SessionDB) -> None:
    with pytest.raises(UnknownSession) as refused:
        await session_db.create_session("lost", "cli", parent_session_id="nobody")
    assert refused.value.session_id == "nobody"
    assert await session_db.get_session("lost") is None


@pytest.mark.requirement("session_db:create:inherit")
@pytest.mark.parametrize("session_id", ["", " ", "a/b", "a\nb", "ü" * 256, "%", "x" * 4096, "\ud800"])
async def test_any_text_is_an_id(session_db: SessionDB, session_id: str) -> None:
    await session_db.create_session(session_id, "cli")
    await session_db.append_message(session_id, "user", "hello")
    (message,) = await session_db.get_messages(session_id)
    assert message["session_id"] == session_id.replace("\ud800", "\ufffd")
    assert await session_db.message_count(session_id) == 1


@pytest.mark.requirement("session_db:prompts")
async def test_a_prompt_is_stored_once_and_goes_with_its_last_row(session_db: SessionDB) -> None:
    for name in ("a", "b"):
        await session_db.create_session(name, "cli", system_prompt="You are kind. " * 100)
    a, b = await row_of(session_db, "a"), await row_of(session_db, "b")
    assert a["system_prompt"] == b["system_prompt"] == "You are kind. " * 100
    assert a["system_prompt_hash"] == b["system_prompt_hash"]

    async def kept() -> int:
        rows = await session_db.read(lambda c: c.execute("SELECT COUNT(*) AS n FROM system_prompts"))
        return int(rows[0]["n"])

    assert await kept() == 1
    await session_db.update_system_prompt("a", "Be brief.")
    assert (await row_of(session_db, "a"))["system_prompt"] == "Be brief."
    assert await kept() == 2
    await session_db.update_session_model("b", "other")
    assert (await row_of(session_db, "b"))["system_prompt"] is None
    assert await kept() == 1
    await session_db.delete_session("a")
    assert await kept() == 0
