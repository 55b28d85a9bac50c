"""A server that dies while it folds its log into the main file, after one page after the other."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.database import Connection, Database

PAGE = 4096
LONG = "x" * 3_000


def store(path: Path) -> Database:
    return Database(path, migrations="tests.support.store_migrations", application_id=0x41495054)


def add(name: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO items (name) VALUES (:name)", {"name": name})


def names(connection: Connection) -> list[str]:
    return [row["name"] for row in connection.execute("SELECT name FROM items ORDER BY id")]


async def left_by_a_killed_server(folder: Path) -> tuple[bytes, bytes]:
    """Return the main file and the log as they are while a server runs, with all its rows in the log."""
    async with store(folder / "s.db") as db:
        for number in range(12):
            await db.write(add(f"{number} {LONG}"))
        return (folder / "s.db").read_bytes(), (folder / "s.db-wal").read_bytes()


def folded(folder: Path, main: bytes, log: bytes) -> bytes:
    """Return the main file after its log was folded in as a whole."""
    folder.mkdir()
    (folder / "s.db").write_bytes(main)
    (folder / "s.db-wal").write_bytes(log)
    with closing(sqlite3.connect(folder / "s.db")) as raw:
        assert raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    whole = (folder / "s.db").read_bytes()
    shutil.rmtree(folder)
    return whole


@pytest.mark.requirement("database:open:half-folded")
async def test_a_kill_between_any_two_pages_of_a_fold_costs_nothing(tmp_path: Path) -> None:
    main, log = await left_by_a_killed_server(tmp_path / "served")
    whole = folded(tmp_path / "folded", main, log)
    assert len(whole) > len(main) + 8 * PAGE
    for pages in range(len(whole) // PAGE + 1):
        folder = tmp_path / f"after-{pages}"
        folder.mkdir()
        (folder / "s.db").write_bytes(whole[: pages * PAGE] + main[pages * PAGE :])
        (folder / "s.db-wal").write_bytes(log)
        async with store(folder / "s.db") as db:
            assert len(await db.read(names)) == 12, pages
            await db.write(add("after"))
            assert (await db.read(names))[-1] == "after"
