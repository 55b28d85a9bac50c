"""The store that the tests of SessionDB run on: opened anew for each test, under a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from tests.support.postgres import another_database
from tests.support.runtime_clock import ManualClock

__all__ = ["OpenStore", "chain", "ids_of", "said", "session_clock", "session_db", "session_store", "texts"]

OpenStore = Callable[[], SessionDB]


@pytest.fixture
def session_clock() -> ManualClock:
    """The clock of the store; it moves when a test moves it."""
    return ManualClock()


@pytest.fixture
def session_store(tmp_path: Path, session_clock: ManualClock) -> OpenStore:
    """Makes a SessionDB on the one place of this test, as often as it is called: a new process' view of it.

    A file, or with AIP_TEST_STORE=postgres a database.
    """
    place = another_database() or tmp_path / "hermes.db"
    return lambda: SessionDB(place, clock=session_clock)


@pytest.fixture
async def session_db(session_store: OpenStore) -> AsyncIterator[SessionDB]:
    """An open store."""
    async with session_store() as db:
        yield db


async def said(db: SessionDB, session_id: str, *words: str) -> list[int]:
    """Append words as user and assistant in turn; returns the row ids."""
    return [
        await db.append_message(session_id, "assistant" if place % 2 else "user", word)
        for place, word in enumerate(words)
    ]


async def chain(db: SessionDB, *ids: str) -> None:
    """Make rows that compressions cut a conversation into; each holds one message with its own id."""
    parent: str | None = None
    for session_id in ids:
        if parent is not None:
            await db.end_session(parent, "compression")
        await db.create_session(session_id, "cli", parent_session_id=parent)
        await said(db, session_id, f"in {session_id}")
        parent = session_id


def texts(messages: Sequence[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


def ids_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]
