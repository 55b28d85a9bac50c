"""What is stored comes back: every column, in the order in which it was written, and counted exactly."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aip_hermes.embedded.session_db import CompressionSessionClosedError, SessionDB, UnknownSession
from aip_hermes.embedded.session_db.columns import MESSAGE_COLUMNS, scrubbed
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore, said, texts

Walked = tuple[list[dict[str, Any]], dict[str, Any] | None]
CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}]
EVERYTHING: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
    "tool_name": "look",
    "tool_calls": CALLS,
    "tool_call_id": "call_0",
    "token_count": 2**40,
    "finish_reason": "stop",
    "reasoning": "because",
    "reasoning_content": "",
    "reasoning_details": [{"x": None}],
    "codex_reasoning_items": [{"y": 1}],
    "codex_message_items": '[ {"kept":   "byte for byte"} ]',
    "platform_message_id": "pm-1",
    "observed": True,
    "effect_disposition": "kept",
    "timestamp": 1_796_000_000.25,
    "api_content": "what was sent",
    "display_kind": "hidden",
    "display_metadata": {"a": [1]},
}
STORED: dict[str, Any] = EVERYTHING | {
    "reasoning_details": '[{"x": null}]',
    "codex_reasoning_items": '[{"y": 1}]',
    "observed": 1,
    "active": 1,
    "compacted": 0,
}


def stored_part(row: dict[str, Any]) -> dict[str, Any]:
    assert tuple(row) == MESSAGE_COLUMNS
    return {name: value for name, value in row.items() if name not in ("id", "session_id")}


@pytest.mark.requirement("session_db:messages:round-trip")
@pytest.mark.parametrize("way", ["append", "batch", "replace"])
async def test_every_column_comes_back(session_db: SessionDB, way: str) -> None:
    await session_db.create_session("s", "cli")
    if way == "append":
        await session_db.append_message("s", **EVERYTHING)
    elif way == "batch":
        assert await session_db.append_messages_batch("s", [EVERYTHING]) == 1
    else:
        await session_db.replace_messages("s", [EVERYTHING])
    (row,) = await session_db.get_messages("s")
    session = await session_db.get_session("s")

    assert stored_part(row) == STORED
    assert session is not None
    assert (session["message_count"], session["tool_call_count"]) == (1, 1)


@pytest.mark.requirement("session_db:messages:round-trip")
async def test_rows_of_one_transcript_can_be_given_to_another(session_db: SessionDB) -> None:
    await session_db.create_session("a", "cli")
    await session_db.create_session("b", "cli")
    await session_db.append_messages_batch("a", [{"role": "user", "content": "\0"}, EVERYTHING])
    rows = await session_db.get_messages("a")
    await session_db.replace_messages("b", rows)
    copied = await session_db.get_messages("b")

    assert [stored_part(row) for row in copied] == [stored_part(row) for row in rows]
    assert {row["session_id"] for row in copied} == {"b"}
    assert not {row["id"] for row in copied} & {row["id"] for row in rows}


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("tool_calls", json.dumps(CALLS), CALLS),
        ("tool_calls", "not json", []),
        ("tool_calls", [], []),
        ("tool_calls", None, None),
        ("reasoning_content", "", ""),
        ("reasoning_content", None, None),
        ("reasoning", "a\ud800b", "a\ufffdb"),
        ("api_content", "\udfff", "\ufffd"),
        ("tool_name", "\ud800", "\ufffd"),
        ("display_kind", "\ud800", "\ufffd"),
        ("display_metadata", '{"a": 1}', {"a": 1}),
        ("display_metadata", '"{\\"a\\": 1}"', {"a": 1}),
        ("display_metadata", [1], None),
        ("display_metadata", "not json", None),
        ("display_metadata", 7, None),
        ("content", {1, 2}, "{1, 2}"),
        ("content", 1.5, 1.5),
        ("content", b"\xff\x00", b"\xff\x00"),
        ("timestamp", datetime.datetime.fromtimestamp(1_700_000_000.5, datetime.UTC), 1_700_000_000.5),
        ("timestamp", "1700000000.5", 1_700_000_000.5),
        ("token_count", 2**62, 2**62),
    ],
)
@pytest.mark.requirement("session_db:messages:round-trip")
async def test_each_kind_of_value_is_stored_as_said(
    session_db: SessionDB, column: str, value: Any, stored: object
) -> None:
    await session_db.create_session("s", "cli")
    message: dict[str, Any] = {"content": "x", column: value}
    await session_db.append_message("s", "assistant", **message)
    (row,) = await session_db.get_messages("s")
    assert row[column] == stored


@pytest.mark.parametrize("bad", ["yesterday", float("nan"), float("inf"), object(), [], True, None])
@pytest.mark.requirement("session_db:messages:round-trip")
async def test_a_bad_time_is_now(session_db: SessionDB, session_clock: ManualClock, bad: object) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_message("s", "user", "x", timestamp=bad)
    (row,) = await session_db.get_messages("s")
    assert row["timestamp"] == session_clock.now_ms() / 1000


@pytest.mark.requirement("session_db:messages:round-trip")
async def test_a_batch_names_the_platform_id_otherwise_and_keeps_reasoning_of_the_assistant_only(
    session_db: SessionDB,
) -> None:
    await session_db.create_session("s", "cli")
    thought = {"reasoning": "r", "reasoning_content": "c", "reasoning_details": [1]}
    await session_db.append_messages_batch(
        "s",
        [
            {"role": "user", "content": "a", "message_id": "m1", "timestamp": 4e9, **thought},
            {"role": "assistant", "content": "b", "platform_message_id": "m2", **thought},
            {"role": "odd role", "content": "c"},
        ],
    )
    first, second, third = await session_db.get_messages("s")

    assert (first["platform_message_id"], first["reasoning"], first["reasoning_details"]) == ("m1", None, None)
    assert (second["platform_message_id"], second["reasoning"], second["reasoning_details"]) == ("m2", "r", "[1]")
    assert third["role"] == "odd role"
    assert first["timestamp"] < second["timestamp"] < third["timestamp"]
    assert await session_db.has_platform_message_id("s", "m2")
    assert not await session_db.has_platform_message_id("s", "m3")


TEXTS = st.text(st.characters(exclude_categories=()), max_size=30)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": st.none() | TEXTS | st.lists(JSONS)},
    optional={
        "tool_calls": st.lists(st.dictionaries(TEXTS, JSONS, max_size=2), max_size=3),
        "tool_name": TEXTS,
        "tool_call_id": TEXTS,
        "reasoning": TEXTS,
        "reasoning_content": TEXTS,
        "reasoning_details": st.lists(JSONS, max_size=2),
        "finish_reason": TEXTS,
        "api_content": TEXTS,
        "display_metadata": st.dictionaries(TEXTS, JSONS, max_size=2),
        "timestamp": st.floats(0, 4e9),
    },
)


def storable(value: Any) -> Any:
    """What a lone surrogate in a value becomes."""
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


@pytest.fixture
def walk(session_store: OpenStore) -> Iterator[Callable[[list[dict[str, Any]]], Walked]]:
    """Appends messages to a new session of one store, and reads them back."""
    db, numbers = session_store(), count()

    async def append(messages: list[dict[str, Any]]) -> Walked:
        session_id = await db.create_session(str(next(numbers)), "cli")
        appends = [db.append_message(session_id, **message) for message in messages]
        if db.is_shared:
            # What is asked at once is done in any order there.
            for one in appends:
                await one
        else:
            await asyncio.gather(*appends)
        return await db.get_messages(session_id), await db.get_session(session_id)

    with asyncio.Runner() as runner:
        yield lambda messages: runner.run(append(messages))
        runner.run(db.close())


@pytest.mark.requirement("session_db:messages:round-trip")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(messages=st.lists(MESSAGES, max_size=6))
def test_whatever_is_appended_comes_back(
    walk: Callable[[list[dict[str, Any]]], Walked], messages: list[dict[str, Any]]
) -> None:
    rows, session = walk(messages)
    assert len(rows) == len(messages)
    for row, message in zip(rows, messages, strict=True):
        for name, value in message.items():
            found = json.loads(row[name]) if name == "reasoning_details" else row[name]
            assert found == storable(value), name
    assert session is not None
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    assert (session["message_count"], session["tool_call_count"]) == (len(messages), calls)


@pytest.mark.requirement("session_db:messages:counters")
async def test_sixteen_writers_of_four_stores_leave_exact_counters_and_each_its_order(session_store: OpenStore) -> None:
    stores = [session_store() for _ in range(4)]
    await stores[0].create_session("s", "cli")

    async def writer(number: int) -> None:
        for step in range(20):
            calls = CALLS * (step % 3)
            await stores[number % 4].append_message("s", "assistant", f"{number}:{step}", tool_calls=calls)

    await asyncio.gather(*(writer(number) for number in range(16)))
    rows, session = await stores[1].get_messages("s"), await stores[2].get_session("s")
    for store in stores:
        await store.close()

    assert session is not None
    assert (session["message_count"], session["tool_call_count"]) == (320, 16 * sum(step % 3 for step in range(20)))
    for number in range(16):
        own = [text for text in texts(rows) if text.startswith(f"{number}:")]
        assert own == [f"{number}:{step}" for step in range(20)]


@FILE_STORE
@pytest.mark.requirement("session_db:messages:counters")
async def test_a_session_that_is_deleted_while_it_is_written_does_not_come_back(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await said(session_db, "s", "one")
    outcomes = await asyncio.gather(
        *(session_db.append_message("s", "user", f"word {number}") for number in range(5)),
        session_db.delete_session("s"),
        *(session_db.append_message("s", "user", f"late {number}") for number in range(5)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [int] * 5 + [bool] + [UnknownSession] * 5
    assert await session_db.get_session("s") is None
    assert await session_db.message_count() == 0


@pytest.mark.requirement("session_db:messages:cancelled")
async def test_a_cancelled_write_is_whole_or_nothing_and_the_store_goes_on(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    pair = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    writes = [asyncio.create_task(session_db.append_messages_batch("s", pair)) for _ in range(40)]
    for number, write in enumerate(writes):
        if number % 2:
            write.cancel()
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    await session_db.append_message("s", "user", "last")

    rows, session = await session_db.get_messages("s"), await session_db.get_session("s")
    assert session is not None
    assert [type(outcome) for outcome in outcomes[::2]] == [int] * 20
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert texts(rows) == ["q", "a"] * (len(rows) // 2) + ["last"]
    assert 41 <= len(rows) <= 81
    assert session["message_count"] == len(rows)


@pytest.mark.requirement("session_db:messages:counters")
async def test_a_refused_write_counts_nothing(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await said(session_db, "s", "one")
    with pytest.raises(UnknownSession) as unknown:
        await session_db.append_message("nobody", "user", "x")
    assert unknown.value.session_id == "nobody"
    with pytest.raises(UnknownSession):
        await session_db.append_messages_batch("nobody", [{"role": "user", "content": "x"}])
    with pytest.raises(UnknownSession):
        await session_db.replace_messages("nobody", [])
    await session_db.end_session("s", "compression")
    await session_db.create_session("t", "cli", parent_session_id="s")
    for refused in (
        session_db.append_message("s", "user", "x"),
        session_db.append_messages_batch("s", [{"role": "user", "content": "x"}] * 3),
        session_db.replace_messages("s", []),
    ):
        with pytest.raises(CompressionSessionClosedError) as closed:
            await refused
        assert (closed.value.session_id, closed.value.tip) == ("s", "t")

    session = await session_db.get_session("s")
    assert session is not None
    assert session["message_count"] == await session_db.message_count("s") == await session_db.message_count() == 1


@pytest.mark.requirement("session_db:messages:counters")
async def test_a_batch_is_one_transaction_or_one_per_chunk(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    many = [{"role": "user", "content": str(number)} for number in range(7)]
    assert await session_db.append_messages_batch("s", many) == 7
    assert await session_db.append_messages_batch("s", many, chunk_rows=3) == 7
    assert await session_db.append_messages_batch("s", []) == 0
    for chunk in (0, -1):
        with pytest.raises(ValueError, match="chunk_rows must be positive"):
            await session_db.append_messages_batch("s", many, chunk_rows=chunk)
    assert texts(await session_db.get_messages("s")) == [str(number) for number in (*range(7), *range(7))]


@pytest.mark.requirement("session_db:messages:order")
async def test_a_clock_that_steps_back_changes_no_order(session_db: SessionDB, session_clock: ManualClock) -> None:
    await session_db.create_session("s", "cli")
    words = [f"word {number}" for number in range(6)]
    for number, word in enumerate(words):
        await session_db.append_message("s", "assistant" if number % 2 else "user", word)
        session_clock.advance(-3_600_000)
    rows = await session_db.get_messages("s")
    times = [row["timestamp"] for row in rows]

    assert times == sorted(times, reverse=True)
    assert texts(rows) == words
    assert texts(await session_db.get_messages("s", latest=True, limit=2)) == words[-2:]
    assert texts(await session_db.get_messages_as_conversation("s")) == words
    model, display = await session_db.get_resume_conversations("s")
    assert texts(model) == texts(display) == words
    assert (await session_db.get_session_rich_row("s") or {})["preview"] == "word 0"


@pytest.mark.requirement("session_db:messages:order")
async def test_pages_of_messages_are_counted_from_either_end(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = await said(session_db, "s", *"abcdef")

    async def page(**asked: Any) -> str:
        return "".join(texts(await session_db.get_messages("s", **asked)))

    assert await page(limit=2) == "ab"
    assert await page(limit=2, offset=1) == "bc"
    assert await page(limit=2, latest=True) == "ef"
    assert await page(limit=2, latest=True, offset=1) == "de"
    assert await page(after_id=ids[3]) == "ef"
    assert await page(after_id=ids[1], limit=1) == "c"
    assert await page(limit=0) == ""
    assert await session_db.get_messages("nobody") == []
    for asked in ({"latest": True}, {"offset": 1}):
        with pytest.raises(ValueError, match="after_id"):
            await session_db.get_messages("s", after_id=1, **asked)
