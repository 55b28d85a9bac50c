"""What sessions used: sums on the row, sums by model, and reports that nobody waits for."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB, Usage
from aip_hermes.embedded.session_db.usage import Report, coalesced
from tests.support.postgres import FILE_STORE
from tests.support.session_stores import OpenStore

SUMS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode")


@pytest.fixture
def db(session_db: SessionDB) -> SessionDB:
    return session_db


async def of(db: SessionDB, session_id: str, *names: str) -> tuple[Any, ...]:
    row = await db.get_session(session_id)
    assert row is not None
    return tuple(row[name] for name in names)


@pytest.mark.requirement("session_db:usage:sums")
async def test_reports_add_and_an_absolute_one_takes_the_place_of_the_sums(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    one: dict[str, Any] = dict(zip(SUMS, (1, 2, 3, 4, 5, 1), strict=True))
    await db.update_token_counts("s", **one, estimated_cost_usd=0.5, cost_status="estimated")
    await db.update_token_counts("s", **one, estimated_cost_usd=0.25, actual_cost_usd=0.1)
    assert await of(db, "s", *SUMS) == (2, 4, 6, 8, 10, 2)
    costs = ("estimated_cost_usd", "actual_cost_usd", "cost_status")
    assert await of(db, "s", *costs) == (0.75, 0.1, "estimated")

    await db.update_token_counts("s", 100, 50, absolute=True, actual_cost_usd=7.0, cost_status="actual")
    assert await of(db, "s", *SUMS) == (100, 50, 0, 0, 0, 0)
    assert await of(db, "s", *costs) == (0.75, 7.0, "actual")


@pytest.mark.requirement("session_db:usage:sums")
async def test_the_first_report_fixes_model_and_route_and_later_ones_fill_what_is_unknown(db: SessionDB) -> None:
    await db.create_session("s", "cli", model="configured")
    await db.update_token_counts("s", 1, model="used", billing_provider="p")
    assert await of(db, "s", *ROUTE) == ("used", "p", None, None)
    await db.update_token_counts("s", 1, model="other", billing_provider="q", billing_mode="m")
    assert await of(db, "s", *ROUTE) == ("used", "p", None, "m")


@pytest.mark.requirement("session_db:usage:sums")
async def test_a_missing_row_is_made_and_sums_go_beyond_32_bits(db: SessionDB) -> None:
    for _ in range(3):
        await db.update_token_counts("new", 2**31, 2**52)
    assert await of(db, "new", "source", "input_tokens", "output_tokens") == ("unknown", 3 * 2**31, 3 * 2**52)


@pytest.mark.requirement("session_db:usage:by-model")
async def test_sums_by_model_hold_what_was_added_and_side_tasks_count_there_alone(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    await db.update_token_counts("s", 10, 1, "big", billing_provider="p", api_call_count=1)
    await db.update_token_counts("s", 20, 2, "big", api_call_count=1, actual_cost_usd=0.5)
    await db.update_token_counts("s", 5, 5, "small", api_call_count=1)
    await db.update_token_counts("s", 999, 999, "big", absolute=True)
    await db.record_auxiliary_usage("s", "title", model="small", input_tokens=7, cost_status="free")
    await db.record_auxiliary_usage("s", "title", model="small", input_tokens=1)

    shown = ("model", "billing_provider", "task", "input_tokens", "output_tokens", "api_call_count", "actual_cost_usd")
    rows = [tuple(row[name] for name in shown) for row in await db.get_model_usage("s")]
    assert sorted(rows) == [
        ("big", "p", "", 30, 3, 2, 0.5),
        ("small", "", "title", 8, 0, 2, None),
        ("small", "p", "", 5, 5, 1, None),
    ]
    assert await of(db, "s", "input_tokens", "output_tokens") == (999, 999)


@pytest.mark.requirement("session_db:usage:by-model")
async def test_what_a_turn_used_is_in_both(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    for model in ("m", "n"):
        usage = Usage(input_tokens=3, output_tokens=2)
        await db.record_reply("s", "answer", finish_reason="stop", usage=usage, model=model)
    rows = [
        (row["model"], row["task"], row["input_tokens"], row["api_call_count"]) for row in await db.get_model_usage("s")
    ]
    assert rows == [("m", "", 3, 1), ("n", "", 3, 1)]
    assert await of(db, "s", "model", "input_tokens", "api_call_count") == ("m", 6, 2)


@pytest.mark.requirement("session_db:usage:by-model")
async def test_sums_by_model_go_with_their_session(db: SessionDB) -> None:
    await db.update_token_counts("s", 1, model="m")
    await db.record_auxiliary_usage("t", "title", model="m", input_tokens=1)
    assert await db.delete_sessions(["s", "t"]) == 2
    assert await db.get_model_usage("s") == []
    assert await db.read(lambda c: c.execute("SELECT * FROM model_usage")) == []


@pytest.mark.requirement("session_db:usage:no-return")
async def test_what_comes_late_brings_no_session_back(db: SessionDB) -> None:
    for name in ("deleted", "again"):
        await db.create_session(name, "cli")
        await db.delete_session(name)
    await db.queue_token_counts("deleted", 5)
    await db.update_token_counts("deleted", 5, absolute=True)
    await db.record_auxiliary_usage("deleted", "title", input_tokens=5)
    assert await db.flush_token_counts()
    assert await db.get_session("deleted") is None
    assert await db.get_model_usage("deleted") == []

    await db.create_session("again", "cli")
    await db.update_token_counts("again", 5)
    assert await of(db, "again", "input_tokens") == (5,)


@pytest.mark.requirement("session_db:usage:impossible")
@pytest.mark.parametrize("count", [-1, 2**53, float("nan"), float("inf"), "12", None, True])
async def test_what_is_no_count_counts_as_none(db: SessionDB, count: Any) -> None:
    await db.update_token_counts("s", count, 3, estimated_cost_usd=count if isinstance(count, float) else -0.5)
    assert await of(db, "s", "input_tokens", "output_tokens", "estimated_cost_usd") == (0, 3, None)


@pytest.mark.requirement("session_db:usage:queue")
async def test_queued_reports_are_stored_by_a_flush_and_neighbours_become_one(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    for number in range(100):
        await db.queue_token_counts("s", 1, model="m" if number < 50 else "n", api_call_count=1)
    assert await db.flush_token_counts() is True
    assert await of(db, "s", "input_tokens", "api_call_count", "model") == (100, 100, "m")
    assert [(row["model"], row["input_tokens"]) for row in await db.get_model_usage("s")] == [("m", 50), ("n", 50)]
    assert await db.flush_token_counts(0) is True


@pytest.mark.requirement("session_db:usage:queue")
def test_only_neighbours_of_one_session_and_route_become_one_report() -> None:
    def report(session_id: str, tokens: int, **others: Any) -> Report:
        return Report(session_id=session_id, input_tokens=tokens, **others)

    queued = [
        report("a", 1, cost_status="x", actual_cost_usd=0.5),
        report("a", 2, cost_source="y"),
        report("b", 4),
        report("a", 8),
        report("a", 16, absolute=True),
        report("a", 32, absolute=True),
        report("a", 64, model="m"),
    ]
    assert coalesced(queued) == [
        report("a", 3, cost_status="x", cost_source="y", actual_cost_usd=0.5),
        *queued[2:],
    ]


@pytest.mark.requirement("session_db:usage:queue")
async def test_closing_stores_what_is_queued(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.queue_token_counts("s", 5)
    async with session_store() as db:
        assert await of(db, "s", "input_tokens") == (5,)
    with pytest.raises(RuntimeError):
        await db.queue_token_counts("s", 5)


@pytest.mark.requirement("session_db:usage:queue")
async def test_a_listing_shows_what_is_queued(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    await db.queue_token_counts("s", 5)
    assert [row["input_tokens"] for row in await db.list_sessions_rich()] == [5]


@FILE_STORE
@pytest.mark.requirement("session_db:usage:queue")
async def test_reports_wait_for_a_locked_store_and_keep_nobody_waiting(db: SessionDB) -> None:
    await db.create_session("s", "cli")
    other = sqlite3.connect(db.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        await db.queue_token_counts("s", 5)
        assert await db.flush_token_counts(0.05) is False
        await db.queue_token_counts("s", 6)
    finally:
        other.execute("ROLLBACK")
        other.close()
    async with asyncio.timeout(30):
        assert await db.flush_token_counts(30) is True
    assert await of(db, "s", "input_tokens") == (11,)
