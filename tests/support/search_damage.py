"""Ways in which an index of words breaks, done to the file itself, and an engine that can't make one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["DAMAGES", "WithoutFullText", "damage"]

T = TypeVar("T")

DAMAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "garbage-everywhere": ("UPDATE messages_fts_data SET block = x'ffffffffffffffffffff'",),
    "garbage-in-leaves": ("UPDATE messages_fts_data SET block = x'ffffffffffffffffffff' WHERE id > 10",),
    "garbage-in-structure": ("UPDATE messages_fts_data SET block = x'ff' WHERE id = 10",),
    "leaves-lost": ("DELETE FROM messages_fts_data WHERE id > 10",),
    "sizes-lost": ("DELETE FROM messages_fts_docsize",),
    "table-lost": ("DROP TABLE messages_fts_data",),
    "tree-lost": ("DROP TABLE messages_fts_idx",),
    "module-unknown": (
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'fts5', 'fts_of_another_engine') WHERE name = 'messages_fts'",
        "PRAGMA schema_version = 4711",
    ),
}
"""What was done to the file, by name."""


def damage(path: Path, name: str) -> None:
    """Break the index in the file, whether a store has it open or not."""
    raw = sqlite3.connect(path, isolation_level=None)
    for statement in DAMAGES[name]:
        raw.execute(statement)
    raw.close()


class _EngineWithoutFullText(Connection):
    """What SQLite says that was built without the module."""

    def execute(self, query: str, params: Mapping[str, Any] = {}) -> list[dict[str, Any]]:
        if "fts5" in query:
            raise sqlite3.OperationalError("no such module: fts5")
        return super().execute(query, params)


class _WithoutFullText(StoreFile):
    async def read(self, function: Callable[[Connection], T]) -> T:
        return await super().read(lambda c: function(_EngineWithoutFullText(c._raw)))

    async def write(self, function: Callable[[Connection], T]) -> T:
        return await super().write(lambda c: function(_EngineWithoutFullText(c._raw)))


class WithoutFullText(SessionDB, _WithoutFullText):
    """A store on such an engine: it stands below all methods."""
