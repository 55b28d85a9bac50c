"""A store and the event loop that uses it: what ends within an operation, what waits at a close, what comes after."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import Connection, Database, StoreUnavailable

MIGRATIONS = "tests.support.store_migrations"
APPLICATION_ID = 0x41495054
INSERT = "INSERT INTO items (name) VALUES (:name) RETURNING id"


def _store(path: Path) -> Database:
    return Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID)


def _add(name: str) -> Any:
    return lambda connection: connection.execute(INSERT, {"name": name})[0]["id"]


def _names(connection: Connection) -> list[str]:
    return [row["name"] for row in connection.execute("SELECT name FROM items ORDER BY id")]


def _in_a_loop_of_its_own(work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    asyncio.run(work())


class _Held:
    """An operation that has begun and goes on when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, connection: Connection) -> list[str]:
        self.begun.set()
        assert self.let_go.wait(30)
        return _names(connection)


@pytest.mark.requirement("database:close:waits-for-reads")
async def test_a_close_lets_every_read_and_write_end_that_came_before_it(tmp_path: Path) -> None:
    db = _store(tmp_path / "s.db")
    await db.write(_add("a"))
    held = _Held()
    reads = [asyncio.create_task(db.read(held)) for _ in range(12)]
    writes = [asyncio.create_task(db.write(_add(name))) for name in "bcd"]
    assert await asyncio.to_thread(held.begun.wait, 30)
    closing = asyncio.create_task(db.close())
    held.let_go.set()
    async with asyncio.timeout(30):
        assert {name for found in await asyncio.gather(*reads) for name in found} <= set("abcd")
        assert await asyncio.gather(*writes) == [2, 3, 4]
        await closing


@pytest.mark.requirement("database:loop:next-goes-on")
def test_the_next_loop_goes_on_where_one_ended_within_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    db, held = _store(tmp_path / "s.db"), _Held()

    async def leave_within() -> None:
        await db.write(_add("a"))
        left = [asyncio.create_task(db.write(work)) for work in (held, _add("never begun"))]
        left += [asyncio.create_task(db.read(held)) for _ in range(5)]
        assert await asyncio.to_thread(held.begun.wait, 30)
        for task in left:
            task.cancel()

    async def go_on() -> list[str]:
        async with asyncio.timeout(30):
            await asyncio.gather(*(db.write(_add(name)) for name in "bc"))
            found = await asyncio.gather(*(db.read(_names) for _ in range(10)))
            await db.close()
            return found[0]

    asyncio.run(leave_within())
    held.let_go.set()
    assert [name for name in asyncio.run(go_on()) if name != "never begun"] == ["a", "b", "c"]
    assert died == []


@pytest.mark.requirement("database:loop:next-goes-on")
async def test_a_second_loop_beside_the_first_is_refused(tmp_path: Path) -> None:
    db = _store(tmp_path / "s.db")
    await db.write(_add("a"))
    for work in (lambda: db.read(_names), lambda: db.write(_add("b")), db.close):
        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(_in_a_loop_of_its_own, work)
    assert await db.read(_names) == ["a"]
    await db.close()


@pytest.mark.requirement("database:look-up:typed")
async def test_a_damaged_page_is_a_typed_failure_wherever_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with _store(path) as db:
        await db.write(_add("a"))
        assert await db.look_up(_names) == ["a"]
    raw = sqlite3.connect(path)
    (page,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'items'").fetchone()
    (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    async with _store(path) as db:
        for read in (db.look_up, db.read):
            with pytest.raises(StoreUnavailable) as raised:
                await read(_names)
            assert raised.value.kind == "corrupt"
