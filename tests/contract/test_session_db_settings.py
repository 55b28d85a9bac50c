"""Single values of a row, values of the store, and signs of life."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aip_hermes.embedded.session_db import GrantStore, ResponseStore, SessionDB, StoredResponse, Usage
from tests.support.runtime_clock import ManualClock

UNKNOWN = "nobody"


async def row_of(db: SessionDB, session_id: str = "s") -> dict[str, Any]:
    row = await db.get_session(session_id)
    assert row is not None
    return row


@pytest.fixture
async def before(session_db: SessionDB) -> dict[str, Any]:
    """The row `s` before anything is changed."""
    await session_db.create_session(
        "s", "cli", model="m", model_config={"a": 1, "browser_model_lock": {"x": 1}}, cwd="/x", system_prompt="P"
    )
    await session_db.update_session_cwd("s", "/x", git_branch="main", git_repo_root="/repo")
    return await row_of(session_db)


async def changed(db: SessionDB, before: dict[str, Any]) -> dict[str, Any]:
    row = await row_of(db)
    return {name: value for name, value in row.items() if value != before[name]}


@pytest.mark.requirement("session_db:settings")
async def test_a_place_keeps_what_git_knows_unless_it_is_replaced(
    session_db: SessionDB, before: dict[str, Any]
) -> None:
    await session_db.update_session_cwd("s", "/y")
    assert await changed(session_db, before) == {"cwd": "/y"}
    await session_db.update_session_cwd("s", "/x", git_branch="topic", replace_git_meta=True)
    assert await changed(session_db, before) == {"git_branch": "topic", "git_repo_root": None}
    await session_db.backfill_repo_roots({"/x": "/found", "/nowhere": "/z", "/y": ""})
    assert await changed(session_db, before) == {"git_branch": "topic", "git_repo_root": "/found"}
    await session_db.backfill_repo_roots({"/x": "/other"})
    assert (await row_of(session_db))["git_repo_root"] == "/found"


@pytest.mark.requirement("session_db:settings")
async def test_a_configuration_is_patched_and_read_by_member(session_db: SessionDB, before: dict[str, Any]) -> None:
    await session_db.patch_session_model_config("s", {"a": None, "b": [1]})
    row = await changed(session_db, before)
    assert json.loads(row.pop("model_config")) == {"browser_model_lock": {"x": 1}, "b": [1]}
    assert row == {}
    assert await session_db.get_session_model_config_value("s", "b") == [1]
    assert await session_db.get_session_model_config_value("s", "a", 7) == 7
    assert await session_db.get_session_model_config_value(UNKNOWN, "a", 7) == 7
    await session_db.patch_session_model_config("s", {"browser_model_lock": None, "b": None})
    assert (await row_of(session_db))["model_config"] is None


@pytest.mark.requirement("session_db:settings")
async def test_a_mark_in_a_patch_says_what_a_child_is(session_db: SessionDB) -> None:
    await session_db.create_session("p", "cli")
    await session_db.create_session("c", "cli", parent_session_id="p")
    assert len(await session_db.list_sessions_rich()) == 1
    await session_db.patch_session_model_config("c", {"_branched_from": "p"})
    assert len(await session_db.list_sessions_rich()) == 2
    await session_db.update_session_meta("c", '{"_delegate_from": "p"}', model="m")
    assert await session_db.get_session_delete_targets("p") == ["p", "c"]
    assert (await row_of(session_db, "c"))["model"] == "m"
    await session_db.update_session_meta("c", "{}")
    assert (await row_of(session_db, "c"))["model"] == "m"
    assert await session_db.get_session_delete_targets("p") == ["p"]


@pytest.mark.requirement("session_db:settings")
async def test_a_new_model_lets_go_of_lock_and_prompt(session_db: SessionDB, before: dict[str, Any]) -> None:
    await session_db.update_session_model("s", "n")
    row = await changed(session_db, before)
    assert row == {"model": "n", "model_config": '{"a": 1}', "system_prompt": None, "system_prompt_hash": None}
    await session_db.update_system_prompt("s", "Q")
    assert (await row_of(session_db))["system_prompt"] == "Q"
    await session_db.update_system_prompt("s", None)
    assert (await row_of(session_db))["system_prompt"] is None


@pytest.mark.requirement("session_db:settings")
async def test_a_route_and_its_lock_are_written(
    session_db: SessionDB, session_clock: ManualClock, before: dict[str, Any]
) -> None:
    await session_db.update_session_billing_route("s", provider="p", base_url="https://x", billing_mode="api")
    await session_db.update_session_billing_route("s", provider="q", base_url="https://y")
    billed = {"billing_provider": "q", "billing_base_url": "https://y", "billing_mode": "api"}
    assert await changed(session_db, before) == billed
    await session_db.update_session_runtime_lock("s", model="n", provider="q", model_options={"o": 1}, confirmed=True)
    lock = await session_db.get_session_model_config_value("s", "browser_model_lock")
    assert lock == {
        "model": "n",
        "provider": "q",
        "model_options": {"o": 1},
        "confirmed": True,
        "updated_at": session_clock.now_ms() / 1000,
    }


@pytest.mark.requirement("session_db:settings")
async def test_what_concerns_an_unknown_row_changes_nothing(session_db: SessionDB) -> None:
    await session_db.update_session_cwd(UNKNOWN, "/y")
    await session_db.update_session_meta(UNKNOWN, "{}")
    await session_db.update_session_model(UNKNOWN, "n")
    await session_db.update_system_prompt(UNKNOWN, "P")
    await session_db.update_session_billing_route(UNKNOWN, provider="p", base_url="u")
    await session_db.update_session_runtime_lock(UNKNOWN, model="m")
    await session_db.patch_session_model_config(UNKNOWN, {"a": 1})
    await session_db.touch_session_activity(UNKNOWN)
    await session_db.clear_session_activity_labels(UNKNOWN)
    assert await session_db.get_session_activity(UNKNOWN) is None
    assert await session_db.session_count(include_archived=True) == 0


@pytest.mark.requirement("session_db:settings")
async def test_activity_never_steps_back(session_db: SessionDB, session_clock: ManualClock) -> None:
    await session_db.create_session("s", "cli")
    now = session_clock.now_ms() / 1000
    await session_db.touch_session_activity("s", now + 10, description="x " * 100, provenance="agent.compression")
    await session_db.touch_session_activity("s", now + 5)
    await session_db.touch_session_activity("s")
    label = ("x " * 60)[:119] + "…"
    noted = {
        "last_activity_at": now + 10,
        "last_activity_description": label,
        "last_activity_provenance": "agent.compression",
        "seconds_since_activity": 0.0,
        "last_activity_ts": now + 10,
        "last_activity_desc": label,
        "description": label,
        "provenance": "agent.compression",
    }
    assert await session_db.get_session_activity("s") == noted
    session_clock.advance(15_000)
    await session_db.clear_session_activity_labels("s")
    nothing = dict.fromkeys(("last_activity_description", "last_activity_desc", "description"), "")
    unknown = dict.fromkeys(("last_activity_provenance", "provenance"), "unknown")
    assert await session_db.get_session_activity("s") == noted | nothing | unknown | {"seconds_since_activity": 5.0}
    await session_db.touch_session_activity("s", provenance="weather")
    assert (await row_of(session_db))["last_activity_provenance"] == "unknown"


@pytest.mark.requirement("session_db:settings")
async def test_the_store_keeps_notes_of_its_own(session_db: SessionDB) -> None:
    assert await session_db.get_meta("key") is None
    await session_db.set_meta("key", "one")
    await session_db.set_meta("key", "two\0\u00e9")
    assert await session_db.get_meta("key") == "two\0\u00e9"


HALF = "a\ud800b"
WHOLE = "a\ufffdb"


@pytest.mark.requirement("session_db:settings:any-text")
async def test_a_lone_surrogate_in_any_value_is_replaced(session_db: SessionDB, before: dict[str, Any]) -> None:
    await session_db.set_meta(HALF, HALF)
    assert await session_db.get_meta(HALF) == WHOLE
    await session_db.update_session_meta("s", json.dumps({"a": HALF}), HALF)
    await session_db.update_session_billing_route("s", provider=HALF, base_url=HALF, billing_mode=HALF)
    await session_db.patch_session_model_config("s", {"b": HALF})
    await session_db.record_reply("s", HALF, finish_reason=HALF, usage=Usage(), model=HALF)
    names = ("model", "billing_provider", "billing_base_url", "billing_mode")
    row = await row_of(session_db)
    assert [row[name] for name in names] == [WHOLE] * 4
    assert json.loads(row["model_config"]) == {"a": WHOLE, "b": WHOLE}
    session_db.actor = HALF
    assert await session_db.delete_session("s") is True
    assert [entry["actor"] for entry in await session_db.list_removals("s")] == [WHOLE]


@pytest.mark.requirement("session_db:settings:any-text")
async def test_a_lone_surrogate_in_a_response_or_a_grant_is_replaced(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    responses, grants = ResponseStore(session_db), GrantStore(session_db, clock=session_clock)
    kept = StoredResponse(id="r", session_id=HALF, instructions=HALF, history=[], document={})
    await responses.keep(kept, conversation=HALF)
    stored = StoredResponse(id="r", session_id=WHOLE, instructions=WHOLE, history=[], document={})
    assert await responses.end_of(HALF) == await responses.use("r") == stored
    assert [await responses.use(HALF), await responses.delete(HALF)] == [None, False]
    await grants.keep(HALF)
    assert [await grants.covers(HALF), await grants.covers("a")] == [True, False]
