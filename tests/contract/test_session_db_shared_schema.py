"""What a SessionDB does with a schema that it finds: makes it, brings it up, or refuses it as it is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from aip_hermes.database import StoreRefused
from aip_hermes.database.migrations import Migration, load
from aip_hermes.database.postgres import schema as schemas
from aip_hermes.database.postgres.ddl import translated_ddl
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.store_file import KIND

HELD = 42


def known() -> Sequence[Migration]:
    return load(KIND.migrations, dialect="postgres", translate=translated_ddl)


def bring_up(dsn: str, migrations: Sequence[Migration]) -> None:
    with psycopg.connect(dsn, autocommit=True) as raw:
        raw.execute(f"SET search_path TO {KIND.schema}".encode())
        schemas.bring_up(raw, migrations, schema=KIND.schema, name="it", now_ms=0)


def ran(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as raw:
        cursor = raw.execute(query.encode())
        return [] if cursor.description is None else cursor.fetchall()


@pytest.mark.requirement("sessions:postgres:found")
async def test_a_schema_with_nothing_but_a_view_counts_as_empty(postgres_dsn: str) -> None:
    ran(postgres_dsn, "CREATE SCHEMA aip_sessions; CREATE VIEW aip_sessions.looked AS SELECT 1 AS one")
    async with SessionDB(postgres_dsn) as db:
        assert await db.create_session("s", "cli") == "s"


@pytest.mark.requirement("sessions:postgres:found")
async def test_an_older_schema_is_brought_up_by_who_may_write_and_by_nobody_else(postgres_dsn: str) -> None:
    bring_up(postgres_dsn, known()[:2])
    ran(postgres_dsn, "INSERT INTO aip_sessions.sessions (id, source, started_at) VALUES ('s', 'cli', 7)")
    async with SessionDB(postgres_dsn, read_only=True) as reader:
        with pytest.raises(StoreRefused, match=r"has schema version 2, this program reads 4; .*migrate"):
            await reader.get_session("s")
    assert ran(postgres_dsn, "SELECT max(version) FROM aip_sessions.schema_migrations") == [(2,)]

    async with SessionDB(postgres_dsn) as db:
        await db.append_message("s", "user", "after")
        assert len(await db.search_messages("after")) == 1
    assert ran(postgres_dsn, "SELECT max(version) FROM aip_sessions.schema_migrations") == [(4,)]


@pytest.mark.requirement("sessions:postgres:found")
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP TABLE aip_sessions.schema_migrations", "no record of migrations"),
        ("DELETE FROM aip_sessions.schema_migrations", "record of migrations is empty"),
        ("UPDATE aip_sessions.schema_migrations SET version = 9 WHERE version = 4", "knows up to 4"),
        ("UPDATE aip_sessions.schema_migrations SET checksum = 'x' WHERE version = 3", "version 3 was made by another"),
        ("DELETE FROM aip_sessions.schema_migrations WHERE version = 2", "made by another text"),
        ("ALTER TABLE aip_sessions.sessions DROP COLUMN hidden", "differ from what version 4 made"),
        ("DROP TABLE aip_sessions.leases", "differ from what version 4 made"),
    ],
)
async def test_a_schema_that_is_not_this_programs_is_refused_as_it_is(
    postgres_dsn: str, damage: str, said: str
) -> None:
    async with SessionDB(postgres_dsn) as db:
        await db.create_session("kept", "cli")
    ran(postgres_dsn, damage)
    for read_only in (False, True):
        async with SessionDB(postgres_dsn, read_only=read_only) as db:
            with pytest.raises(StoreRefused, match=said):
                await db.get_session("kept")
    assert ran(postgres_dsn, "SELECT id FROM aip_sessions.sessions") == [("kept",)]


@pytest.mark.requirement("sessions:postgres:killed-migration")
async def test_a_migration_that_is_broken_off_in_the_middle_leaves_nothing_and_can_be_repeated(
    postgres_dsn: str,
) -> None:
    first, second, *rest = known()
    waiting = [first, replace(second, sql=f"{second.sql}\nSELECT pg_advisory_xact_lock({HELD});"), *rest]
    broken: list[BaseException] = []

    def migrate() -> None:
        try:
            bring_up(postgres_dsn, waiting)
        except psycopg.OperationalError as error:
            broken.append(error)

    with psycopg.connect(postgres_dsn, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", (HELD,))
        migrating = threading.Thread(target=migrate)
        migrating.start()
        killed: list[tuple[Any, ...]] = []
        while migrating.is_alive() and not killed:
            killed = holder.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            ).fetchall()
        migrating.join(30)
    assert len(broken) == len(killed) == 1
    assert ran(postgres_dsn, "SELECT 1 FROM pg_tables WHERE schemaname = 'aip_sessions'") == []

    async with SessionDB(postgres_dsn) as db:
        assert await db.create_session("s", "cli") == "s"
