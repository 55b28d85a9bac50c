"""What is stored again after a failure, or after its answer was lost, is there once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.session_db.store_file import StoreFile

T = TypeVar("T")
TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "alphaquestion"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "content": "gammaresult", "tool_call_id": "c1"},
    {"role": "assistant", "content": "deltareply", "finish_reason": "stop"},
]


class _FailingInsert(Connection):
    """Meets a locked database at the insert that brings `left` to zero."""

    def __init__(self, inner: Connection, store: _FailingFile) -> None:
        super().__init__(inner._raw)
        self._store = store

    def insert(self, query: str, params: Mapping[str, Any]) -> int:
        self._store.left -= 1
        if self._store.left == 0:
            raise sqlite3.OperationalError("database is locked")
        return super().insert(query, params)


class _FailingFile(StoreFile):
    left = 0

    async def write(self, function: Callable[[Connection], T]) -> T:
        return await super().write(lambda c: function(_FailingInsert(c, self)))


class FailingStore(SessionDB, _FailingFile):
    """A store whose `left`th insert from now on fails, once."""


@pytest.mark.requirement("sessions:killed:nothing-twice")
@pytest.mark.parametrize("at", range(1, len(TURN) + 1))
async def test_a_flush_that_failed_in_its_middle_may_be_repeated(tmp_path: Path, at: int) -> None:
    async with FailingStore(tmp_path / "hermes.db") as db:
        await db.create_session("s", "api_server")
        db.left = at
        with pytest.raises(StoreUnavailable) as locked:
            await db.append_messages_batch("s", TURN)
        assert locked.value.kind == "locked"
        assert await db.get_messages("s") == []
        assert await db.append_messages_batch("s", TURN) == len(TURN)

        session = await db.get_session("s")
        assert session is not None
        assert (session["message_count"], session["tool_call_count"]) == (len(TURN), 1)
        assert [row["content"] for row in await db.get_messages("s")] == [message["content"] for message in TURN]
        for text in ("alphaquestion", "gammaresult", "deltareply"):
            assert len(await db.search_messages(text)) == 1


@pytest.mark.requirement("sessions:killed:nothing-lost")
async def test_a_write_whose_caller_is_gone_is_whole_or_not_there(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "api_server")
        waiting = [asyncio.create_task(db.append_messages_batch("s", TURN)) for _ in range(12)]
        await db.get_session("s")  # meanwhile each has said what it wants
        for number, task in enumerate(waiting):
            if number % 2:
                task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        rows = await db.get_messages("s")
        session = await db.get_session("s")
        assert session is not None
    turns, rest = divmod(len(rows), len(TURN))
    assert rest == 0
    assert sum(end == len(TURN) for end in ends) <= turns <= len(waiting)
    assert [row["content"] for row in rows] == [message["content"] for message in TURN] * turns
    assert (session["message_count"], session["tool_call_count"]) == (len(rows), turns)
    with closing(sqlite3.connect(tmp_path / "hermes.db")) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
