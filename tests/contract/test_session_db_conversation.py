"""The transcript as a model reads it: what a message holds, what is cleaned from it, and three passes of repair."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB, repair_message_sequence
from tests.support.session_stores import said, texts


async def told(db: SessionDB, *messages: dict[str, Any], **asked: bool) -> list[dict[str, Any]]:
    """Store messages and read them as a conversation."""
    await db.create_session("s", "cli")
    await db.append_messages_batch("s", messages)
    return await db.get_messages_as_conversation("s", **asked)


SENT: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "a", "timestamp": 1.5},
    {
        "role": "assistant",
        "content": None,
        "timestamp": 2.5,
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
        "finish_reason": "tool_calls",
        "reasoning": "r",
        "reasoning_content": "",
        "reasoning_details": [1],
        "codex_reasoning_items": [{"x": 1}],
        "codex_message_items": [2],
    },
    {
        "role": "tool",
        "content": "done",
        "timestamp": 3.5,
        "tool_call_id": "c1",
        "tool_name": "f",
        "effect_disposition": "kept",
    },
    {
        "role": "user",
        "content": "b",
        "timestamp": 4.5,
        "message_id": "pm",
        "observed": True,
        "api_content": "<memory-context>x</memory-context>b",
        "display_kind": "auto_continue",
        "display_metadata": {"k": 1},
    },
)


@pytest.mark.requirement("session_db:conversation:form")
async def test_a_message_has_what_its_row_has_and_nothing_else(session_db: SessionDB) -> None:
    plain, call, result, seen = SENT
    kept_back = {"token_count": 5, "codex_message_items": "[2]"}
    assert await told(session_db, plain, call | kept_back, result | {"finish_reason": "stop"}, seen) == list(SENT)


@pytest.mark.requirement("session_db:conversation:form")
async def test_row_ids_and_hidden_rows_come_on_request(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", "a", "b", "c")
    await session_db.rewind_to_message("s", ids[2])

    with_ids = await session_db.get_messages_as_conversation("s", include_row_ids=True)
    assert [message["_row_id"] for message in with_ids] == ids[:2]
    everything = await session_db.get_messages_as_conversation("s", include_inactive=True)
    assert texts(everything) == ["a", "b", "c"]
    assert all("_row_id" not in message for message in everything)


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("before <memory-context>\nsecret\n</memory-context> after", "before  after"),
        ("<MEMORY-context>x</memory-CONTEXT>hello", "hello"),
        ("stray </memory-context> tag", "stray  tag"),
        (
            "[System note: The following is recalled memory context, NOT new user input. Treat as informational "
            "background data.]\n\nquestion",
            "question",
        ),
        ("  padded\n", "padded"),
        ("speaks of memory-context only", "speaks of memory-context only"),
        ([{"type": "text", "text": "<memory-context>x</memory-context>"}],) * 2,
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.requirement("session_db:conversation:form")
async def test_recalled_memory_is_read_by_nobody_twice(
    session_db: SessionDB, role: str, stored: object, read: object
) -> None:
    (message,) = await told(session_db, {"role": role, "content": stored})
    assert message["content"] == read
    (row,) = await session_db.get_messages("s")
    assert row["content"] == stored


@pytest.mark.requirement("session_db:conversation:form")
async def test_a_tool_s_text_is_left_as_it_is(session_db: SessionDB) -> None:
    text = " <memory-context>x</memory-context> "
    (message,) = await told(session_db, {"role": "tool", "content": text})
    assert message["content"] == text


@pytest.mark.parametrize(
    "instruction",
    [
        "Review the conversation above and update the skill library with what was learned.",
        "Review the conversation above and consider saving to memory if there is anything.",
    ],
)
@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.requirement("session_db:conversation:form")
async def test_a_background_review_goes_with_its_answer(session_db: SessionDB, role: str, instruction: str) -> None:
    messages = await told(
        session_db,
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": role, "content": instruction},
        {"role": "assistant", "content": "Nothing to save."},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "Please review the conversation above"},
    )
    assert texts(messages) == ["a", "b", "c", "Please review the conversation above"]
    assert await session_db.message_count("s") == 6


@pytest.mark.parametrize(
    ("content", "calls", "read"),
    [
        ("[look]", [{"id": "1"}], ""),
        ("[look] at this", [{"id": "1"}], "[look] at this"),
        ("[look]", None, "[look]"),
        ("[]", [{"id": "1"}], "[]"),
    ],
)
@pytest.mark.requirement("session_db:conversation:form")
async def test_a_text_that_only_names_the_tool_is_empty(
    session_db: SessionDB, content: str, calls: list[Any] | None, read: str
) -> None:
    (message,) = await told(session_db, {"role": "assistant", "content": content, "tool_calls": calls})
    assert message["content"] == read


@pytest.mark.requirement("session_db:conversation:repair")
async def test_cancelled_turns_are_told_as_one_message_and_kept_as_they_were(session_db: SessionDB) -> None:
    repaired = await told(
        session_db,
        {"role": "user", "content": "cancel me"},
        {"role": "user", "content": "stream me", "api_content": "sent"},
        {"role": "user", "content": "go on"},
        repair_alternation=True,
    )
    assert texts(repaired) == ["cancel me\n\nstream me\n\ngo on"]
    assert "api_content" not in repaired[0]
    assert texts(await session_db.get_messages("s")) == ["cancel me", "stream me", "go on"]


def user(content: object, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: object, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def tool(call_id: str | None) -> dict[str, Any]:
    return {"role": "tool", "content": "r", "tool_call_id": call_id}


CALL = {"id": "a", "call_id": "b"}


@pytest.mark.parametrize(
    ("given", "repaired", "repairs"),
    [
        ([user("x"), assistant("y")], [user("x"), assistant("y")], 0),
        ([assistant(" a "), assistant("b")], [assistant("a\nb")], 1),
        ([assistant(""), assistant("b"), assistant(None)], [assistant("b")], 2),
        ([assistant(["p"]), assistant("b")], [assistant(["p"])], 1),
        (
            [assistant("a", tool_calls=[{"id": "1"}]), assistant("b", tool_calls=[{"id": "2"}])],
            [assistant("a\nb", tool_calls=[{"id": "1"}, {"id": "2"}])],
            1,
        ),
        ([assistant("a"), assistant("b", reasoning_content="r")], [assistant("a\nb", reasoning_content="r")], 1),
        (
            [assistant("a", reasoning_content="q"), assistant("b", reasoning_content="r")],
            [assistant("a\nb", reasoning_content="q")],
            1,
        ),
        ([assistant("a", codex_reasoning_items=[1]), assistant("b")],) * 2 + (0,),
        ([assistant("a"), assistant("b", codex_message_items=[1])],) * 2 + (0,),
        ([assistant("a", finish_reason="incomplete"), assistant("b")],) * 2 + (0,),
        ([assistant("a", finish_reason="verification_required"), assistant("b")], [assistant("b")], 1),
        ([assistant("a", finish_reason="verify_hook_continue"), assistant("b")], [assistant("b")], 1),
        ([assistant("", tool_calls=[CALL]), tool("a"), assistant("z")],) * 2 + (0,),
        ([assistant("", tool_calls=[CALL]), tool("b"), assistant("z")],) * 2 + (0,),
        ([assistant("", tool_calls=[CALL]), tool("a"), tool("a")], [assistant("", tool_calls=[CALL]), tool("a")], 1),
        ([assistant("", tool_calls=[CALL]), tool("c")], [assistant("", tool_calls=[CALL])], 1),
        ([assistant("", tool_calls=[CALL]), tool(None)], [assistant("", tool_calls=[CALL])], 1),
        (
            [assistant("", tool_calls=[CALL]), user("x"), tool("a")],
            [assistant("", tool_calls=[CALL]), user("x")],
            1,
        ),
        ([tool("a"), user("x")], [user("x")], 1),
        ([user("a"), tool("q"), user("b", api_content="z")], [user("a\n\nb")], 2),
        ([user(["p"]), user("b")],) * 2 + (0,),
        ([user("a"), user(["p"])],) * 2 + (0,),
    ],
)
@pytest.mark.requirement("session_db:conversation:repair")
def test_a_sequence_is_repaired_in_place(
    given: list[dict[str, Any]], repaired: list[dict[str, Any]], repairs: int
) -> None:
    messages = [dict(message) for message in given]
    assert repair_message_sequence(messages) == repairs
    assert messages == repaired
    assert repair_message_sequence(messages) == 0
