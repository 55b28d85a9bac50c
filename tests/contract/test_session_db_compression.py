"""Compression of stored transcripts: in place, into a child, and never by half."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.database import Connection
from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.session_db import (
    CompressionSessionBusyError,
    CompressionSessionClosedError,
    SessionCompressionInProgressError,
    SessionExists,
    UnknownSession,
    compression,
)
from tests.support.runtime_clock import ManualClock

SUMMARY = {"role": "assistant", "content": "[CONTEXT COMPACTION] of the middle", "display_kind": "hidden"}


class Broken(Connection):
    """Fails instead of its `at`th statement that could change something."""

    def __init__(self, inner: Connection, at: int) -> None:
        self.inner, self.left, self.engine = inner, at, inner.engine

    @property
    def changes(self) -> int:
        return self.inner.changes

    def execute(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        self._count()
        return self.inner.execute(query, params or {})

    def insert(self, query: str, params: Mapping[str, Any]) -> int:
        self._count()
        return self.inner.insert(query, params)

    def tuples(self, query: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self.inner.tuples(query, params or {})

    def time_of_leases(self, own: float) -> float:
        return self.inner.time_of_leases(own)

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError("the disk is gone")


@pytest.fixture
def clock(session_clock: ManualClock) -> ManualClock:
    return session_clock


@pytest.fixture
async def db(session_db: SessionDB) -> SessionDB:
    """A store with session `s` of six messages, one of them with a tool call."""
    await session_db.create_session(
        "s", "api_server", model="m", model_config={"_branched_from": "older", "max_iterations": 9}, user_id="u",
        session_key="key", cwd="/w", system_prompt="Be brief.",
    )  # fmt: skip
    await session_db.set_session_title("s", "Case")
    for number in range(6):
        calls = [{"id": "c", "function": {"name": "n", "arguments": "{}"}}] if number == 3 else None
        await session_db.append_message("s", ("user", "assistant")[number % 2], f"m{number}", tool_calls=calls)
    return session_db


async def everything(db: SessionDB) -> Any:
    """Return all rows that there are."""
    queries = ("SELECT * FROM sessions ORDER BY id", "SELECT * FROM messages ORDER BY id", "SELECT * FROM leases")
    return await db.read(lambda c: [c.execute(query) for query in queries])


async def texts(db: SessionDB, session_id: str, **options: Any) -> list[Any]:
    return [row["content"] for row in await db.get_messages(session_id, **options)]


@pytest.mark.requirement("session_db:compression:lock")
async def test_two_compressors_are_kept_apart(db: SessionDB, clock: ManualClock) -> None:
    assert await db.try_acquire_compression_lock("s", "a", 10)
    assert await db.try_acquire_compression_lock("s", "a", 10)
    assert not await db.try_acquire_compression_lock("s", "b")
    assert not await db.release_compression_lock("s", "b")
    assert not await db.refresh_compression_lock("s", "b")
    for holder in (None, "b"):
        with pytest.raises(SessionCompressionInProgressError):
            await db.archive_and_compact("s", [SUMMARY], lock_holder=holder)
    clock.advance(10_000)
    with pytest.raises(CompressionSessionBusyError):
        await db.publish_compression_child("s", "child", [SUMMARY], lock_holder="a")
    assert await db.try_acquire_compression_lock("s", "b", 10)
    assert not await db.refresh_compression_lock("s", "a")
    assert await db.get_compression_lock_holder("s") == "b"
    assert await texts(db, "s") == [f"m{number}" for number in range(6)]
    # A lock holds up compressors only.
    await db.append_message("s", "user", "meanwhile", compression_lock_holder="x")
    assert await db.archive_and_compact("s", [SUMMARY], lock_holder="b") == 1
    assert await db.release_compression_lock("s", "b")


@pytest.mark.requirement("session_db:compression:in-place")
async def test_a_compaction_in_place_keeps_old_rows_and_puts_later_ones_behind(db: SessionDB) -> None:
    rows = await db.get_messages("s")
    await db.append_message("s", "user", "meanwhile", platform_message_id="p1")
    live = await db.archive_and_compact(
        "s", [rows[0], SUMMARY, *rows[4:]], {"max_iterations": None, "note": 1}, rows[-1]["id"]
    )
    now = await db.get_messages("s")
    row = await db.get_session("s")
    assert row is not None

    assert live == 5
    assert [r["content"] for r in now] == ["m0", SUMMARY["content"], "m4", "m5", "meanwhile"]
    assert [r["id"] for r in now] == sorted(r["id"] for r in now)
    assert now[0]["id"] > rows[-1]["id"]
    assert (now[0]["timestamp"], now[-1]["platform_message_id"]) == (rows[0]["timestamp"], "p1")
    assert (row["message_count"], row["tool_call_count"], row["ended_at"]) == (5, 0, None)
    assert json.loads(row["model_config"]) == {"_branched_from": "older", "note": 1}
    kept = [r for r in await db.get_messages("s", include_inactive=True) if not r["active"]]
    assert [(r["content"], r["compacted"]) for r in kept] == [
        *((f"m{number}", 1) for number in range(6)), ("meanwhile", 1)
    ]  # fmt: skip


@pytest.mark.requirement("session_db:compression:row-ids")
async def test_copies_of_messages_are_known_by_their_row_ids(db: SessionDB) -> None:
    history = await db.get_messages_as_conversation("s", include_row_ids=True)
    await db.append_message("s", "user", "in both")
    newer = await db.get_messages_as_conversation("s", include_row_ids=True)
    copies = [json.loads(json.dumps(message)) for message in (*history[:1], SUMMARY, newer[-1])]
    # Compressed up to the old end, and the newest message is among what stands there now.
    assert await db.archive_and_compact("s", copies, watermark=history[-1]["_row_id"]) == 3
    assert await texts(db, "s") == ["m0", SUMMARY["content"], "in both"]
    again = await db.get_messages_as_conversation("s", include_row_ids=True)
    copies = [json.loads(json.dumps(message)) for message in again]
    await db.publish_compression_child("s", "child", copies, watermark=again[0]["_row_id"])
    assert await texts(db, "child") == ["m0", SUMMARY["content"], "in both"]
    assert len(await db.get_messages("s")) == 3


@pytest.mark.requirement("session_db:compression:rotation")
async def test_a_rotation_goes_on_in_a_child(db: SessionDB) -> None:
    rows = await db.get_messages("s")
    await db.append_message("s", "user", "meanwhile")
    assert await db.publish_compression_child("s", "child", [SUMMARY, rows[-1]], watermark=rows[-1]["id"]) == 3
    parent, child = await db.get_session("s"), await db.get_session("child")
    assert parent is not None
    assert child is not None

    assert (parent["end_reason"], parent["title"], parent["message_count"]) == ("compression", "Case", 7)
    assert (child["parent_session_id"], child["title"], child["ended_at"]) == ("s", "Case #2", None)
    inherited = ("source", "model", "user_id", "session_key", "cwd", "system_prompt")
    assert [child[name] for name in inherited] == [parent[name] for name in inherited]
    assert json.loads(child["model_config"]) == {"max_iterations": 9}
    assert await texts(db, "child") == [SUMMARY["content"], "m5", "meanwhile"]
    assert await texts(db, "s") == [*(f"m{number}" for number in range(6)), "meanwhile"]
    assert await db.resolve_resume_session_id("s") == "child"
    with pytest.raises(CompressionSessionClosedError) as closed:
        await db.append_message("s", "user", "late")
    assert closed.value.tip == "child"


@pytest.mark.requirement("session_db:compression:atomic")
@pytest.mark.parametrize("way", ["rotation", "in place"])
async def test_a_compression_that_fails_anywhere_changes_nothing(db: SessionDB, way: str) -> None:
    rows = await db.get_messages("s")
    await db.append_message("s", "user", "meanwhile")
    compacted, before = [rows[0], SUMMARY, rows[-1]], await everything(db)

    def attempt(connection: Connection, at: int) -> int:
        broken = Broken(connection, at)
        if way == "rotation":
            compression.publish_child(broken, "s", "child", compacted, now=1.0, watermark=rows[-1]["id"])
        else:
            compression.archive_and_compact(broken, "s", compacted, now=1.0, watermark=rows[-1]["id"])
        return broken.left

    at, left = 0, 0
    while left <= 0:
        at += 1
        try:
            left = await db.write(lambda c, at=at: attempt(c, at))  # type: ignore[misc]
        except OSError:
            assert await everything(db) == before
    assert at > 10
    assert await everything(db) != before


@pytest.mark.requirement("session_db:compression:refused")
async def test_a_compression_that_makes_no_sense_is_refused(db: SessionDB) -> None:
    await db.create_session("ended", "test")
    await db.append_message("ended", "user", "x")
    await db.end_session("ended", "done")
    before = await everything(db)
    with pytest.raises(ValueError, match="empty"):
        await db.archive_and_compact("s", [])
    with pytest.raises(ValueError, match="without messages"):
        await db.publish_compression_child("s", "child", [])
    with pytest.raises(UnknownSession):
        await db.archive_and_compact("none", [SUMMARY])
    with pytest.raises(UnknownSession):
        await db.publish_compression_child("none", "child", [SUMMARY])
    with pytest.raises(CompressionSessionBusyError):
        await db.publish_compression_child("ended", "child", [SUMMARY])
    with pytest.raises(SessionExists):
        await db.publish_compression_child("s", "ended", [SUMMARY])
    assert await everything(db) == before


@pytest.mark.requirement("session_db:compression:cooldown")
async def test_a_failed_summary_is_noted_until_one_succeeds(db: SessionDB, clock: ManualClock) -> None:
    for error in ("first", "x" * 900):
        await db.record_compression_failure("s", error, cooldown_seconds=60)
    row = await db.get_session("s")
    assert row is not None
    names = ("compression_failure_cooldown_until", "compression_failure_error", "compression_fallback_streak")
    assert [row[name] for name in names] == [clock.now_ms() / 1000 + 60, "x" * 500, 2]
    await db.record_compression_failure("nobody", "x")
    await db.archive_and_compact("s", [SUMMARY])
    row = await db.get_session("s")
    assert row is not None
    assert [row[name] for name in names] == [None, None, 0]
