"""One session through many endpoints, each a process of its own: every turn adds its own rows and nothing else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.crash_stage import Forks, running_forks
from tests.support.told_turns import transcript

PROCESSES = int(os.environ.get("SESSION_PROCESSES", "10"))
"""How many endpoints take a turn, one after the other."""
TEXT_CHARS = 8_000


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@asynccontextmanager
async def endpoint(forks: Forks, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    server = await asyncio.to_thread(forks.start_hermes, folder)
    try:
        headers = {"Authorization": f"Bearer {server.key}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=30) as client:
            yield client
    finally:
        await asyncio.to_thread(forks.kill)


async def asked(client: httpx.AsyncClient, method: str, path: str, **body: Any) -> dict[str, Any]:
    answer = await client.request(method, path, json=body or None)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.requirement("sessions:generations:own-rows")
async def test_each_turn_of_a_fresh_process_adds_its_own_rows_alone(tmp_path: Path, forks: Forks) -> None:
    texts: list[str] = []
    for number in range(PROCESSES):
        async with endpoint(forks, tmp_path) as client:
            if number == 0:
                await asked(client, "POST", "/api/sessions", id="s")
            question = f"question {number} ".ljust(TEXT_CHARS, "x")
            reply = await asked(client, "POST", "/api/sessions/s/chat", message=question)
            texts += [question, reply["message"]["content"]]
            session, rows = await transcript(client, "s")
        assert [row["content"] for row in rows] == texts
        assert session["message_count"] == 2 * (number + 1)
    ids = [row["id"] for row in rows]
    assert ids == sorted(set(ids))
    with closing(sqlite3.connect(tmp_path / "data" / "hermes.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    said = sum(len(text.encode()) for text in texts)
    # The store beside its texts: schema, rows and the index of words; growth with the square of the turns would show.
    assert (tmp_path / "data" / "hermes.db").stat().st_size < 2 * said + 400_000


@pytest.mark.requirement("sessions:generations:forks")
async def test_forks_of_a_deleted_source_are_read_continued_and_deleted_by_other_processes(
    tmp_path: Path, forks: Forks
) -> None:
    async with endpoint(forks, tmp_path) as client:
        await asked(client, "POST", "/api/sessions", id="source")
        await asked(client, "POST", "/api/sessions/source/chat", message="before the fork")
        await asked(client, "POST", "/api/sessions/source/fork", id="one", title="One")
        await asked(client, "POST", "/api/sessions/source/fork", id="two", title="Two")
        await asked(client, "POST", "/api/sessions/one/chat", message="on the branch")
    async with endpoint(forks, tmp_path) as client:
        # The source is still read as itself, not as its branch.
        read = await asked(client, "GET", "/api/sessions/source/messages")
        assert read["session_id"] == "source"
        assert [row["content"] for row in read["data"] if row["role"] == "user"] == ["before the fork"]
        await asked(client, "DELETE", "/api/sessions/source")
    async with endpoint(forks, tmp_path) as client:
        listed = {row["id"]: row for row in (await asked(client, "GET", "/api/sessions"))["data"]}
        assert {name: listed[name]["parent_session_id"] for name in listed} == {"one": None, "two": None}
        _, rows = await transcript(client, "one")
        assert [row["content"] for row in rows if row["role"] == "user"] == ["before the fork", "on the branch"]
        await asked(client, "POST", "/api/sessions/two/chat", message="goes on")
        for name in ("one", "two"):
            await asked(client, "DELETE", f"/api/sessions/{name}")
        assert (await asked(client, "GET", "/api/sessions"))["data"] == []
