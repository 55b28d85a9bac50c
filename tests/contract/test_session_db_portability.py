"""Sessions out of one store and into another."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.columns import SESSION_COLUMNS
from aip_hermes.embedded.session_db.errors import SessionExportTooLargeError
from aip_hermes.embedded.session_db.import_check import ImportLimits
from tests.support.postgres import FILE_STORE


@pytest.fixture
def db(session_db: SessionDB) -> SessionDB:
    return session_db


def session(session_id: str, *words: str, **members: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": word} for word in words]
    return {"id": session_id, "source": "cli", "started_at": 1.0, "messages": messages} | members


async def ids(db: SessionDB) -> set[str]:
    return {row["id"] for row in await db.list_sessions_rich(limit=1000, include_children=True)}


def numbered(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return exports whose messages have their place instead of their row id."""
    return [
        document | {"messages": [message | {"id": place} for place, message in enumerate(document["messages"])]}
        for document in documents
    ]


async def fill(db: SessionDB) -> None:
    """Make sessions with all that rows and messages can hold."""
    await db.create_session(
        "root", "cli", model="m", model_config={"max_tokens": 5}, system_prompt="P", user_id="u", session_key="k",
        chat_id="c", chat_type="dm", thread_id="t", cwd="/x", profile_name="p", git_repo_root="/r",
        origin_json='{"a":1}', display_name="D",
    )  # fmt: skip
    await db.set_session_title("root", "The title")
    contents: list[Any] = ["text\0\u0007", "", None, [{"type": "text", "text": "part"}], {"a": [1]}, 7, 1.5, "\ud83d"]
    for content in contents:
        await db.append_message("root", "user", content)
    await db.append_message(
        "root", "assistant", "answer", tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
        token_count=3, finish_reason="stop", reasoning="r", reasoning_content="", reasoning_details=[{"x": 1}],
        codex_reasoning_items='[ "as it came" ]', codex_message_items=[2], timestamp=12.5, api_content="api",
        display_kind="hidden", display_metadata={"k": "v"}, effect_disposition="done", platform_message_id="pm",
        observed=True,
    )  # fmt: skip
    await db.append_message("root", "tool", "result", tool_call_id="1", tool_name="f")
    await db.update_token_counts(
        "root", 2**40, 5, "m", estimated_cost_usd=0.5, cost_status="estimated", api_call_count=2
    )
    await db.end_session("root", "compression")
    await db.create_session("tip", "cli", parent_session_id="root", model_config={"other": 1})
    await db.append_message("tip", "user", "goes on")
    await db.fork_session("tip", "fork", title="Fork")
    await db.create_session("delegate", "tool", parent_session_id="fork", model_config={"_delegate_from": "fork"})


@pytest.mark.requirement("session_db:export:whole")
@pytest.mark.parametrize("session_id", ["", " ", "..", "a/b\\c", "\0", "i" * 300])
async def test_whatever_a_store_takes_as_id_or_role_comes_out_of_another_one(
    db: SessionDB, tmp_path: Path, session_id: str
) -> None:
    await db.create_session(session_id, "cli")
    await db.append_message(session_id, " ", "said by nobody")
    exported = await db.export_all()

    async with SessionDB(tmp_path / "other.db") as other:
        assert (await other.import_sessions(exported))["imported_ids"] == [session_id]
        assert numbered(await other.export_all()) == numbered(exported)


@pytest.mark.requirement("session_db:export:whole")
async def test_an_export_comes_out_of_another_store_as_it_went_in(db: SessionDB, tmp_path: Path) -> None:
    await fill(db)
    exported = await db.export_all()
    assert [document["id"] for document in exported] == ["delegate", "fork", "root", "tip"]
    assert tuple(exported[2]) == (*SESSION_COLUMNS, "messages")
    as_text = json.dumps(exported)

    async with SessionDB(tmp_path / "other.db") as other:
        done = await other.import_sessions(json.loads(as_text))
        assert done == {
            "ok": True, "imported": 4, "skipped": 0, "detached": 0, "untitled": 0,
            "imported_ids": ["delegate", "fork", "root", "tip"], "skipped_ids": [], "untitled_ids": [], "errors": [],
        }  # fmt: skip
        assert numbered(await other.export_all()) == numbered(exported)
        assert await other.resolve_resume_session_id("root") == "tip"
        assert await other.get_session_delete_targets("fork") == ["fork", "delegate"]
        listed = [(r["id"], r["preview"], r["last_active"]) for r in await other.list_sessions_rich()]
        assert listed == [(r["id"], r["preview"], r["last_active"]) for r in await db.list_sessions_rich()]


