"""Chains that compressions cut, forks, and what a person reads of them."""

from __future__ import annotations

import pytest

from aip_hermes.embedded.session_db import (
    SessionDB,
    SessionExportTooLargeError,
    SessionResumeTooLargeError,
    TitleRefused,
)
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore, chain, ids_of, said, texts


@pytest.mark.requirement("session_db:lineage:chain")
async def test_from_every_member_of_a_chain_the_answers_are_the_same(session_store: OpenStore) -> None:
    async with session_store() as db:
        await chain(db, "a", "b", "c")
    async with session_store() as db:
        for member in "abc":
            assert await db.get_compression_tip(member) == "c"
            assert await db.resolve_resume_session_id(member) == "c"
            assert await db.get_compression_lineage(member) == ["a", "b", "c"]
            assert await db.get_conversation_root(member) == "a"
        assert (await db.find_live_compression_child("b") or {})["id"] == "c"
        assert await db.find_live_compression_child("c") is None

        model, display = await db.get_resume_conversations("c")
        assert texts(model) == ["in c"]
        assert texts(display) == ["in a", "in b", "in c"]
        assert all("_row_id" in message for message in (*model, *display))
        assert texts(await db.get_messages_as_conversation("c", include_ancestors=True)) == texts(display)
        assert texts(await db.get_ancestor_display_prefix("c")) == ["in a", "in b"]
        assert await db.get_resume_message_count("c") == 3
        assert texts((await db.get_resume_conversations("b"))[1]) == ["in a", "in b"]


