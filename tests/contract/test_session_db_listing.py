"""Pages of sessions: what they hold, in which order, and what a filter means."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.columns import SESSION_COLUMNS
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import chain, ids_of, said


@pytest.fixture
async def names(session_db: SessionDB, session_clock: ManualClock) -> list[str]:
    """Sessions a to e, each begun a second after the one before, each with one message."""
    for name in "abcde":
        session_clock.advance(1000)
        await session_db.create_session(name, "cli", system_prompt=f"prompt of {name}")
        await said(session_db, name, f"hello {name}")
    return list("abcde")


@pytest.mark.requirement("session_db:listing:order")
@pytest.mark.usefixtures("names")
async def test_a_page_is_newest_first_by_start_or_by_activity(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    session_clock.advance(1000)
    await said(session_db, "b", "again")
    session_clock.advance(1000)
    await session_db.touch_session_activity("c")

    by_start = await session_db.list_sessions_rich()
    assert ids_of(by_start) == ["e", "d", "c", "b", "a"]
    by_activity = await session_db.list_sessions_rich(order_by_last_active=True)
    assert ids_of(by_activity) == ["c", "b", "e", "d", "a"]
    assert ids_of(await session_db.search_sessions()) == ["c", "b", "e", "d", "a"]
    assert set((await session_db.search_sessions())[0]) == {*SESSION_COLUMNS, "last_active"}
    assert by_activity[0]["last_active"] == session_clock.now_ms() / 1000
    for start in (0, 2, 4):
        page = await session_db.list_sessions_rich(order_by_last_active=True, limit=2, offset=start)
        assert ids_of(page) == ids_of(by_activity)[start : start + 2]
    assert await session_db.list_sessions_rich(limit=0) == []
    assert await session_db.list_sessions_rich(limit=0, include_pinned=True) == []


@pytest.mark.requirement("session_db:listing:order")
@pytest.mark.usefixtures("names")
async def test_an_entry_is_the_row_and_what_a_list_shows(session_db: SessionDB) -> None:
    entry = (await session_db.list_sessions_rich())[0]
    row = await session_db.get_session("e")
    assert row is not None
    assert set(entry) == {*SESSION_COLUMNS, "preview", "last_active", "unread"}
    assert {name: entry[name] for name in SESSION_COLUMNS} == row
    assert (entry["preview"], entry["unread"], entry["system_prompt"]) == ("hello e", False, "prompt of e")
    assert entry == await session_db.get_session_rich_row("e")
    compact = (await session_db.list_sessions_rich(compact_rows=True))[0]
    assert compact == {name: value for name, value in entry.items() if name != "system_prompt"}
    assert await session_db.get_session_rich_row("e", compact_rows=True) == compact
    assert await session_db.get_session_rich_row("nobody") is None


@pytest.mark.parametrize(
    ("content", "preview"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("two\r\nlines\nhere ", "two lines here"),
        (
            [{"type": "text", "text": "parts"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
            "parts [screenshot]",
        ),
        (
            '[IMPORTANT: The user has invoked the "tidy-up" skill, indicating that its rules apply.]\n\nMany rules.',
            "/tidy-up",
        ),
        (
            '[IMPORTANT: The user has invoked the "tidy-up" skill.]\n\nRules.\n\nThe user has provided the following '
            "instruction alongside the skill invocation: the kitchen\n\n[Runtime note: late]",
            "/tidy-up — the kitchen",
        ),
        (
            '[IMPORTANT: The user has invoked the "Both" skill bundle, loading 2.]\nUser instruction: the kitchen\n\n'
            '[Loaded as part of the "Both" bundle]\n\nRules.',
            "/Both — the kitchen",
        ),
    ],
)
@pytest.mark.requirement("session_db:listing:order")
async def test_a_preview_is_the_first_thing_a_user_said(session_db: SessionDB, content: Any, preview: str) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "assistant", "welcome")
    await session_db.append_message("s", "user", "")
    await session_db.append_message("s", "user", content)
    await session_db.append_message("s", "user", "later")
    assert (await session_db.list_sessions_rich())[0]["preview"] == preview
    skills = await session_db.list_skill_scaffolded_sessions()
    assert skills == []


@pytest.mark.requirement("session_db:listing:order")
async def test_a_skill_begins_titled_sessions_that_can_be_listed(session_db: SessionDB) -> None:
    for name, word in (("a", '[IMPORTANT: The user has invoked the "x" skill.]'), ("b", "/x"), ("c", None)):
        await session_db.create_session(name, "cli")
        await session_db.set_session_title(name, f"title {name}")
        if word:
            await said(session_db, name, word)
    (skill,) = await session_db.list_skill_scaffolded_sessions()
    assert (skill["id"], skill["title"], skill["preview"]) == ("a", "title a", "/x")
    assert await session_db.list_skill_scaffolded_sessions(limit=0) == []


@pytest.mark.requirement("session_db:listing:order")
async def test_a_compressed_conversation_is_one_entry_that_shows_its_tip(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await session_db.create_session("before", "cli")
    await chain(session_db, "a", "b", "c")
    await session_db.set_session_title("c", "Trip")
    await session_db.update_system_prompt("c", "prompt of c")
    session_clock.advance(1000)
    await session_db.create_session("after", "cli")
    session_clock.advance(1000)
    await said(session_db, "c", "more")

    entry, after, before = await session_db.list_sessions_rich(order_by_last_active=True)
    assert (after["id"], before["id"]) == ("after", "before")
    root, tip = await session_db.get_session("a"), await session_db.get_session_rich_row("c")
    assert root is not None
    assert tip is not None
    projected = (
        "id", "ended_at", "end_reason", "message_count", "tool_call_count", "title", "last_active", "preview", "model",
        "system_prompt", "cwd", "git_branch", "git_repo_root",
    )  # fmt: skip
    assert {name: entry[name] for name in projected} == {name: tip[name] for name in projected}
    assert (entry["_lineage_root_id"], entry["started_at"], entry["title"]) == ("a", root["started_at"], "Trip")
    assert "_lineage_root_id" not in after

    by_start = await session_db.list_sessions_rich()
    assert entry in by_start
    plain = await session_db.list_sessions_rich(order_by_last_active=True, project_compression_tips=False)
    assert ids_of(plain) == ["a", "after", "before"]
    assert plain[0]["end_reason"] == "compression"
    everything = await session_db.list_sessions_rich(include_children=True, order_by_last_active=True)
    assert ids_of(everything) == ["c", "after", "before", "b", "a"]


@pytest.mark.requirement("session_db:listing:order")
async def test_activity_of_any_segment_moves_the_conversation(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await chain(session_db, "a", "b")
    session_clock.advance(1000)
    await session_db.create_session("other", "cli")
    assert ids_of(await session_db.list_sessions_rich(order_by_last_active=True)) == ["other", "b"]
    session_clock.advance(1000)
    await session_db.touch_session_activity("a")
    assert ids_of(await session_db.list_sessions_rich(order_by_last_active=True)) == ["b", "other"]


@pytest.mark.requirement("session_db:listing:visible")
async def test_what_stands_for_a_conversation_is_listed(session_db: SessionDB) -> None:
    create = session_db.create_session
    await create("root", "cli", session_key="k")
    await create("marked", "cli", parent_session_id="root", model_config={"_branched_from": "root"})
    await create("reset", "cli", parent_session_id="root", model_config={"_reset_from": "root"})
    await create("delegate", "cli", parent_session_id="root", model_config={"_delegate_from": "root"})
    await create("subagent", "cli", parent_session_id="root")
    await create("tool", "tool", parent_session_id="root")
    assert set(ids_of(await session_db.list_sessions_rich())) == {"root", "marked", "reset"}
    everything = {"root", "marked", "reset", "delegate", "subagent", "tool"}
    assert set(ids_of(await session_db.list_sessions_rich(include_children=True))) == everything

    await session_db.end_session("root", "branched")
    await create("unmarked", "cli", parent_session_id="root")
    expected = {"root", "marked", "reset", "subagent", "tool", "unmarked"}
    assert set(ids_of(await session_db.list_sessions_rich())) == expected


@pytest.mark.requirement("session_db:listing:visible")
@pytest.mark.usefixtures("names")
async def test_archived_and_hidden_ones_come_where_asked_for(session_db: SessionDB) -> None:
    await session_db.set_session_archived("a", True)
    await session_db.set_session_hidden("b", True)

    async def listed(**asked: Any) -> str:
        return "".join(sorted(ids_of(await session_db.list_sessions_rich(**asked))))

    assert await listed() == "cde"
    assert await listed(include_archived=True) == "acde"
    assert await listed(archived_only=True) == "a"
    assert await listed(include_hidden=True) == "bcde"
    assert await listed(include_hidden=True, include_archived=True) == "abcde"
    assert (await session_db.get_session_rich_row("a") or {})["archived"] == 1


@pytest.mark.requirement("session_db:listing:visible")
@pytest.mark.usefixtures("names")
async def test_pinned_ones_follow_a_page_that_doesn_t_hold_them(session_db: SessionDB) -> None:
    for name in "ae":
        await session_db.set_session_pinned(name, True)
    assert ids_of(await session_db.list_sessions_rich(limit=2, include_pinned=True)) == ["e", "d", "a"]
    assert ids_of(await session_db.list_sessions_rich(limit=2)) == ["e", "d"]
    by_activity = await session_db.list_sessions_rich(limit=1, include_pinned=True, order_by_last_active=True)
    assert ids_of(by_activity) == ["e", "a"]


FILTERED: list[tuple[dict[str, Any], str]] = [
    ({"source": "cli"}, "ace"),
    ({"sources": ["telegram", "api"]}, "bd"),
    ({"sources": []}, "abcde"),
    ({"source": "cli", "sources": ["api"]}, ""),
    ({"exclude_sources": ["cli"]}, "bd"),
    ({"exclude_sources": []}, "abcde"),
    ({"cwd_prefix": "/projects"}, "ab"),
    ({"cwd_prefix": "/projects/"}, "ab"),
    ({"cwd_prefix": "/projects/deep"}, "b"),
    ({"cwd_prefix": "/wor%"}, ""),
    ({"cwd_prefix": "/100%"}, "d"),
    ({"min_message_count": 2}, "bc"),
    ({"session_key": "k1"}, "a"),
    ({"session_key": "k"}, ""),
]


@pytest.fixture
async def various(session_db: SessionDB) -> None:
    """Sessions a to e of three sources, in five folders."""
    fields: list[dict[str, Any]] = [
        {"source": "cli", "cwd": "/projects", "session_key": "k1"},
        {"source": "telegram", "cwd": "/projects/deep"},
        {"source": "cli", "cwd": "/workshop"},
        {"source": "api", "cwd": "/100%/x"},
        {"source": "cli"},
    ]
    for name, given in zip("abcde", fields, strict=True):
        await session_db.create_session(name, **given)
        await said(session_db, name, *["word"] * (3 if name in "bc" else 1))


@pytest.mark.requirement("session_db:listing:filters")
@pytest.mark.usefixtures("various")
@pytest.mark.parametrize("by_activity", [False, True])
@pytest.mark.parametrize(("asked", "found"), FILTERED)
async def test_a_filter_means_what_it_says(
    session_db: SessionDB, asked: dict[str, Any], found: str, by_activity: bool
) -> None:
    listed = await session_db.list_sessions_rich(order_by_last_active=by_activity, **asked)
    assert "".join(sorted(ids_of(listed))) == found


@pytest.mark.requirement("session_db:listing:counts")
@pytest.mark.usefixtures("various")
@pytest.mark.parametrize(
    ("asked", "found"), [(asked, found) for asked, found in FILTERED if "session_key" not in asked]
)
async def test_a_count_agrees_with_the_listing(session_db: SessionDB, asked: dict[str, Any], found: str) -> None:
    assert await session_db.session_count(**asked) == len(found)
    assert await session_db.session_count(**asked, exclude_children=True) == len(found)


@pytest.mark.requirement("session_db:listing:counts")
@pytest.mark.usefixtures("various")
async def test_sessions_are_counted_by_source_and_visibility(session_db: SessionDB) -> None:
    await session_db.create_session("sub", "cli", parent_session_id="a")
    await session_db.set_session_archived("c", True)
    await session_db.set_session_hidden("e", True)
    await session_db.create_session("empty", "cli")
    await session_db.end_session("empty", "agent_close")

    assert await session_db.session_count() == 6
    assert await session_db.session_count(include_archived=True) == 7
    assert await session_db.session_count(archived_only=True) == 1
    assert await session_db.session_count(exclude_children=True) == len(await session_db.list_sessions_rich()) == 4
    assert await session_db.session_count_by_source() == {"api": 1, "cli": 4, "telegram": 1}
    assert await session_db.session_count_by_source(exclude_children=True) == {"api": 1, "cli": 2, "telegram": 1}
    assert [await session_db.session_count_ge(n) for n in (0, 1, 7, 8)] == [True, True, True, False]
    assert await session_db.count_empty_sessions() == 1
    folders = await session_db.distinct_session_cwds()
    assert {folder["cwd"]: folder["sessions"] for folder in folders} == {
        "/projects": 2,
        "/projects/deep": 1,
        "/100%/x": 1,
    }
    assert len(await session_db.distinct_session_cwds(include_archived=True)) == 4


@pytest.mark.requirement("session_db:listing:filters")
async def test_a_name_finds_a_conversation_by_any_of_its_segments(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await chain(session_db, "20260101_first", "20260202_Second")
    await session_db.set_session_title("20260202_Second", "Über den Fluss: nach Hause")
    session_clock.advance(1000)
    await session_db.create_session("100%_other", "cli")

    async def listed(**asked: Any) -> list[str]:
        return ids_of(await session_db.list_sessions_rich(order_by_last_active=True, **asked))

    both = ["100%_other", "20260202_Second"]
    for asked in (
        {"id_query": "0101_FIR"},
        {"id_query": "second"},
        {"search_query": "über den"},
        {"search_query": "fluss nach"},
        {"search_query": "20260101first"},
    ):
        assert await listed(**asked) == ["20260202_Second"]
    assert await listed(search_query="0202") == ["20260202_Second"]
    assert await listed(id_query="0%") == await listed(search_query="100%") == ["100%_other"]
    assert await listed(id_query="_") == both
    assert await listed(id_query="zzz") == await listed(search_query="zzz") == []
    assert await listed(search_query="!!") == []
    assert ids_of(await session_db.list_sessions_rich(id_query="zzz")) == both

    assert ids_of(await session_db.search_sessions_by_id("20260101_first")) == ["20260202_Second"]
    assert await session_db.search_sessions_by_id("  ") == []


@pytest.mark.requirement("session_db:listing:filters")
async def test_ids_are_ranked_exact_prefix_then_anywhere(session_db: SessionDB, session_clock: ManualClock) -> None:
    for name in ("ab", "abc", "xab", "abd", "zz"):
        session_clock.advance(1000)
        await session_db.create_session(name, "tool" if name == "abd" else "cli")
    await session_db.set_session_archived("xab", True)
    assert ids_of(await session_db.search_sessions_by_id("AB")) == ["ab", "abd", "abc", "xab"]
    assert ids_of(await session_db.search_sessions_by_id("ab", limit=1)) == ["ab"]
    assert ids_of(await session_db.search_sessions_by_id("ab", include_archived=False, source="cli")) == ["ab", "abc"]
    assert ids_of(await session_db.search_sessions_by_id("ab", sources=["tool"])) == ["abd"]
    assert ids_of(await session_db.search_sessions_by_id("ab", exclude_sources=["cli"])) == ["abd"]
    assert ids_of(await session_db.search_sessions(source="tool")) == ["abd"]


@pytest.mark.requirement("session_db:listing:filters")
async def test_a_workspace_is_a_repository_or_a_folder(session_db: SessionDB) -> None:
    await session_db.create_session("a", "cli", cwd="/repo/deep", git_repo_root="/repo")
    await session_db.create_session("b", "cli", cwd="/repo")
    await session_db.create_session("c", "cli", cwd="/other")
    assert set(ids_of(await session_db.search_sessions(workspace_key="/repo"))) == {"a", "b"}
    assert ids_of(await session_db.search_sessions(workspace_key="/other", limit=1)) == ["c"]
