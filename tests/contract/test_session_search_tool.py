"""The recall tool of the agent: what it shows of earlier conversations, and what it keeps to itself."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded.agent.recall import SessionSearchTool
from aip_hermes.embedded.agent.toolbox import ToolContext
from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore, chain, said

TOOL = SessionSearchTool()
ENTRY = {
    "session_id", "when", "source", "model", "title", "matched_role", "match_message_id", "snippet", "bookend_start",
    "messages", "bookend_end", "messages_before", "messages_after", "detail", "link",
}  # fmt: skip


async def recalled(db: SessionDB, *, current: str = "now", **arguments: Any) -> dict[str, Any]:
    outcome = await TOOL.run(arguments, ToolContext(session_id=current, session_db=db))
    answer: dict[str, Any] = json.loads(outcome.output)
    assert outcome.failed is not answer["success"]
    return answer


def ids_in(answer: dict[str, Any]) -> list[str]:
    return [entry["session_id"] for entry in answer["results"]]


@pytest.fixture
async def db(session_db: SessionDB, session_clock: ManualClock) -> SessionDB:
    await session_db.create_session("now", "cli")
    await said(session_db, "now", "talk of a zebra")
    for name, source in (("trip", "cli"), ("night", "cron"), ("fleet", "subagent"), ("talk", "telegram")):
        session_clock.advance(60_000)
        await session_db.create_session(name, source, model="m")
        words = [*(f"{name} {place}" for place in range(20)), "we saw a zebra", "nice", "bye"]
        roles = ("user", "assistant")
        await session_db.append_messages_batch(
            name, [{"role": roles[place % 2], "content": word} for place, word in enumerate(words)]
        )
    return session_db


@pytest.mark.requirement("session_search:modes")
async def test_a_search_shows_the_first_conversation_in_full_and_of_others_the_message(db: SessionDB) -> None:
    answer = await recalled(db, query="zebra", sort="oldest")

    assert answer.keys() == {"success", "mode", "query", "detail", "results", "count", "sessions_searched"}
    assert (answer["mode"], answer["detail"], answer["count"], answer["sessions_searched"]) == (
        "discover", "adaptive", 3, 4,
    )  # fmt: skip
    assert ids_in(answer) == ["trip", "talk", "night"]
    first, second, _ = answer["results"]
    assert first.keys() == ENTRY
    assert (first["matched_role"], first["snippet"], first["detail"]) == ("user", "we saw a >>>zebra<<<", "full")
    assert first["link"] == "@session:default/trip"
    assert re.fullmatch(r"[A-Z][a-z]+ \d\d, \d{4} at \d\d:\d\d [AP]M", first["when"])
    assert [m["content"] for m in first["bookend_start"]] == ["trip 0", "trip 1", "trip 2"]
    texts = [m["content"] for m in first["messages"]]
    assert texts == [*(f"trip {place}" for place in range(15, 20)), "we saw a zebra", "nice", "bye"]
    assert [m["content"] for m in first["messages"] if m.get("anchor")] == ["we saw a zebra"]
    assert (first["messages_before"], first["messages_after"]) == (5, 2)
    assert [m["content"] for m in second["messages"]] == ["we saw a zebra"]
    assert (second["bookend_start"], second["bookend_end"]) == ([], [])
    full = await recalled(db, query="zebra", detail="full", role_filter="user, tool")
    assert all(len(entry["messages"]) == 8 for entry in full["results"])
    assert (await recalled(db, query="zebra", role_filter="assistant"))["results"] == []


@pytest.mark.requirement("session_search:one-per-conversation")
async def test_a_title_comes_first_and_the_current_conversation_not_at_all(db: SessionDB) -> None:
    await db.set_session_title("talk", "On zebra crossings")

    answer = await recalled(db, query="zebra")
    found = {entry["session_id"]: entry["matched_role"] for entry in answer["results"]}

    assert found == {"talk": "session_title", "trip": "user", "night": "user"}
    assert next(iter(found)) == "talk"
    assert answer["results"][0]["match_message_id"] is None
    assert answer["results"][0]["snippet"] == "On zebra crossings"
    assert ids_in(await recalled(db, query="zebra", current="trip"))[0] == "talk"
    assert "now" in ids_in(await recalled(db, query="zebra", current="trip"))


@pytest.mark.requirement("session_search:one-per-conversation")
async def test_of_the_current_conversation_only_what_left_its_context_is_found(session_db: SessionDB) -> None:
    await chain(session_db, "old", "middle", "tip")
    await session_db.create_session("packed", "cli")
    rows = await said(session_db, "packed", "the okapi slept", "yes")
    await session_db.archive_and_compact("packed", [{"role": "user", "content": "a summary"}])

    assert ids_in(await recalled(session_db, query="in", current="tip")) == ["middle"]
    assert ids_in(await recalled(session_db, query="in tip", current="tip")) == []
    assert len(ids_in(await recalled(session_db, query="in", current="packed"))) == 1
    packed = await recalled(session_db, query="okapi", current="packed")
    assert [(entry["session_id"], entry["match_message_id"]) for entry in packed["results"]] == [("packed", rows[0])]


@pytest.mark.requirement("session_search:modes")
async def test_reading_shows_both_ends_of_a_long_conversation(db: SessionDB) -> None:
    await db.append_message("trip", "user", "x" * 5_000)
    short = await recalled(db, session_id="trip")
    await said(db, "trip", *(f"more {place}" for place in range(40)))
    long = await recalled(db, session_id="@session:default/trip")

    assert (short["mode"], short["message_count"], short["truncated"]) == ("read", 24, False)
    assert short["link"] == "@session:default/trip"
    assert short["session_meta"].keys() == {"when", "source", "model", "title"}
    assert (len(short["messages"][-1]["content"]), short["messages"][-1]["original_content_chars"]) == (4_000, 5_000)
    assert short["messages"][-1]["content_truncated"] is True
    assert (long["message_count"], long["truncated"], len(long["messages"])) == (64, True, 30)
    assert [long["messages"][place]["content"] for place in (0, 19, 20, 29)] == [
        "trip 0", "trip 19", "more 30", "more 39",
    ]  # fmt: skip
    assert "21 to 54" in long["hint"]


@pytest.mark.requirement("session_search:modes")
async def test_scrolling_shows_what_stands_around_a_message(db: SessionDB) -> None:
    anchor = (await db.get_messages("trip"))[10]["id"]

    answer = await recalled(db, session_id="trip", around_message_id=anchor, window=2)

    assert answer.keys() == {
        "success", "mode", "session_id", "around_message_id", "session_meta", "window", "messages", "messages_before",
        "messages_after",
    }  # fmt: skip
    assert [m["content"] for m in answer["messages"]] == [f"trip {place}" for place in (8, 9, 10, 11, 12)]
    assert [m["id"] for m in answer["messages"] if m.get("anchor")] == [anchor]
    assert (answer["mode"], answer["window"], answer["messages_before"], answer["messages_after"]) == (
        "scroll",
        2,
        2,
        2,
    )


@pytest.mark.requirement("session_search:failures")
async def test_what_is_in_the_context_already_is_not_shown_again(session_db: SessionDB) -> None:
    await chain(session_db, "old", "tip")
    (old,), (here,) = await session_db.get_messages("old"), await session_db.get_messages("tip")

    refused = await recalled(session_db, current="tip", session_id="tip", around_message_id=here["id"])
    shown = await recalled(session_db, current="tip", session_id="old", around_message_id=old["id"])

    assert refused.keys() == {"error", "success"}
    assert [m["content"] for m in shown["messages"]] == ["in old"]


@pytest.mark.requirement("session_search:modes")
async def test_browsing_lists_the_latest_other_conversations(db: SessionDB) -> None:
    answer = await recalled(db, limit=2)

    assert (answer["mode"], answer["count"]) == ("browse", 2)
    assert ids_in(answer) == ["talk", "night"]
    assert answer["results"][0].keys() == {
        "session_id", "link", "title", "source", "started_at", "last_active", "message_count", "preview",
    }  # fmt: skip
    assert ids_in(await recalled(db, current="talk", limit=10)) == ["night", "trip", "now"]


@pytest.mark.parametrize(
    ("arguments", "mode", "shown"),
    [
        ({"query": "zebra", "limit": 0}, "discover", 1),
        ({"query": "zebra", "limit": 99}, "discover", 3),
        ({"query": "zebra", "limit": "2", "window": None, "sort": "sideways", "detail": 5}, "discover", 2),
        ({"query": "zebra", "limit": float("inf"), "role_filter": ["user"]}, "discover", 3),
        ({"query": 404}, "discover", 0),
        ({"query": "  ", "around_message_id": 3, "limit": True}, "browse", 3),
        ({"query": None, "profile": "other", "unknown": {}}, "browse", 3),
    ],
)
@pytest.mark.requirement("session_search:arguments")
async def test_arguments_are_read_as_far_as_they_make_sense(
    db: SessionDB, arguments: dict[str, Any], mode: str, shown: int
) -> None:
    answer = await recalled(db, **arguments)

    assert (answer["mode"], len(answer["results"])) == (mode, shown)


@pytest.mark.parametrize(
    "arguments",
    [
        {"session_id": "nobody"},
        {"session_id": "t"},
        {"session_id": "nobody", "around_message_id": 1},
        {"session_id": "trip", "around_message_id": 999_999},
        {"session_id": "@session:other/trip"},
    ],
)
@pytest.mark.requirement("session_search:failures")
async def test_what_is_not_there_is_a_failure_in_words(db: SessionDB, arguments: dict[str, Any]) -> None:
    answer = await recalled(db, **arguments)

    assert answer.keys() == {"error", "success"}
    assert answer["success"] is False


@pytest.mark.requirement("session_search:failures")
async def test_a_store_of_another_program_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE sessions (id TEXT)")
    foreign.close()

    async with SessionDB(path) as db:
        answer = await recalled(db, query="zebra")

    assert str(path) in answer["error"]
    assert "session_db=" in answer["error"]


@pytest.mark.requirement("session_search:failures")
async def test_a_store_that_is_closed_or_missing_is_a_failure_in_words(session_store: OpenStore) -> None:
    db = session_store()
    await db.close()

    assert (await recalled(db, query="zebra"))["success"] is False
    outcome = await TOOL.run({"query": "zebra"}, ToolContext(session_id="s"))
    assert outcome.failed
    assert "session_db=" in json.loads(outcome.output)["error"]


@pytest.mark.requirement("session_search:arguments")
def test_the_definition_offers_nine_arguments_and_requires_none() -> None:
    function = TOOL.definition["function"]

    assert function["name"] == TOOL.name == "session_search"
    assert set(function["parameters"]["properties"]) == {
        "query", "limit", "sort", "detail", "session_id", "around_message_id", "window", "role_filter", "profile",
    }  # fmt: skip
    assert "required" not in function["parameters"]


@pytest.mark.requirement("session_search:arguments")
@pytest.mark.parametrize("number", [2**63, -(2**70), 10**400, float("inf"), "9" * 30])
async def test_a_number_that_no_row_has_and_half_a_letter_are_answered_in_words(db: SessionDB, number: object) -> None:
    answer = await recalled(db, session_id="trip", around_message_id=number, window=number, limit=number)
    assert answer["success"] is (number == float("inf"))

    outcome = await TOOL.run({"query": "half \ud83d a letter"}, ToolContext(session_id="now", session_db=db))
    assert json.loads(outcome.output.encode("utf-8"))["query"] == "half \ufffd a letter"
