"""The session store on a real file."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import StoreRefused, StoreUnavailable
from aip_hermes.embedded.session_db import (
    CompressionSessionClosedError,
    SessionDB,
    SessionExists,
    TitleRefused,
    UnknownSession,
    Usage,
)
from aip_hermes.embedded.session_db.columns import MESSAGE_COLUMNS, SESSION_COLUMNS
from tests.support.embedded_endpoint import SteppingClock


@pytest.mark.requirement("embedded:store:lazy")
async def test_the_first_operation_makes_the_file_and_closing_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "hermes.db"

    async with SessionDB(path) as db:
        assert not path.exists()
        assert await db.get_session("none") is None
        assert path.exists()
    await db.close()

    with pytest.raises(RuntimeError):
        await db.get_session("none")


@pytest.mark.requirement("embedded:store:lazy")
async def test_a_read_only_store_makes_nothing(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db", read_only=True) as db:
        with pytest.raises(StoreUnavailable):
            await db.get_session("none")
    assert not (tmp_path / "hermes.db").exists()


@pytest.mark.requirement("embedded:store:foreign-file")
async def test_a_state_file_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE sessions (id TEXT)")
    foreign.close()
    before = path.read_bytes()

    async with SessionDB(path) as db:
        with pytest.raises(StoreRefused):
            await db.get_session("none")

    assert path.read_bytes() == before


@pytest.mark.requirement("embedded:store:enrich")
async def test_a_second_create_fills_empty_places_only(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli", model="first")
        await db.create_session(
            "s", "other", model="second", system_prompt="P", model_config={"max_tokens": 5}, cwd="/x"
        )
        row = await db.get_session("s")

        assert row is not None
        assert tuple(row) == SESSION_COLUMNS
        assert (row["source"], row["model"], row["system_prompt"], row["cwd"]) == ("cli", "first", "P", "/x")
        assert row["model_config"] == '{"max_tokens": 5}'


@pytest.mark.requirement("embedded:store:enrich")
async def test_children_inherit_and_an_unknown_parent_is_refused(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("p", "cli", cwd="/x", user_id="u", session_key="k")
        await db.create_session("plain", "cli", parent_session_id="p")
        await db.end_session("p", "compression")
        await db.create_session("next", "cli", parent_session_id="p")
        plain, following = await db.get_session("plain"), await db.get_session("next")

        assert plain is not None
        assert following is not None
        assert (plain["cwd"], plain["user_id"], plain["session_key"]) == ("/x", None, None)
        assert (following["cwd"], following["user_id"], following["session_key"]) == ("/x", "u", "k")
        with pytest.raises(UnknownSession):
            await db.create_session("lost", "cli", parent_session_id="nobody")
        assert await db.get_session("lost") is None


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("W\0s\0l", "W\0s\0l"),
        ("", ""),
        (None, None),
        ("\ud83d", "\ufffd"),
        ("\0json:[1]", "\0json:[1]"),
        ("漢字 🙂 e\u0301", "漢字 🙂 e\u0301"),
        ([{"type": "text", "text": "a\ud83d"}], [{"type": "text", "text": "a\ufffd"}]),
        ({"a": [1, None]}, {"a": [1, None]}),
        (7, 7),
        (b"\x00\xff", b"\x00\xff"),
    ],
)
@pytest.mark.requirement("embedded:store:exact-text")
async def test_contents_come_back_as_they_were(tmp_path: Path, given: object, stored: object) -> None:
    path = tmp_path / "hermes.db"
    async with SessionDB(path) as db:
        await db.create_session("s", "cli")
        await db.append_message("s", "user", given)
    async with SessionDB(path) as db:
        (row,) = await db.get_messages("s")

        assert tuple(row) == MESSAGE_COLUMNS
        assert row["content"] == stored


@pytest.mark.requirement("embedded:store:exact-text")
async def test_every_field_of_a_message_survives(tmp_path: Path) -> None:
    calls = [{"id": "c1", "function": {"name": "terminal", "arguments": '{"x": "\\ud83d"}'}}]
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")
        await db.append_message(
            "s",
            "assistant",
            "x",
            tool_calls='[{"id": "c0"}]',
            reasoning_content="",
            display_metadata='{"a": 1}',
            reasoning_details=[{"r": 1}],
            timestamp="never",
        )
        await db.append_messages_batch("s", [{"role": "assistant", "content": "y", "tool_calls": calls}])
        await db.append_message("s", "tool", "z", tool_call_id="c1", display_metadata=[1], tool_calls="broken")
        first, second, third = await db.get_messages("s")
        row = await db.get_session("s")

        assert (first["tool_calls"], first["reasoning_content"]) == ([{"id": "c0"}], "")
        assert (first["display_metadata"], first["reasoning_details"]) == ({"a": 1}, '[{"r": 1}]')
        assert first["timestamp"] > 1_700_000_000
        assert (second["tool_calls"], second["reasoning_content"]) == (calls, None)
        assert (third["tool_calls"], third["display_metadata"]) == ([], None)
        assert row is not None
        assert (row["message_count"], row["tool_call_count"]) == (3, 2)


@pytest.mark.requirement("embedded:store:order")
async def test_rows_keep_their_order_while_the_clock_steps_back(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db", clock=SteppingClock(step_ms=-1000)) as db:
        await db.create_session("s", "cli")
        for text in "abc":
            await db.append_message("s", "user", text)
        rows = await db.get_messages("s")

        assert [row["content"] for row in rows] == ["a", "b", "c"]
        assert rows[0]["timestamp"] > rows[2]["timestamp"]
        assert [row["content"] for row in await db.get_messages("s", limit=1, latest=True)] == ["c"]
        assert [row["content"] for row in await db.get_messages("s", after_id=rows[0]["id"])] == ["b", "c"]
        with pytest.raises(ValueError, match="after_id"):
            await db.get_messages("s", after_id=1, latest=True)


@pytest.mark.requirement("embedded:store:order")
async def test_default_times_within_a_batch_step_forward(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")
        assert await db.append_messages_batch("s", [{"role": "user", "content": str(n)} for n in range(3)]) == 3
        times = [row["timestamp"] for row in await db.get_messages("s")]

        assert times == sorted(set(times))
        assert await db.append_messages_batch("s", []) == 0


@pytest.mark.requirement("embedded:store:counters")
async def test_counters_are_exact_under_sixteen_writers(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")

        async def write(writer: int) -> None:
            for turn in range(5):
                await db.append_message("s", "assistant", f"{writer}.{turn}", tool_calls=[{"id": "x"}])
            await db.append_messages_batch("s", [{"role": "user", "content": f"{writer}.{n}"} for n in range(3)])

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for writer in range(16):
                group.create_task(write(writer))
        row = await db.get_session("s")

        assert row is not None
        assert (row["message_count"], row["tool_call_count"]) == (128, 80)
        assert await db.message_count("s") == 128


@pytest.mark.requirement("embedded:store:first-reason")
async def test_the_first_end_reason_wins_and_appends_go_on(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")
        await db.end_session("s", "one")
        await db.end_session("s", "two")
        await db.end_session("nobody", "one")
        await db.append_message("s", "user", "late")
        row = await db.get_session("s")

        assert row is not None
        assert row["end_reason"] == "one"
        assert row["message_count"] == 1


@pytest.mark.requirement("embedded:store:closed-by-compression", "embedded:store:tip")
async def test_a_chain_is_resumed_at_its_tip_from_every_member(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await chain(db, "a", "b", "c")
        await db.fork_session("c", "f", title=None)

        for member in "abc":
            assert await db.resolve_resume_session_id(member) == "c"
            assert await db.get_compression_tip(member) == "c"
        assert await db.resolve_resume_session_id("nobody") == "nobody"
        with pytest.raises(CompressionSessionClosedError) as refused:
            await db.append_message("a", "user", "lost")
        assert refused.value.tip == "c"
        with pytest.raises(UnknownSession):
            await db.append_message("nobody", "user", "lost")


@pytest.mark.requirement("embedded:store:titles")
async def test_titles_are_unique_by_case_and_the_refusal_names_the_holder(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_absent_session("a", "cli", title="My title")
        await db.create_absent_session("b", "cli", title="my TITLE")

        with pytest.raises(TitleRefused) as refused:
            await db.set_session_title("b", " My  title ")
        assert refused.value.holder == "a"
        with pytest.raises(TitleRefused):
            await db.set_session_title("b", "t" * 101)
        assert await db.set_session_title("a", "My title")
        assert await db.set_session_title("a", "")
        assert await db.set_session_title("b", "My title")
        assert not await db.set_session_title("nobody", "x")
        holder = await db.get_session_by_title("My title")
        assert holder is not None
        assert holder["id"] == "b"
        with pytest.raises(SessionExists):
            await db.create_absent_session("a", "cli")


@pytest.mark.requirement("embedded:store:titles")
async def test_a_compressed_ancestor_hands_its_title_over(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_absent_session("a", "cli", title="Work")
        await chain(db, "a", "b", "c")

        assert await db.set_session_title("c", "Work")
        ancestor, tip = await db.get_session("a"), await db.get_session("c")

        assert ancestor is not None
        assert tip is not None
        assert (ancestor["title"], tip["title"]) == (None, "Work")
        assert await db.get_next_title_in_lineage("Work") == "Work #2"


@pytest.mark.requirement("embedded:store:delete")
async def test_deleting_the_middle_of_a_chain_keeps_the_rest(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await chain(db, "a", "b", "c", "d")
        await db.append_message("d", "user", "kept")

        assert await db.delete_session("b")
        assert not await db.delete_session("b")
        orphan = await db.get_session("c")

        assert orphan is not None
        assert orphan["parent_session_id"] is None
        assert await db.resolve_resume_session_id("a") == "a"
        assert await db.resolve_resume_session_id("c") == "d"
        assert len(await db.get_messages("d")) == 1


@pytest.mark.requirement("embedded:store:delete")
async def test_subagents_go_with_their_parent_and_a_branch_of_one_stays(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("p", "cli", system_prompt="P")
        await db.create_session("d", "subagent", parent_session_id="p", model_config={"_delegate_from": "p"})
        await db.create_session("dd", "subagent", parent_session_id="d", model_config={"_delegate_from": "d"})
        await db.append_message("d", "user", "text")
        await db.fork_session("d", "branch", title="Branch")

        assert await db.delete_session("p")

        assert [await db.get_session(gone) for gone in ("p", "d", "dd")] == [None, None, None]
        assert len(await db.get_messages("branch")) == 1
        assert [row["id"] for row in await db.list_sessions_rich()] == ["branch"]
        assert await db.delete_session("branch")


@pytest.mark.requirement("embedded:list:projection")
async def test_a_compressed_root_is_listed_as_its_continuation(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db", clock=SteppingClock()) as db:
        await chain(db, "a", "b")
        await db.create_session("other", "cli")
        await db.append_message("b", "user", "newest")
        page = await db.list_sessions_rich(order_by_last_active=True)
        everything = await db.list_sessions_rich(order_by_last_active=True, include_children=True)

        assert [(row["id"], row.get("_lineage_root_id"), row["preview"]) for row in page] == [
            ("b", "a", "newest"),
            ("other", None, ""),
        ]
        assert {row["id"] for row in everything} == {"a", "b", "other"}
        assert await db.list_sessions_rich(limit=0) == []


async def chain(db: SessionDB, *ids: str) -> None:
    """Make rows that a compression ended, each the parent of the next; the last one is open."""
    parent: str | None = None
    for session_id in ids:
        await db.create_session(session_id, "cli", parent_session_id=parent)
        if parent is not None:
            await db.end_session(parent, "compression")
        parent = session_id


async def test_a_reply_carries_its_usage_in_one_step(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")
        usage = Usage(input_tokens=2**31, output_tokens=2)
        await db.record_reply("s", "r", finish_reason="stop", usage=usage, model="m")
        row: dict[str, Any] | None = await db.get_session("s")

        assert row is not None
        assert (row["input_tokens"], row["output_tokens"], row["api_call_count"], row["model"]) == (2**31, 2, 1, "m")
        with pytest.raises(UnknownSession):
            await db.record_reply("gone", "r", finish_reason="stop", usage=usage, model="m")
        assert await db.get_session("gone") is None


@pytest.mark.requirement("embedded:store:possible-counts")
@pytest.mark.parametrize("impossible", [-1, 2**53, 2**62, 10**40])
async def test_a_count_of_tokens_that_no_store_could_add_up_is_none(tmp_path: Path, impossible: int) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "cli")
        for _ in range(3):
            usage = Usage(input_tokens=impossible, output_tokens=impossible, cache_read_tokens=5)
            await db.record_reply("s", "r", finish_reason="stop", usage=usage, model="m")
        row: dict[str, Any] | None = await db.get_session("s")

        assert row is not None
        assert (row["input_tokens"], row["output_tokens"], row["cache_read_tokens"]) == (0, 0, 15)
        assert (row["message_count"], row["api_call_count"]) == (3, 3)
