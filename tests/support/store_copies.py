"""A small store of ours, left as a server leaves it: closed, or with a log because it was killed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from aip_hermes.database import Database

__all__ = [
    "APPLICATION_ID",
    "MIGRATIONS",
    "add",
    "contents",
    "filled",
    "killed_store",
    "long_names",
    "names_in",
    "store",
]

MIGRATIONS = "tests.support.store_migrations"
APPLICATION_ID = 0x41495054
INSERT = "INSERT INTO items (name) VALUES (:name) RETURNING id"

_KILLED = """
import os, sqlite3, sys
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("PRAGMA journal_mode = WAL")
raw.execute("INSERT INTO items (name) VALUES (?)", (sys.argv[2],))
os._exit(9)
"""


def store(path: Path, **options: Any) -> Database:
    return Database(path, migrations=MIGRATIONS, application_id=APPLICATION_ID, **options)


def add(*names: str) -> Any:
    return lambda connection: [connection.execute(INSERT, {"name": name})[0]["id"] for name in names]


def long_names(number: int, *, chars: int) -> list[str]:
    """Return different names that together fill pages."""
    return [f"{one:06}" + "x" * chars for one in range(number)]


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program text to its end."""
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


async def filled(path: Path, *names: str) -> Path:
    """Make a store with these items and close it."""
    async with store(path) as db:
        await db.write(add(*names))
    return path


async def killed_store(path: Path, *names: str) -> Path:
    """Make a store whose last item is in a log that a killed process left."""
    await filled(path, *names[:-1])
    assert run_python(_KILLED, str(path), names[-1]).returncode == 9
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    return path


def names_in(path: Path) -> list[str]:
    """Return the items as any program would see them, its log included."""
    raw = sqlite3.connect(path)
    try:
        return [row[0] for row in raw.execute("SELECT name FROM items ORDER BY id")]
    finally:
        raw.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Return name → bytes of what is in a folder; the owner's lock, which holds a process id, left out."""
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name != "owner.lock"}
