"""Replacing, clearing, rewinding; and the small looks into a transcript."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import said, texts


async def counters(db: SessionDB, session_id: str = "s") -> tuple[int, int]:
    row = await db.get_session(session_id)
    assert row is not None
    return row["message_count"], row["tool_call_count"]


async def hidden(db: SessionDB) -> list[Any]:
    rows = await db.get_messages("s", include_inactive=True)
    return [row["content"] for row in rows if not row["active"]]


@pytest.fixture
async def ids(session_db: SessionDB) -> list[int]:
    """Rows of a transcript of six, the last two of them rewound."""
    await session_db.create_session("s", "cli")
    made = await said(session_db, "s", "a", "b", "c", "d", "e", "f")
    await session_db.rewind_to_message("s", made[4])
    return made


NEW: list[dict[str, Any]] = [
    {"role": "user", "content": "x", "timestamp": 7.0},
    {"role": "assistant", "content": "y", "timestamp": 9.0, "tool_calls": [{"id": "1"}, {"id": "2"}]},
]


@pytest.mark.requirement("session_db:messages:replace")
@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({}, []),
        ({"active_only": True}, ["e", "f"]),
        ({"archive_dropped": True}, ["a", "b", "c", "d", "e", "f"]),
        ({"archive_dropped": True, "active_only": True}, ["a", "b", "c", "d", "e", "f"]),
    ],
)
@pytest.mark.usefixtures("ids")
async def test_replacing_takes_all_rows_or_the_live_ones_or_puts_them_away(
    session_db: SessionDB, asked: dict[str, bool], left: list[str]
) -> None:
    await session_db.replace_messages("s", NEW, **asked)
    assert texts(await session_db.get_messages("s")) == ["x", "y"]
    assert await hidden(session_db) == left
    assert await counters(session_db) == (2, 2)
    assert await session_db.has_archived_messages("s") is bool(left)
    listed = await session_db.get_session_rich_row("s")
    assert listed is not None
    assert (listed["preview"], listed["last_active"]) == ("x", 9.0)


@pytest.mark.requirement("session_db:messages:replace")
@pytest.mark.usefixtures("ids")
async def test_a_replacement_that_can_t_be_stored_leaves_the_old_rows(session_db: SessionDB) -> None:
    class Unreadable(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise LookupError("no member can be read")

    with pytest.raises(LookupError):
        await session_db.replace_messages("s", [*NEW, Unreadable()])
    assert texts(await session_db.get_messages("s")) == ["a", "b", "c", "d"]
    assert await counters(session_db) == (6, 0)


@pytest.mark.requirement("session_db:messages:replace")
@pytest.mark.usefixtures("ids")
async def test_clearing_starts_again(session_db: SessionDB) -> None:
    await session_db.clear_messages("s")
    await session_db.clear_messages("nobody")
    listed = await session_db.get_session_rich_row("s")
    assert listed is not None
    assert await session_db.message_count("s") == 0
    assert await counters(session_db) == (0, 0)
    assert (listed["preview"], listed["last_active"]) == ("", listed["started_at"])


@pytest.mark.requirement("session_db:messages:replace")
async def test_what_was_sent_is_noted_on_the_newest_message_of_the_user_if_it_is_still_that(
    session_db: SessionDB,
) -> None:
    await session_db.create_session("s", "cli")
    parts = [{"type": "text", "text": "look"}]
    await session_db.append_message("s", "user", "one")
    assert await session_db.set_latest_user_api_content("s", "other", "sent") == 0
    assert await session_db.set_latest_user_api_content("s", "one", "sent \ud800") == 1
    await session_db.append_message("s", "user", parts)
    await session_db.append_message("s", "assistant", "answer")
    assert await session_db.set_latest_user_api_content("s", "one", "again") == 0
    assert await session_db.set_latest_user_api_content("s", parts, "look, sent") == 1
    assert await session_db.set_latest_user_api_content("nobody", "one", "x") == 0
    rows = await session_db.get_messages("s")
    assert [row["api_content"] for row in rows] == ["sent \ufffd", "look, sent", None]


@pytest.mark.requirement("session_db:rewind")
async def test_a_rewind_hides_from_a_message_on_and_a_restore_brings_it_back(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", "a", "b", "c", "d")
    done = await session_db.rewind_to_message("s", ids[2])

    assert (done["rewound_count"], done["new_head_id"]) == (2, ids[1])
    assert (done["target_message"]["id"], done["target_message"]["content"]) == (ids[2], "c")
    assert texts(await session_db.get_messages("s")) == ["a", "b"]
    assert texts(await session_db.get_messages_as_conversation("s")) == ["a", "b"]
    assert await counters(session_db) == (4, 0)
    assert (await session_db.get_session("s") or {})["rewind_count"] == 1
    assert [m["preview"] for m in await session_db.list_recent_user_messages("s")] == ["a"]

    assert await session_db.restore_rewound("s", ids[3]) == 1
    assert texts(await session_db.get_messages("s")) == ["a", "b", "d"]
    assert await session_db.restore_rewound("s", ids[0]) == 1
    assert texts(await session_db.get_messages("s")) == ["a", "b", "c", "d"]
    assert await session_db.restore_rewound("nobody", 0) == 0


@pytest.mark.requirement("session_db:rewind")
async def test_a_rewind_goes_to_a_message_of_the_user_in_this_session(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.create_session("other", "cli")
    ids = await said(session_db, "s", "a", "b")
    for session_id, row_id in (("s", ids[1]), ("s", 10_000), ("other", ids[0]), ("nobody", ids[0])):
        with pytest.raises(ValueError, match=str(row_id)):
            await session_db.rewind_to_message(session_id, row_id)
    assert texts(await session_db.get_messages("s")) == ["a", "b"]


@pytest.mark.requirement("session_db:rewind")
async def test_what_is_rewound_is_in_no_listing(session_db: SessionDB, session_clock: ManualClock) -> None:
    await session_db.create_session("s", "cli")
    started = session_clock.now_ms() / 1000
    session_clock.advance(1000)
    (first,) = await said(session_db, "s", "a secret")
    done = await session_db.rewind_to_message("s", first)
    listed = await session_db.get_session_rich_row("s")
    assert listed is not None
    assert done["new_head_id"] is None
    assert (listed["preview"], listed["last_active"]) == ("", started)
    await said(session_db, "s", "said instead")
    assert (await session_db.get_session_rich_row("s") or {})["preview"] == "said instead"


@pytest.mark.requirement("session_db:rewind")
async def test_a_restore_leaves_alone_what_a_summary_stands_for(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", "a", "b", "c")
    await session_db.write(lambda c: c.execute("UPDATE messages SET active = 0, compacted = 1 WHERE content <> 'c'"))
    await session_db.rewind_to_message("s", ids[2])
    assert await session_db.restore_rewound("s", ids[0]) == 1
    assert texts(await session_db.get_messages("s")) == ["c"]
    assert (await session_db.get_session_rich_row("s") or {})["preview"] == "a"


@pytest.mark.requirement("session_db:rewind")
async def test_what_comes_back_after_a_compaction_is_counted(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    *_, third = await said(session_db, "s", "a", "b", "c")
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    await session_db.append_message("s", "assistant", "d", tool_calls=calls)
    await session_db.rewind_to_message("s", third)
    await session_db.archive_and_compact("s", [{"role": "user", "content": "the gist"}])
    assert await session_db.restore_rewound("s", third) == 2
    row = await session_db.get_session("s")
    assert row is not None
    assert texts(await session_db.get_messages("s")) == ["c", "d", "the gist"]
    assert (row["message_count"], row["tool_call_count"]) == (3, 1)
    # A plain rewind and its restore leave the counters alone.
    await session_db.rewind_to_message("s", third)
    assert await session_db.restore_rewound("s", third) == 3
    row = await session_db.get_session("s")
    assert row is not None
    assert (row["message_count"], row["tool_call_count"]) == (3, 1)


@pytest.mark.requirement("session_db:messages:looks")
async def test_single_rows_are_found(session_db: SessionDB, ids: list[int]) -> None:
    await session_db.append_message("s", "user", "", platform_message_id="p")
    await session_db.append_message("s", "assistant", "   ")

    assert await session_db.message_count("s") == 8
    assert await session_db.get_message_role("s", ids[1]) == "assistant"
    assert await session_db.get_message_role("other", ids[1]) is None
    assert await session_db.latest_user_message_row_id("s") == ids[2]
    assert await session_db.latest_message_row_id("s", offset=1) == ids[0]
    assert await session_db.latest_message_row_id("s", offset=2) is None
    assert await session_db.latest_message_row_id("s", role="assistant") == ids[3]
    assert await session_db.latest_message_row_id("s", role="assistant", require_text=False) == ids[5] + 2
    with pytest.raises(ValueError, match="tool"):
        await session_db.latest_message_row_id("s", role="tool")
    assert await session_db.get_first_assistant_text("s") == "b"
    assert await session_db.get_first_assistant_text("nobody") == ""


@pytest.mark.requirement("session_db:messages:looks")
async def test_what_the_user_said_last_is_previewed(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "user", "short\nlines")
    await session_db.append_message("s", "assistant", "no")
    await session_db.append_message("s", "user", "synthesized", display_kind="auto_continue")
    await session_db.append_message("s", "user", "x" * 81)
    await session_db.append_message("s", "user", [{"type": "text", "text": "parts"}])
    await session_db.append_message("s", "user", '[IMPORTANT: The user has invoked the "x" skill.]\n\nRules.')

    recent = await session_db.list_recent_user_messages("s")
    assert [tuple(message) for message in recent] == [("id", "timestamp", "preview")] * 4
    assert [message["preview"] for message in recent] == ["/x", "parts", "x" * 77 + "...", "short lines"]
    assert len(await session_db.list_recent_user_messages("s", limit=1)) == 1


@pytest.mark.requirement("session_db:messages:looks")
async def test_a_window_holds_its_anchor_and_hidden_rows(session_db: SessionDB, ids: list[int]) -> None:
    view = await session_db.get_messages_around("s", ids[4], window=1)
    assert texts(view["window"]) == ["d", "e", "f"]
    assert (view["messages_before"], view["messages_after"]) == (1, 1)
    assert texts((await session_db.get_messages_around("s", ids[0], window=2))["window"]) == ["a", "b", "c"]
    assert texts((await session_db.get_messages_around("s", ids[0], window=0))["window"]) == ["a"]
    for session_id, row_id in (("s", 0), ("s", 10_000), ("nobody", ids[0])):
        nothing = {"window": [], "messages_before": 0, "messages_after": 0}
        assert await session_db.get_messages_around(session_id, row_id) == nothing
        empty = nothing | {"bookend_start": [], "bookend_end": []}
        assert await session_db.get_anchored_view(session_id, row_id) == empty


@pytest.mark.requirement("session_db:messages:looks")
async def test_bookends_are_the_first_and_last_words_outside_of_the_window(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", *"abcdef", "", *"hijklm")
    tool = await session_db.append_message("s", "tool", "result")
    view = await session_db.get_anchored_view("s", ids[6], window=1, bookend=2)
    assert texts(view["window"]) == ["f", "", "h"]
    assert texts(view["bookend_start"]) == ["a", "b"]
    assert texts(view["bookend_end"]) == ["l", "m"]

    view = await session_db.get_anchored_view("s", tool, window=1, bookend=9, keep_roles=("user",))
    assert texts(view["window"]) == ["m", "result"]
    assert texts(view["bookend_start"]) == ["a", "c", "e", "i", "k"]
    assert view["bookend_end"] == []
    everyone = await session_db.get_anchored_view("s", ids[0], window=0, bookend=1, keep_roles=None)
    assert texts(everyone["bookend_end"]) == ["result"]
