"""The store on PostgreSQL: the same operations, several processes, a server that goes away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from aip_hermes.database import (
    Connection,
    StoreConflict,
    StoreRefused,
    StoreUnavailable,
    pool_settings,
    postgres_address,
)
from aip_hermes.database.connection import MISSED, Note
from aip_hermes.database.postgres import PostgresDatabase
from tests.support.postgres import running_postgres
from tests.support.postgres_relay import CommitCutter

MIGRATIONS = "tests.support.store_migrations"
INSERT = "INSERT INTO items (name, amount) VALUES (:name, :amount) RETURNING id"


def store(dsn: str, **options: Any) -> PostgresDatabase:
    address = postgres_address(dsn)
    assert address is not None
    settings = pool_settings(options.pop("pool", {"pool_size": 1, "max_overflow": 7}))
    return PostgresDatabase(address, schema="shop", migrations=MIGRATIONS, settings=settings, **options)


def add(name: str, amount: int = 0) -> Callable[[Connection], int]:
    return lambda connection: int(connection.execute(INSERT, {"name": name, "amount": amount})[0]["id"])


def names(connection: Connection) -> list[str]:
    return [row["name"] for row in connection.execute("SELECT name FROM items ORDER BY name")]


def raw(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.requirement("database:postgres:lazy")
async def test_the_constructor_connects_to_nothing_and_the_first_operation_makes_the_schema(postgres_dsn: str) -> None:
    async with store(postgres_dsn) as db:
        assert raw(postgres_dsn, "SELECT 1 FROM pg_namespace WHERE nspname = 'shop'") == []
        assert await db.write(add("a")) == 1
    assert raw(postgres_dsn, "SELECT name FROM shop.items") == [("a",)]
    await db.close()
    with pytest.raises(StoreUnavailable):
        await db.read(names)


@pytest.mark.requirement("database:postgres:same-values")
async def test_values_come_back_as_on_the_other_engine(postgres_dsn: str) -> None:
    texts = ["nul \0 inside", "\ue000", "\ue0000", "100 % of :it", "'quoted' \"too\" -- no comment", "x::y", ""]
    async with store(postgres_dsn) as db:
        for text in texts:
            await db.write(add(text, 2**62))
        found = await db.read(
            lambda c: c.execute(
                "SELECT name, amount = :wanted AS equal, ':no %' AS kept FROM items WHERE name = :name OR :all = 1 "
                "ORDER BY id",
                {"wanted": 2**62, "name": texts[0], "all": True},
            )
        )
        assert [row["name"] for row in found] == texts
        assert {(row["equal"], type(row["equal"]), row["kept"]) for row in found} == {(1, int, ":no %")}
        assert await db.read(lambda c: c.execute("SELECT sum(amount) AS s FROM items")) == [{"s": 7 * 2**62}]


@pytest.mark.requirement("database:postgres:undone-alone")
async def test_an_operation_that_fails_leaves_nothing_and_tells_nobody(postgres_dsn: str) -> None:
    told: list[Any] = []

    def fails(connection: Connection) -> None:
        add("half")(connection)
        connection.note("made", name="half")
        raise LookupError("no")

    def swallows(connection: Connection) -> None:
        try:
            add("whole")(connection)
        except Exception:
            connection.note("never")

    def notes(connection: Connection) -> None:
        add("whole")(connection)
        connection.note("made", name="whole")

    async with store(postgres_dsn, committed=told.append) as db:
        with pytest.raises(LookupError):
            await db.write(fails)
        await db.write(notes)
        with pytest.raises(StoreConflict, match="items_name_key"):
            await db.write(add("whole"))
        with pytest.raises(RuntimeError, match="refused"):
            await db.write(swallows)
        assert await db.read(names) == ["whole"]
    assert told == [("made", {"name": "whole"})]


@pytest.mark.requirement("database:postgres:serial")
async def test_operations_that_read_and_then_write_count_right_from_two_workers(postgres_dsn: str) -> None:
    def one_more(connection: Connection) -> None:
        (row,) = connection.execute("SELECT amount FROM items WHERE name = 'n'")
        connection.execute("UPDATE items SET amount = :amount WHERE name = 'n'", {"amount": row["amount"] + 1})

    async with store(postgres_dsn) as one, store(postgres_dsn) as other:
        await one.write(add("n"))
        await asyncio.gather(*(db.write(one_more) for db in (one, other) for _ in range(20)))
        assert await one.read(lambda c: c.execute("SELECT amount FROM items")) == [{"amount": 40}]


@pytest.mark.requirement("database:postgres:migrate:once")
async def test_workers_that_start_together_migrate_once(postgres_dsn: str) -> None:
    stores = [store(postgres_dsn) for _ in range(6)]
    await asyncio.gather(*(db.write(add(str(n))) for n, db in enumerate(stores)))
    assert raw(postgres_dsn, "SELECT version FROM shop.schema_migrations") == [(1,)]
    await asyncio.gather(*(db.close() for db in stores))


@pytest.mark.requirement("database:postgres:refused")
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP TABLE shop.schema_migrations", "no record of migrations"),
        ("DELETE FROM shop.schema_migrations", "the record of migrations is empty"),
        ("UPDATE shop.schema_migrations SET version = 9", "knows up to 1"),
        ("UPDATE shop.schema_migrations SET checksum = 'x'", "another text"),
        ("ALTER TABLE shop.items DROP COLUMN amount", "differ from what version 1 made"),
        ("ALTER TABLE shop.schema_migrations DROP COLUMN shape", "is not this program's"),
    ],
)
async def test_a_schema_that_is_not_known_is_refused_as_it_is(postgres_dsn: str, damage: str, said: str) -> None:
    async with store(postgres_dsn) as db:
        await db.write(add("kept"))
    raw(postgres_dsn, damage)
    for read_only in (False, True):
        async with store(postgres_dsn, read_only=read_only) as db:
            with pytest.raises(StoreRefused, match=said):
                await db.read(names)
    assert raw(postgres_dsn, "SELECT name FROM shop.items") == [("kept",)]


@pytest.mark.requirement("database:postgres:index-again")
async def test_a_missing_index_is_made_again_and_refused_nowhere(postgres_dsn: str) -> None:
    there = "SELECT indexname FROM pg_indexes WHERE schemaname = 'shop' AND indexname = 'items_amount'"
    async with store(postgres_dsn) as db:
        await db.write(add("a"))
    raw(postgres_dsn, "DROP INDEX shop.items_amount")
    async with store(postgres_dsn) as db:
        assert await db.read(names) == ["a"]
    assert raw(postgres_dsn, there) == [("items_amount",)]


@pytest.mark.requirement("database:postgres:read-only")
async def test_a_read_only_store_makes_nothing_and_the_server_would_refuse_too(postgres_dsn: str) -> None:
    async with store(postgres_dsn, read_only=True) as db:
        with pytest.raises(StoreRefused, match="holds no store"):
            await db.read(names)
    assert raw(postgres_dsn, "SELECT 1 FROM pg_namespace WHERE nspname = 'shop'") == []
    async with store(postgres_dsn) as db:
        await db.write(add("a"))
    async with store(postgres_dsn, read_only=True) as db:
        with pytest.raises(StoreUnavailable, match="reading only"):
            await db.write(add("b"))
        with pytest.raises(StoreUnavailable, match="takes no writes"):
            await db.read(add("b"))
        assert await db.read(lambda c: c.execute("SHOW transaction_read_only")) == [{"transaction_read_only": "on"}]


@pytest.mark.requirement("database:postgres:pool")
async def test_an_operation_waits_for_a_connection_as_long_as_is_set_and_then_says_so(postgres_dsn: str) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> list[str]:
        inside.set()
        assert go_on.wait(30)
        return names(connection)

    async with store(postgres_dsn, pool={"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.05}) as db:
        running = asyncio.create_task(db.read(slow))
        assert await asyncio.to_thread(inside.wait, 30)
        with pytest.raises(StoreUnavailable, match="pool_size"):
            await db.read(names)
        go_on.set()
        assert await running == []
        assert await db.read(names) == []


@pytest.mark.requirement("database:postgres:back-end-gone")
async def test_a_terminated_back_end_costs_an_operation_a_second_try_only(postgres_dsn: str) -> None:
    def ended_once(connection: Connection) -> None:
        add("kept")(connection)
        if not tries:
            tries.append(1)
            (own,) = connection.execute("SELECT pg_backend_pid() AS pid")
            raw(postgres_dsn, f"SELECT pg_terminate_backend({own['pid']})")

    tries: list[int] = []
    async with store(postgres_dsn) as db:
        await db.write(ended_once)
        assert tries == [1]
        assert await db.read(names) == ["kept"]


@pytest.mark.requirement("database:postgres:server-away")
async def test_while_the_server_is_away_operations_say_so_and_afterwards_they_run_again() -> None:
    with running_postgres() as server:
        async with store(server.admin_dsn, pool={"pool_size": 1, "max_overflow": 3, "pool_timeout": 0.5}) as db:
            await db.write(add("before"))
            server.stop()
            for operation in (db.write(add("lost")), db.read(names)):
                with pytest.raises(StoreUnavailable):
                    await operation
            server.start()
            for _ in range(60):
                try:
                    await db.write(add("after"))
                    break
                except StoreUnavailable:
                    continue
            assert await db.read(names) == ["after", "before"]


@pytest.mark.requirement("database:postgres:commit-lost")
@pytest.mark.parametrize("reaches", [True, False])
async def test_a_commit_whose_answer_was_lost_is_looked_up(postgres_dsn: str, reaches: bool) -> None:
    ran: list[int] = []

    def once(connection: Connection) -> int:
        ran.append(1)
        return add("kept")(connection)

    with CommitCutter(postgres_dsn) as relay:
        async with store(relay.dsn) as db:
            await db.read(names)
            relay.cut_next(reaches_server=reaches)
            answered = await db.write(once)
            assert relay.cuts == 1
            assert await db.read(lambda c: c.execute("SELECT id, name FROM items")) == [
                {"id": answered, "name": "kept"}
            ]
    assert len(ran) == (1 if reaches else 2)


@pytest.mark.requirement("database:postgres:heard")
async def test_what_one_worker_commits_the_others_hear_once_and_a_lost_connection_is_told(postgres_dsn: str) -> None:
    heard: asyncio.Queue[Note] = asyncio.Queue()
    own: list[Note] = []

    def told(name: str) -> Callable[[Connection], None]:
        def write(connection: Connection) -> None:
            add(name)(connection)
            connection.note("made", name=name)

        return write

    def undone(connection: Connection) -> None:
        told("undone")(connection)
        raise LookupError

    async with store(postgres_dsn, heard=heard.put_nowait) as one, store(postgres_dsn, heard=own.append) as other:
        await one.read(names)
        async with asyncio.timeout(30):
            assert await heard.get() == (MISSED, {})
            with pytest.raises(LookupError):
                await other.write(undone)
            await one.write(told("its own"))
            await other.write(told("theirs"))
            assert await heard.get() == ("made", {"name": "theirs"})
            raw(
                postgres_dsn,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
                " AND datname = current_database()",
            )
            assert await heard.get() == (MISSED, {})
            await other.write(told("again"))
            assert await heard.get() == ("made", {"name": "again"})
    assert ("made", {"name": "theirs"}) not in own
