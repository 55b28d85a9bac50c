"""Titles: what is kept of one, who may have it, and who may replace it."""

from __future__ import annotations

import pytest

from aip_hermes.embedded.session_db import SessionDB, TitleRefused
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import chain


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  a \t b\r\nc ", "a b c"),
        ("a\x00\x07\x1b\x7fb", "ab"),
        ("zero\u200bwidth\u202e\u2066\ufeff\ufffc\ufff9", "zerowidth"),
        ("e\u0301 👩\u200d👧 漢字", "e\u0301 👩👧 漢字"),
        ("a\ud800b", "a\ufffdb"),
        ("x" * 100, "x" * 100),
        ("é" * 100, "é" * 100),
        ("👩" * 100, "👩" * 100),
        (" " + "x" * 100 + "\u200b ", "x" * 100),
        ("", None),
        (" \u200b\n", None),
        (None, None),
    ],
)
@pytest.mark.requirement("session_db:titles:rules")
async def test_a_title_is_cleaned_before_it_is_measured(
    session_db: SessionDB, given: str | None, kept: str | None
) -> None:
    assert SessionDB.sanitize_title(given) == kept
    await session_db.create_session("s", "cli")
    await session_db.set_session_title("s", "before")
    assert await session_db.set_session_title("s", given)
    assert await session_db.get_session_title("s") == kept
    assert await session_db.get_session_title_source("s") == (None if kept is None else "user")


@pytest.mark.parametrize("title", ["x" * 101, "e\u0301" * 51, "👩" * 101])
@pytest.mark.requirement("session_db:titles:rules")
async def test_one_character_more_is_refused_and_never_cut(session_db: SessionDB, title: str) -> None:
    await session_db.create_session("s", "cli")
    await session_db.set_session_title("s", "before")
    with pytest.raises(ValueError, match=rf"Title too long \({len(title)} chars, max 100\)"):
        SessionDB.sanitize_title(title)
    with pytest.raises(ValueError, match="Title too long"):
        await session_db.set_session_title("s", title)
    with pytest.raises(TitleRefused):
        await session_db.create_absent_session("new", "cli", title=title)
    assert await session_db.get_session_title("s") == "before"
    assert await session_db.get_session("new") is None


@pytest.mark.requirement("session_db:titles:rules")
async def test_a_title_in_use_is_refused_by_name_until_it_is_free(session_db: SessionDB) -> None:
    for name in ("a", "b"):
        await session_db.create_session(name, "cli")
    assert await session_db.set_session_title("a", "My title here")
    with pytest.raises(ValueError, match="'My title here' is already in use by session a"):
        await session_db.set_session_title("b", " My  title here ")
    with pytest.raises(TitleRefused) as refused:
        await session_db.create_absent_session("c", "telegram", title="My title here")
    assert refused.value.holder == "a"
    assert await session_db.get_session("c") is None
    assert await session_db.set_session_title("b", "my TITLE here")
    assert await session_db.set_session_title("a", "My title here")
    assert (await session_db.get_session_by_title("My title here") or {})["id"] == "a"
    assert await session_db.get_session_by_title("MY TITLE HERE") is None
    await session_db.delete_session("a")
    assert await session_db.set_session_title("b", "My title here")
    assert not await session_db.set_session_title("nobody", "x")
    assert await session_db.get_session_title("nobody") is None


@pytest.mark.requirement("session_db:titles:rules")
async def test_a_compressed_ancestor_hands_its_title_over(session_db: SessionDB) -> None:
    await session_db.create_session("a", "cli")
    await session_db.set_session_title("a", "Trip")
    await session_db.end_session("a", "compression")
    await session_db.create_session("b", "cli", parent_session_id="a")
    await session_db.fork_session("a", "f")
    with pytest.raises(TitleRefused):
        await session_db.set_session_title("f", "Trip")
    assert await session_db.set_session_title("b", "Trip")
    assert (await session_db.get_session_title("a"), await session_db.get_session_title("b")) == (None, "Trip")
    with pytest.raises(TitleRefused):
        await session_db.set_session_title("a", "Trip")


