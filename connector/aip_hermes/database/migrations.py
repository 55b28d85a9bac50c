"""Numbered SQL files with checksums bring a file to the schema this program knows.

Each migration and its record are one transaction, so a kill in between leaves the version before it. A file whose
record names a version or a checksum that this program doesn't know is refused and not touched.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from aip_hermes.database.failures import StoreRefused

__all__ = ["Migration", "apply", "check", "load"]

_NAME = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")
_OWN_NAME = "{version}_{name}.{dialect}.sql"
_TABLE = """CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at_ms INTEGER NOT NULL)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """version: counts from 1 without gaps. checksum: SHA-256 of the SQL text, hex."""

    version: int
    name: str
    sql: str
    checksum: str


def load(
    package: str, *, dialect: str | None = None, translate: Callable[[str], str] = lambda text: text
) -> Sequence[Migration]:
    """Return the migrations of `package` in order.

    dialect: takes `0001_name.<dialect>.sql` where it stands beside `0001_name.sql`, else what `translate` makes of it.
    Raises ValueError when the numbers have a gap.
    """
    found: list[Migration] = []
    folder = files(package)
    for entry in folder.iterdir():
        if match := _NAME.fullmatch(entry.name):
            own = folder.joinpath(_OWN_NAME.format(**match.groupdict(), dialect=dialect))
            if dialect is not None and own.is_file():
                sql = own.read_text(encoding="utf-8")
            else:
                sql = translate(entry.read_text(encoding="utf-8"))
            checksum = hashlib.sha256(sql.encode()).hexdigest()
            found.append(Migration(version=int(match["version"]), name=match["name"], sql=sql, checksum=checksum))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered from 0001 without gaps")
    return found


def check(raw: sqlite3.Connection, migrations: Sequence[Migration], *, name: str) -> int:
    """Return how many migrations the file has. Raises StoreRefused for a newer or altered one."""
    if not raw.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'").fetchone():
        return 0
    applied = raw.execute("SELECT version, checksum FROM schema_migrations ORDER BY version").fetchall()
    newest, known = (applied[-1][0] if applied else 0), len(migrations)
    if newest > known:
        raise StoreRefused(
            f"{name} has schema version {newest}, this program knows up to {known}; use a program at least as new"
        )
    for (version, checksum), migration in zip(applied, migrations, strict=False):
        if version != migration.version or checksum != migration.checksum:
            raise StoreRefused(f"{name}: schema version {version} was made by another text than this program's")
    return int(newest)


def apply(raw: sqlite3.Connection, migrations: Sequence[Migration], *, name: str, now_ms: int) -> None:
    """Bring the file to the newest version."""
    done = check(raw, migrations, name=name)
    for migration in migrations[done:]:
        raw.execute("BEGIN IMMEDIATE")
        try:
            raw.execute(_TABLE)
            # Another process may have migrated while this one waited for the lock.
            if check(raw, migrations, name=name) < migration.version:
                for statement in _statements(migration.sql):
                    raw.execute(statement)
                raw.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
                    (migration.version, migration.name, migration.checksum, now_ms),
                )
            raw.execute("COMMIT")
        except BaseException:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            raise


def _statements(sql: str) -> list[str]:
    statements, pending = [], ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    if re.sub(r"--[^\n]*", "", pending).strip():
        raise ValueError("a migration ends inside a statement")
    return statements
