"""Numbered SQL files bring a PostgreSQL schema to what this program knows: at once, or not at all.

Everything happens in one transaction under an advisory lock, so of several workers that start together one migrates
and the others find it done, and a kill leaves what was there before. A schema that the program does not fully
recognise is refused as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from aip_hermes.database.failures import StoreRefused
from aip_hermes.database.migrations import Migration

__all__ = ["bring_up", "check"]

Raw = psycopg.Connection[tuple[Any, ...]]

LOCK: Final = 731_948_251
_RECORD: Final = "schema_migrations"
_CREATE_RECORD: Final = """CREATE TABLE schema_migrations (
    version BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at_ms BIGINT NOT NULL,
    shape TEXT NOT NULL)"""
_INDEX: Final = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[a-z0-9_]+)\s[^;]*;", re.IGNORECASE
)


def bring_up(raw: Raw, migrations: Sequence[Migration], *, schema: str, name: str, now_ms: int) -> None:
    """Make or migrate `schema` and recreate an index that is missing. Raises StoreRefused; then nothing is changed."""
    with raw.transaction():
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        # Asked first: who may use the schema need not be allowed to make one.
        if not raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
            raw.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        done = _recognised(raw, migrations, schema=schema, name=name)
        if done is None:
            raw.execute(_CREATE_RECORD)
            done = 0
        for migration in migrations[done:]:
            raw.execute(migration.sql.encode())
            raw.execute(
                "INSERT INTO schema_migrations VALUES (%s, %s, %s, %s, %s)",
                (migration.version, migration.name, migration.checksum, now_ms, _shape(raw, schema)),
            )
        there = {row[0] for row in raw.execute("SELECT indexname FROM pg_indexes WHERE schemaname = %s", (schema,))}
        for migration in migrations[:done]:
            for index in _INDEX.finditer(migration.sql):
                if index["name"] not in there and not _dropped_later(index["name"], migrations):
                    raw.execute(index[0].encode())


def check(raw: Raw, migrations: Sequence[Migration], *, schema: str, name: str) -> None:
    """Let pass only a schema that is exactly this program's newest. Raises StoreRefused; reads only."""
    done = _recognised(raw, migrations, schema=schema, name=name)
    if done is None:
        raise StoreRefused(f"{name} holds no store of this program yet; open it once for writing, or migrate it")
    if done < len(migrations):
        raise StoreRefused(
            f"{name} has schema version {done}, this program reads {len(migrations)}; "
            "`aip-hermes migrate --dsn ...` brings it up"
        )


def _recognised(raw: Raw, migrations: Sequence[Migration], *, schema: str, name: str) -> int | None:
    """Return how many migrations the schema has, None where it is empty. Raises StoreRefused for what is neither."""
    tables = {row[0] for row in raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))}
    if not tables:
        return None
    if _RECORD not in tables:
        raise StoreRefused(
            f"{name}: the schema {schema} holds {len(tables)} tables ({', '.join(sorted(tables)[:3])}, ...) and no "
            "record of migrations, so it belongs to something else; it was not touched"
        )
    try:
        with raw.transaction():
            rows = raw.execute("SELECT version, checksum, shape FROM schema_migrations ORDER BY version").fetchall()
    except psycopg.errors.UndefinedColumn:
        raise StoreRefused(f"{name}: {schema}.{_RECORD} is not this program's; it was not touched") from None
    if not rows:
        raise StoreRefused(f"{name}: the record of migrations is empty though tables exist; restore a backup")
    newest, known = rows[-1][0], len(migrations)
    if newest > known:
        raise StoreRefused(
            f"{name} has schema version {newest}, this program knows up to {known}; use a program at least as new"
        )
    for (version, checksum, _), migration in zip(rows, migrations, strict=False):
        if version != migration.version or checksum != migration.checksum:
            raise StoreRefused(f"{name}: schema version {version} was made by another text than this program's")
    if rows[-1][2] != _shape(raw, schema):
        raise StoreRefused(
            f"{name}: tables or columns of the schema {schema} differ from what version {newest} made; "
            "nothing was repaired by guess: restore a backup"
        )
    return int(newest)


def _shape(raw: Raw, schema: str) -> str:
    """Return a digest of every table and column with its type."""
    rows = raw.execute(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns c "
        "JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name "
        'WHERE table_schema = %s ORDER BY table_name COLLATE "C", column_name COLLATE "C"',
        (schema,),
    ).fetchall()
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def _dropped_later(index: str, migrations: Sequence[Migration]) -> bool:
    dropped = re.compile(rf"DROP\s+INDEX\s+(?:IF\s+EXISTS\s+)?{index}\b", re.IGNORECASE)
    return any(dropped.search(migration.sql) for migration in migrations)