@pytest.mark.requirement("session_db:titles:rules")
async def test_a_lineage_is_numbered_past_its_highest(session_db: SessionDB, session_clock: ManualClock) -> None:
    assert await session_db.get_next_title_in_lineage("Trip #7") == "Trip"
    for name, title in (("a", "Trip"), ("b", "Trip #4"), ("c", "Trip #x"), ("d", "Trip home #9"), ("e", "trip #8")):
        session_clock.advance(1000)
        await session_db.create_session(name, "cli")
        await session_db.set_session_title(name, title)
    assert await session_db.get_next_title_in_lineage("Trip") == "Trip #5"
    assert await session_db.get_next_title_in_lineage("Trip #2") == "Trip #5"
    assert await session_db.get_next_title_in_lineage("Trip home") == "Trip home #10"
    assert await session_db.get_next_title_in_lineage("100% #1") == "100%"

    assert await session_db.resolve_session_by_title("Trip") == "b"
    assert await session_db.resolve_session_by_title("Trip #4") == "b"
    assert await session_db.resolve_session_by_title("Trip #x") == "c"
    assert await session_db.resolve_session_by_title("Trip home") == "d"
    assert await session_db.resolve_session_by_title("nowhere") is None
    await session_db.delete_session("b")
    assert await session_db.resolve_session_by_title("Trip") == "a"


@pytest.mark.requirement("session_db:titles:rank")
async def test_an_automatic_title_gives_way_upwards_only(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    assert await session_db.set_auto_title("s", "derived", source="derived")
    assert not await session_db.set_auto_title("s", "derived again", source="derived")
    assert not await session_db.set_auto_title_if_empty("s", "no")
    assert await session_db.set_auto_title("s", "by a model", source="llm")
    assert not await session_db.set_auto_title("s", "derived", source="derived")
    assert await session_db.get_session_title_source("s") == "llm"
    assert await session_db.set_session_title("s", "mine")
    assert not await session_db.set_auto_title("s", "by a model", source="llm")
    assert await session_db.get_session_title("s") == "mine"

    assert await session_db.set_session_title_source("s", "derived")
    assert await session_db.set_auto_title("s", "by a model", source="llm")
    assert await session_db.set_session_title("s", "")
    assert not await session_db.set_session_title_source("s", "user")
    assert await session_db.set_auto_title_if_empty("s", "derived")
    assert not await session_db.set_auto_title("nobody", "x", source="llm")
    assert not await session_db.set_auto_title("s", " ", source="llm")
    for source in ("user", "weather"):
        with pytest.raises(ValueError, match="title source"):
            await session_db.set_auto_title("s", "x", source=source)
    with pytest.raises(ValueError, match="title source"):
        await session_db.set_session_title_source("s", "weather")


@pytest.mark.requirement("session_db:titles:rank")
async def test_a_title_that_nobody_signed_is_a_person_s(session_db: SessionDB) -> None:
    await chain(session_db, "s")
    await session_db.set_session_title("s", "old")
    await session_db.write(lambda c: c.execute("UPDATE sessions SET title_source = NULL"))
    assert not await session_db.set_auto_title("s", "by a model", source="llm")


@pytest.mark.requirement("session_db:titles:rules")
async def test_an_id_is_found_by_its_beginning_where_only_one_begins_so(session_db: SessionDB) -> None:
    for name in ("abc_1", "abd_1", "abc%1", "ab"):
        await session_db.create_session(name, "cli")
    assert await session_db.resolve_session_id("abd") == "abd_1"
    assert await session_db.resolve_session_id("abc") is None
    assert await session_db.resolve_session_id("ab") == "ab"
    assert await session_db.resolve_session_id("abc%") == "abc%1"
    assert await session_db.resolve_session_id("abc_") == "abc_1"
    assert await session_db.resolve_session_id("%") is None
    assert await session_db.resolve_session_id("ABD") is None
    assert await session_db.resolve_session_id("") is None
