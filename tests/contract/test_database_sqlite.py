"""The store on SQLite, with real files, threads and processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from aip_hermes.database import (
    AlreadyOwned,
    Connection,
    Database,
    OwnerLock,
    StoreClosed,
    StoreConflict,
    StoreFailure,
    StoreRefused,
    StoreUnavailable,
)
from aip_hermes.database import database as database_module

MIGRATIONS = "tests.support.store_migrations"
APPLICATION_ID = 0x41495054
INSERT = "INSERT INTO items (name) VALUES (:name) RETURNING id"


def store(path: Path, **options: Any) -> Database:
    return Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID, **options)


def add(name: str) -> Any:
    return lambda connection: connection.execute(INSERT, {"name": name})[0]["id"]


def names(connection: Connection) -> list[str]:
    return [row["name"] for row in connection.execute("SELECT name FROM items ORDER BY id")]


@asynccontextmanager
async def uncommitted(db: Database, name: str) -> AsyncIterator[None]:
    """Let a write be under way that has written `name` already; it commits after the block."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        add(name)(connection)
        inside.set()
        assert go_on.wait(30)

    writing = asyncio.create_task(db.write(slow))
    async with asyncio.timeout(30):
        assert await asyncio.to_thread(inside.wait, 30)
        try:
            yield
        finally:
            go_on.set()
        await writing


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


@pytest.mark.requirement("database:open:lazy")
async def test_the_constructor_touches_nothing_and_the_first_write_makes_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "store.db"
    async with store(path) as db:
        assert not path.parent.exists()
        assert await db.write(add("a")) == 1
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.exists()


