"""Fifty readers and a writer that opens, writes and leaves, each a process of its own, beside the server of a store."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from aip_hermes.database import OwnerLock
from tests.support.store_copies import add, names_in, store

OPENERS = 50
ROOT = str(Path(__file__).resolve().parents[2])
PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from aip_hermes.database import Connection, Database, back_up, open_untouched

path, openers = Path(sys.argv[1]), int(sys.argv[2])
ours = {"migrations": "tests.support.store_migrations", "application_id": 0x41495054}
COUNT = "SELECT count(*) AS number FROM items"

def look():
    with open_untouched(path, **ours) as found:
        return Connection(found.raw).execute(COUNT)[0]["number"]

def copy():
    back_up(path, path.with_name(f"copy{os.getpid()}"), **ours)
    return 1

async def only_read():
    async with Database(path, read_only=True, **ours) as db:
        return (await db.read(lambda connection: connection.execute(COUNT)))[0]["number"]

async def write():
    async with Database(path, **ours) as db:
        await db.write(lambda connection: connection.execute("INSERT INTO items (name) VALUES ('theirs')"))
    return 1

KINDS = (look, copy, lambda: asyncio.run(only_read()))
for number in range(openers):
    if (child := os.fork()) == 0:
        work = (lambda: asyncio.run(write())) if number == openers // 2 else KINDS[number % len(KINDS)]
        os._exit(0 if work() > 0 else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, (number, status)
"""


@pytest.mark.requirement("store:openers:harmless")
async def test_whoever_opens_a_served_store_and_leaves_its_server_writes_on_into_the_same_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")]
    written = 0
    with OwnerLock(tmp_path):
        async with store(path) as db:
            await db.write(add("first"))
            before = [file.stat().st_ino for file in beside]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROGRAM, str(path), str(OPENERS), env=os.environ | {"PYTHONPATH": ROOT}
            )
            ended = asyncio.ensure_future(process.wait())
            while not ended.done():
                await db.write(add(str(written)))
                written += 1
            assert await ended == 0
            assert [file.stat().st_ino for file in beside] == before
            assert "theirs" in await db.read(
                lambda connection: [row["name"] for row in connection.execute("SELECT name FROM items")]
            )
    names = names_in(path)
    assert [name for name in names if name != "theirs"] == ["first", *map(str, range(written))]
    assert names.count("theirs") == 1
    assert written > 1