@pytest.mark.requirement("session_db:lineage:chain")
async def test_an_unknown_id_is_its_own_answer(session_db: SessionDB) -> None:
    for session_id in ("", "nobody"):
        assert await session_db.get_compression_tip(session_id) == session_id
        assert await session_db.resolve_resume_session_id(session_id) == session_id
        assert await session_db.get_conversation_root(session_id) == session_id
        assert await session_db.get_compression_lineage(session_id) == []
        assert await session_db.get_resume_conversations(session_id) == ([], [])
        assert await session_db.find_live_compression_child(session_id) is None
        assert await session_db.get_resume_message_count(session_id) == 0


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_delete_in_the_middle_cuts_the_chain_and_keeps_the_rest(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b", "c", "d")
    assert await session_db.delete_session("b")

    assert await session_db.resolve_resume_session_id("a") == "a"
    assert await session_db.resolve_resume_session_id("c") == "d"
    assert await session_db.get_compression_lineage("d") == ["c", "d"]
    assert texts((await session_db.get_resume_conversations("d"))[1]) == ["in c", "in d"]
    assert set(ids_of(await session_db.list_sessions_rich())) == {"a", "d"}
    for survivor in "acd":
        assert await session_db.delete_session(survivor)
    assert await session_db.session_count(include_archived=True) == 0


@pytest.mark.requirement("session_db:lineage:chain")
async def test_of_several_continuations_the_compressed_then_the_live_then_the_latest_goes_on(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await session_db.create_session("p", "cli")
    await session_db.end_session("p", "compression")
    for name in ("ended", "live", "later"):
        session_clock.advance(1000)
        await session_db.create_session(name, "cli", parent_session_id="p")
    session_clock.advance(1000)
    await session_db.end_session("ended", "client_closed")
    await said(session_db, "ended", "the last word")
    assert await session_db.get_compression_tip("p") == "later"
    assert await session_db.find_live_compression_child("p") is None

    session_clock.advance(1000)
    await said(session_db, "live", "busy")
    assert await session_db.get_compression_tip("p") == "live"
    await session_db.end_session("later", "compression")
    assert await session_db.get_compression_tip("p") == "later"
    assert (await session_db.find_live_compression_child("p") or {})["id"] == "live"


@pytest.mark.parametrize(
    ("source", "config"),
    [("tool", None), ("cli", {"_branched_from": "p"}), ("cli", {"_delegate_from": "p"}), ("cli", {"_reset_from": "p"})],
)
@pytest.mark.requirement("session_db:lineage:chain")
async def test_what_is_marked_as_something_else_continues_nothing(
    session_db: SessionDB, source: str, config: dict[str, str] | None
) -> None:
    await session_db.create_session("p", "cli")
    await said(session_db, "p", "mine")
    await session_db.end_session("p", "compression")
    await session_db.create_session("c", source, parent_session_id="p", model_config=config)
    assert await session_db.resolve_resume_session_id("p") == "p"


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_continuation_that_inherits_the_mark_of_a_reset_continues(session_db: SessionDB) -> None:
    await session_db.create_session("old", "cli")
    await session_db.create_session("new", "cli", parent_session_id="old", model_config={"_reset_from": "old"})
    await session_db.end_session("new", "compression")
    await session_db.create_session("next", "cli", parent_session_id="new", model_config={"_reset_from": "old"})
    assert await session_db.get_compression_lineage("new") == ["new", "next"]
    assert set(ids_of(await session_db.list_sessions_rich())) == {"next", "old"}


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_chain_that_runs_in_a_circle_ends(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b")
    await session_db.end_session("b", "compression")
    await session_db.write(lambda c: c.execute("UPDATE sessions SET parent_session_id = 'b' WHERE id = 'a'"))

    assert await session_db.get_compression_tip("a") in ("a", "b")
    assert set(await session_db.get_compression_lineage("a")) == {"a", "b"}
    assert await session_db.get_conversation_root("a") in ("a", "b")
    assert sorted(texts((await session_db.get_resume_conversations("a"))[1])) == ["in a", "in b"]
    assert await session_db.list_sessions_rich(order_by_last_active=True) == []
    assert await session_db.set_session_archived("a", True)


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_message_sent_again_unanswered_is_shown_once(session_db: SessionDB) -> None:
    await session_db.create_session("a", "cli")
    await said(session_db, "a", "hello", "hi", "go on")
    await session_db.end_session("a", "compression")
    await session_db.create_session("b", "cli", parent_session_id="a")
    await session_db.append_message("b", "user", "go on")
    await session_db.append_message("b", "assistant", "  ")
    await session_db.append_message("b", "user", "go on")
    await session_db.append_message("b", "assistant", "done")
    await session_db.append_message("b", "user", "go on")

    _, display = await session_db.get_resume_conversations("b")
    assert texts(display) == ["hello", "hi", "go on", "", "done", "go on"]


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_child_of_any_other_kind_is_shown_behind_what_it_came_from(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b")
    await session_db.create_session("sub", "cli", parent_session_id="b")
    await said(session_db, "sub", "in sub")
    model, display = await session_db.get_resume_conversations("sub")
    assert (texts(model), texts(display)) == (["in sub"], ["in a", "in b", "in sub"])


@pytest.mark.requirement("session_db:lineage:chain")
async def test_a_model_s_history_is_repaired_and_a_person_s_is_not(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    for word in ("one", "two"):
        await session_db.append_message("s", "user", word)
    model, display = await session_db.get_resume_conversations("s")
    assert texts(model) == ["one\n\ntwo"]
    assert texts(display) == ["one", "two"]
    model[0]["content"] = "changed"
    assert texts(display) == ["one", "two"]


@pytest.mark.requirement("session_db:lineage:guards")
async def test_what_is_too_large_is_refused_with_both_numbers(session_db: SessionDB) -> None:
    await chain(session_db, "a", "b")
    ids = await said(session_db, "b", "one", "two", "three")
    assert await session_db.assert_resume_safe("b", 5) == 5
    assert await session_db.assert_export_safe("b", 4) == 4
    with pytest.raises(SessionResumeTooLargeError) as resume:
        await session_db.assert_resume_safe("b", 4)
    with pytest.raises(SessionExportTooLargeError) as export:
        await session_db.assert_export_safe("b", max_messages=3)
    assert (resume.value.message_count, resume.value.limit) == (5, 4)
    assert (export.value.message_count, export.value.limit) == (4, 3)
    assert isinstance(resume.value, ValueError)
    assert isinstance(export.value, ValueError)

    session_db.max_resume_messages = 4
    with pytest.raises(SessionResumeTooLargeError):
        await session_db.get_resume_conversations("b")
    await session_db.rewind_to_message("b", ids[2])
    assert len((await session_db.get_resume_conversations("b"))[1]) == 4
    session_db.max_resume_messages = 0
    await session_db.restore_rewound("b", ids[2])
    assert len((await session_db.get_resume_conversations("b"))[1]) == 5


@pytest.mark.parametrize("reason", [None, "client_closed"])
@pytest.mark.requirement("session_db:lineage:fork")
async def test_a_fork_and_its_source_go_on_apart(session_db: SessionDB, reason: str | None) -> None:
    await session_db.create_session("s", "cli", system_prompt="P", model="m")
    await session_db.set_session_title("s", "Trip")
    await said(session_db, "s", "one", "two")
    if reason:
        await session_db.end_session("s", reason)
    child = await session_db.fork_session("s", "f", automatic_title=True)
    await said(session_db, "s", "only in the source")
    await said(session_db, "f", "only in the fork")

    assert (child["title"], child["parent_session_id"], child["message_count"]) == ("Trip #2", "s", 2)
    assert (child["system_prompt"], child["model"]) == ("P", "m")
    assert set(ids_of(await session_db.list_sessions_rich())) == {"s", "f"}
    assert await session_db.resolve_resume_session_id("s") == "s"
    assert await session_db.get_compression_lineage("f") == ["f"]
    assert await session_db.get_conversation_root("f") == "s"
    assert texts(await session_db.get_messages("s")) == ["one", "two", "only in the source"]
    _, display = await session_db.get_resume_conversations("f")
    assert texts(display) == ["one", "two", "only in the fork"]
    assert (await session_db.get_session("s") or {})["end_reason"] == (reason or "branched")


@pytest.mark.requirement("session_db:lineage:fork")
async def test_an_unmarked_fork_shows_its_copy_once_too(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await said(session_db, "s", "one", "two")
    await session_db.fork_session("s", "f", marked=False)
    assert texts((await session_db.get_resume_conversations("f"))[1]) == ["one", "two"]
    assert set(ids_of(await session_db.list_sessions_rich())) == {"s", "f"}


@pytest.mark.requirement("session_db:lineage:fork")
async def test_a_fork_whose_title_is_taken_changes_nothing(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.create_session("holder", "cli")
    await session_db.set_session_title("holder", "Taken")
    with pytest.raises(TitleRefused) as refused:
        await session_db.fork_session("s", "f", title="Taken")
    assert refused.value.holder == "holder"
    assert await session_db.get_session("f") is None
    assert (await session_db.get_session("s") or {})["ended_at"] is None


@pytest.mark.requirement("session_db:lineage:fork")
async def test_a_person_s_branch_of_a_subagent_stays_when_the_subagent_goes(session_db: SessionDB) -> None:
    await session_db.create_session("p", "cli")
    await session_db.create_session("d", "cli", parent_session_id="p", model_config={"_delegate_from": "p"})
    await said(session_db, "d", "found it")
    await session_db.fork_session("d", "b")
    assert await session_db.delete_session("p")
    assert await session_db.get_session("d") is None
    assert texts(await session_db.get_messages("b")) == ["found it"]
    assert ids_of(await session_db.list_sessions_rich()) == ["b"]