@pytest.mark.requirement("database:open:private")
async def test_the_files_are_the_owner_s_alone_whatever_the_folder_allows(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with store(tmp_path / "s.db") as db:
            await db.write(add("a"))
            modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("s.db", "s.db-wal", "s.db-shm")}
    finally:
        os.umask(before)
    assert modes == {"s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600}


@pytest.mark.requirement("database:write:group-commit")
async def test_writes_that_wait_share_a_transaction_and_fail_alone(tmp_path: Path) -> None:
    async with store(tmp_path / "s.db") as db:
        await db.write(add("taken"))
        answers = await asyncio.gather(
            *(db.write(add(name)) for name in ("b", "taken", "c", "d")), return_exceptions=True
        )
        assert [type(answer).__name__ for answer in answers] == ["int", "StoreConflict", "int", "int"]
        assert await db.read(names) == ["taken", "b", "c", "d"]


@pytest.mark.requirement("database:write:group-commit")
async def test_a_write_is_answered_after_the_commit_that_it_shares(tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def last(connection: Connection) -> None:
        inside.set()
        assert go_on.wait(30)
        add("last")(connection)

    async with store(tmp_path / "s.db") as db:
        await db.write(add("before"))
        first, second = (asyncio.create_task(db.write(function)) for function in (add("first"), last))
        assert await asyncio.to_thread(inside.wait, 30)
        assert await db.read(names) == ["before"]
        assert not first.done()
        go_on.set()
        await asyncio.gather(first, second)
        assert await db.read(names) == ["before", "first", "last"]


async def test_an_exception_of_the_operation_undoes_it_and_reaches_its_caller_only(tmp_path: Path) -> None:
    def fails(connection: Connection) -> None:
        connection.execute(INSERT, {"name": "half"})
        raise LookupError("no")

    async with store(tmp_path / "s.db") as db:
        answers: list[object] = list(
            await asyncio.gather(db.write(fails), db.write(add("whole")), return_exceptions=True)
        )
        assert [type(answer) for answer in answers] == [LookupError, int]
        with pytest.raises(LookupError):
            await db.write(fails)
        assert await db.read(names) == ["whole"]


@pytest.mark.requirement("database:read:does-not-wait")
async def test_a_look_up_sees_the_last_commit_beside_a_running_write_and_changes_nothing(tmp_path: Path) -> None:
    async with store(tmp_path / "s.db") as db:
        await db.write(add("a"))
        async with uncommitted(db, "b"):
            assert await db.look_up(names) == ["a"]
            with pytest.raises(StoreFailure):
                await db.look_up(add("c"))
        assert await db.look_up(names) == ["a", "b"]


@pytest.mark.requirement("database:read:does-not-wait")
async def test_a_read_passes_a_running_write_transaction(tmp_path: Path) -> None:
    async with store(tmp_path / "s.db") as db:
        await db.write(add("a"))
        async with uncommitted(db, "b"):
            assert await db.read(names) == ["a"]
        assert await db.read(names) == ["a", "b"]


@pytest.mark.requirement("database:open:foreign-refused")
@pytest.mark.parametrize("wal", [False, True])
async def test_a_foreign_file_is_refused_and_untouched(tmp_path: Path, wal: bool) -> None:
    path = tmp_path / "state.db"
    foreign = sqlite3.connect(path)
    if wal:
        foreign.execute("PRAGMA journal_mode = WAL")
    foreign.execute("CREATE TABLE sessions (id TEXT)")
    foreign.commit()
    before = contents(tmp_path)
    with pytest.raises(StoreRefused, match="another program"):
        await store(path).write(add("a"))
    foreign.close()
    if not wal:
        assert contents(tmp_path) == before
    assert path.read_bytes()[68:72] == b"\0\0\0\0"


async def test_a_file_that_is_no_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_text("a letter to a friend " * 400, encoding="utf-8")
    with pytest.raises(StoreRefused):
        await store(path).write(add("a"))
    assert path.read_text(encoding="utf-8").startswith("a letter")


@pytest.mark.requirement("database:open:empty-is-new")
async def test_an_empty_file_is_new(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    async with store(path) as db:
        assert await db.write(add("a")) == 1


@pytest.mark.requirement("database:open:newer-refused")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("INSERT INTO schema_migrations VALUES (2, 'later', 'x', 0)", "version 2, this program knows up to 1"),
        ("UPDATE schema_migrations SET checksum = 'other'", "another text"),
    ],
)
async def test_a_newer_or_altered_schema_is_refused(tmp_path: Path, change: str, text: str) -> None:
    path = tmp_path / "s.db"
    async with store(path) as db:
        await db.write(add("a"))
    raw = sqlite3.connect(path)
    raw.execute(change)
    raw.commit()
    raw.close()
    with pytest.raises(StoreRefused, match=text):
        await store(path).read(names)


@pytest.mark.requirement("database:read-only:never-migrates")
async def test_read_only_makes_migrates_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with pytest.raises(StoreUnavailable) as missing:
        await store(path, read_only=True).read(names)
    assert missing.value.kind == "missing"
    assert not path.exists()
    async with store(path) as db:
        await db.write(add("a"))
    async with store(path, read_only=True) as db:
        assert await db.read(names) == ["a"]
        with pytest.raises(StoreUnavailable):
            await db.write(add("b"))


@pytest.mark.requirement("database:read-only:never-migrates")
async def test_read_only_refuses_a_schema_of_before_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    raw.close()
    before = contents(tmp_path)
    with pytest.raises(StoreRefused, match="version 0"):
        await store(path, read_only=True).read(lambda connection: connection.execute("SELECT 1 AS alive"))
    assert contents(tmp_path) == before


@pytest.mark.requirement("database:close:idempotent")
async def test_close_is_idempotent_and_use_after_it_is_typed(tmp_path: Path) -> None:
    db = store(tmp_path / "s.db")
    await db.close()
    with pytest.raises(StoreClosed):
        await db.read(names)
    db = store(tmp_path / "s.db")
    waiting = asyncio.create_task(db.write(add("a")))
    assert await waiting == 1
    await db.close()
    await db.close()
    with pytest.raises(StoreClosed):
        await db.write(add("b"))


def run(script: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


OPEN = f"""
import asyncio, sys
from aip_hermes.database import Database
db = Database(sys.argv[1], migrations={MIGRATIONS!r}, application_id={APPLICATION_ID})
def add(name):
    return lambda c: c.execute({INSERT!r}, {{"name": name}})
"""


@pytest.mark.requirement("database:close:idempotent")
def test_a_forgotten_store_does_not_keep_the_process(tmp_path: Path) -> None:
    process = run(OPEN + "asyncio.run(db.write(add('a')))", str(tmp_path / "s.db"))
    with process:
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.requirement("database:write:survives-kill")
async def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    script = (
        OPEN
        + """
async def main():
    for number in range(10_000):
        await db.write(add(str(number)))
        print(number, flush=True)
asyncio.run(main())
"""
    )
    path = tmp_path / "s.db"
    process = run(script, str(path))
    assert process.stdout is not None
    answered = [process.stdout.readline() for _ in range(7)]
    process.send_signal(signal.SIGKILL)
    rest = process.communicate(timeout=30)[0].splitlines()
    acknowledged = [line.strip() for line in answered] + [line for line in rest if line.isdigit()]
    async with store(path) as db:
        kept = await db.read(names)
    assert set(acknowledged[:-1]) <= set(kept)
    assert kept == [str(number) for number in range(len(kept))]


@pytest.mark.requirement("database:write:survives-kill")
async def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """Only a power failure would tell, so the running store is asked."""
    async with store(tmp_path / "s.db") as db:
        await db.write(add("a"))
        asked = await db.write(lambda c: [*c.execute("PRAGMA synchronous"), *c.execute("PRAGMA journal_mode")])
    assert asked == [{"synchronous": 2}, {"journal_mode": "wal"}]


@pytest.mark.requirement("database:owner:second-refused")
def test_the_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from aip_hermes.database import OwnerLock
with OwnerLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
    process = run(script, str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "held"
    with pytest.raises(AlreadyOwned) as refused, OwnerLock(tmp_path):
        pass
    assert refused.value.pid == process.pid
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    with OwnerLock(tmp_path) as lock:
        lock.release()
        lock.release()


@pytest.mark.requirement("database:locked:is-an-error")
async def test_a_foreign_lock_ends_as_a_typed_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "WRITER_BUSY_S", 0.05)
    path = tmp_path / "s.db"
    async with store(path) as db:
        await db.write(add("a"))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as locked:
            await db.write(add("b"))
        assert locked.value.kind == "locked"
        holder.execute("ROLLBACK")
        holder.close()
        assert await db.write(add("b")) == 2


@pytest.mark.requirement("database:journal:fallback")
async def test_a_file_system_without_wal_gets_a_rollback_journal_and_one_warning(tmp_path: Path) -> None:
    class NoLog(Database):
        def _prepare_writer(self, raw: sqlite3.Connection) -> None:
            def deny(action: int, first: str | None, second: str | None, *_: object) -> int:
                wants_log = first == "journal_mode" and second is not None and second.lower() == "wal"
                return sqlite3.SQLITE_DENY if wants_log else sqlite3.SQLITE_OK

            raw.set_authorizer(deny)
            super()._prepare_writer(raw)
            raw.set_authorizer(None)

    with structlog.testing.capture_logs() as logs:
        async with NoLog(tmp_path / "s.db", migrations=MIGRATIONS, application_id=APPLICATION_ID) as db:
            await db.write(add("a"))
            assert await db.read(names) == ["a"]
    assert [entry["event"] for entry in logs] == ["database.no_write_ahead_log"]


async def test_a_constraint_is_a_conflict(tmp_path: Path) -> None:
    async with store(tmp_path / "s.db") as db:
        await db.write(add("a"))
        with pytest.raises(StoreConflict):
            await db.write(add("a"))


@pytest.mark.requirement("database:write:erased-is-gone")
async def test_what_was_erased_is_in_no_page_of_the_closed_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    erased = ["short-secret", "long-secret" * 2_000]
    async with store(path) as db:
        for name in erased:
            await db.write(add(name))
        await db.write(lambda connection: connection.execute("UPDATE items SET name = id"))
        assert await db.write(lambda connection: connection.execute("PRAGMA secure_delete")) == [{"secure_delete": 1}]
    assert b"secret" not in path.read_bytes()