@pytest.mark.requirement("session_db:export:whole")
async def test_one_session_and_one_source_are_exported_alone(db: SessionDB) -> None:
    await fill(db)
    one = await db.export_session("tip")
    assert one is not None
    assert [message["content"] for message in one["messages"]] == ["goes on"]
    assert [document["id"] for document in await db.export_all(source="tool")] == ["delegate"]
    assert await db.export_session("nobody") is None


@pytest.mark.requirement("session_db:export:guard")
async def test_a_session_too_large_for_an_export_is_refused_with_both_numbers(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    await db.append_messages_batch("s", [{"role": "user", "content": "w"}] * 3)
    db.max_export_messages = 2
    with pytest.raises(SessionExportTooLargeError) as refused:
        await db.export_session("s")
    assert (refused.value.message_count, refused.value.limit) == (3, 2)
    db.max_export_messages = 0
    assert await db.export_session("s") is not None


@pytest.mark.requirement("session_db:export:lineage")
async def test_a_chain_is_one_conversation_from_each_of_its_rows(db: SessionDB) -> None:
    await fill(db)
    chain = await db.export_session_lineage("root")
    assert chain is not None
    assert chain["lineage_session_ids"] == ["root", "tip"]
    assert chain["segments"] == [await db.export_session("root"), await db.export_session("tip")]
    assert chain["id"] == "tip"
    assert chain["messages"] == [message for segment in chain["segments"] for message in segment["messages"]]
    assert await db.export_session_lineage("tip") == chain
    assert await db.export_session_lineage("nobody") is None


WRONG: list[tuple[Any, str]] = [
    ("text", "session must be an object"),
    ({}, "session id is required"),
    ({"id": None}, "session id is required"),
    ({"id": 5}, "session id is required"),
    (session("good"), "duplicate session id"),
    (session("x", messages={}), "messages must be a list"),
    (session("x", messages=["m"]), "messages must contain only objects"),
    (session("x", messages=[{"role": ""}]), "messages[0].role must be a non-empty string"),
    (session("x", messages=[{"role": "user", "tool_name": 1}]), "messages[0].tool_name must be a string"),
    (session("x", messages=[{"role": "user", "token_count": 2**64}]), "messages[0].token_count must be a whole number"),
    (
        session("x", messages=[{"role": "user", "content": 2**64}]),
        "messages[0].content must be a number that 64 bits hold",
    ),
    (session("x", cwd=[]), "cwd must be a string"),
    (session("x", model_config=[]), "model_config must be a string"),
    (session("x", started_at="now"), "started_at must be a number"),
    (session("x", ended_at=float("inf")), "ended_at must be a number"),
    (session("x", input_tokens=-1), "input_tokens must be a whole number"),
    (session("x", message_count=2**70), "message_count must be a whole number"),
    (session("x", pinned=2), "pinned must be 0 or 1"),
    (session("x", title="t" * 101), "Title too long (101 chars, max 100)"),
]


@pytest.mark.requirement("session_db:import:checked")
async def test_one_wrong_session_keeps_all_out(db: SessionDB) -> None:
    for wrong, error in WRONG:
        done = await db.import_sessions([session("good", "w"), wrong])
        named = isinstance(wrong, dict) and isinstance(wrong.get("id"), str)
        told = {"index": 1, "error": error} | ({"session_id": wrong["id"]} if named else {})
        assert (done["ok"], done["imported"], done["errors"]) == (False, 0, [told])
    assert await ids(db) == set()
    with pytest.raises(ValueError, match="list"):
        await db.import_sessions({})  # type: ignore[arg-type]


@pytest.mark.requirement("session_db:import:checked")
async def test_every_wrong_session_is_named(db: SessionDB) -> None:
    done = await db.import_sessions([{}, session("good"), "x"])  # type: ignore[list-item]
    assert [error["index"] for error in done["errors"]] == [0, 2]


@pytest.mark.requirement("session_db:import:checked")
@pytest.mark.parametrize(
    ("limits", "index", "error"),
    [
        (ImportLimits(sessions=1), 1, "import exceeds 1 sessions"),
        (ImportLimits(messages_per_session=1), 1, "session exceeds 1 messages"),
        (ImportLimits(messages=2), 1, "import exceeds 2 messages"),
        (ImportLimits(session_bytes=120), 1, "session exceeds 120 bytes"),
        (ImportLimits(bytes=200), 1, "import exceeds 200 bytes"),
    ],
)
async def test_an_import_has_limits(db: SessionDB, limits: ImportLimits, index: int, error: str) -> None:
    given = [session("a", "w"), session("b", "w", "w")]
    done = await db.import_sessions(given, limits=limits)
    assert [(each["index"], each["error"]) for each in done["errors"]] == [(index, error)]
    assert await ids(db) == set()
    assert (await db.import_sessions(given))["imported"] == 2


@pytest.mark.requirement("session_db:import:checked")
def test_the_limits_are_those_that_are_documented() -> None:
    mib = 1024 * 1024
    documented = ImportLimits(
        sessions=500, messages_per_session=10_000, messages=50_000, session_bytes=5 * mib, bytes=25 * mib
    )
    assert documented == ImportLimits()


@pytest.mark.requirement("session_db:import:never-merges")
async def test_an_id_that_is_there_is_skipped(db: SessionDB) -> None:
    await db.create_session("old", "cli")
    await db.append_message("old", "user", "mine")
    done = await db.import_sessions([session("old", "theirs"), session("new", "w", parent_session_id="old")])
    assert (done["imported_ids"], done["skipped_ids"], done["detached"]) == (["new"], ["old"], 0)
    assert [message["content"] for message in await db.get_messages("old")] == ["mine"]
    row = await db.get_session("new")
    assert row is not None
    assert row["parent_session_id"] == "old"


@pytest.mark.requirement("session_db:import:never-merges")
async def test_parents_are_linked_in_any_order_and_circles_are_cut_once(db: SessionDB) -> None:
    done = await db.import_sessions(
        [
            session("child", parent_session_id="root"),
            session("root"),
            session("lost", parent_session_id="nobody"),
            session("self", parent_session_id="self"),
            session("a", parent_session_id="b"),
            session("b", parent_session_id="c"),
            session("c", parent_session_id="a"),
        ]
    )
    assert done["detached"] == 3
    rows = {row["id"]: row["parent_session_id"] for row in await db.list_sessions_rich(include_children=True)}
    assert rows == {"child": "root", "root": None, "lost": None, "self": None, "a": "b", "b": "c", "c": None}


@pytest.mark.requirement("session_db:import:titles")
async def test_a_title_that_is_used_is_left_out_and_said(db: SessionDB) -> None:
    await db.create_session("old", "cli")
    await db.set_session_title("old", "Mine")
    done = await db.import_sessions(
        [session("x", title="Mine"), session("y", title="Ours", title_source="llm"), session("z", title="Ours")]
    )
    assert (done["ok"], done["imported"], done["untitled"], done["untitled_ids"]) == (True, 3, 2, ["x", "z"])
    titles = {row["id"]: (row["title"], row["title_source"]) for row in await db.list_sessions_rich()}
    assert titles == {"old": ("Mine", "user"), "x": (None, None), "y": ("Ours", "llm"), "z": (None, None)}


@pytest.mark.requirement("session_db:export:whole")
async def test_counters_tell_of_rewound_rows_too_and_never_of_fewer_than_there_are(db: SessionDB) -> None:
    await db.import_sessions([session("s", "a", "b", message_count=5), session("t", "a", "b", message_count=1)])
    rows = {row["id"]: row["message_count"] for row in await db.list_sessions_rich()}
    assert rows == {"s": 5, "t": 2}


@FILE_STORE
@pytest.mark.requirement("session_db:import:checked")
async def test_an_import_that_fails_in_the_store_leaves_nothing(db: SessionDB) -> None:
    await db.create_session("old", "cli")
    raw = sqlite3.connect(db.path)
    with raw:
        raw.execute(
            "CREATE TRIGGER full BEFORE INSERT ON sessions WHEN NEW.id = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    raw.close()
    with pytest.raises(Exception, match="no"):
        await db.import_sessions([session("a", "w"), session("b", "w")])
    assert await ids(db) == {"old"}
