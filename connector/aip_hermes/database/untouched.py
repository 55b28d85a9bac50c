"""Look at a store without changing a byte of it, whether a server has it open or not.

How a file may be opened depends on who else has it: an engine that opens a log for reading makes or rewrites the log's
index, and a reader of a file at rest leaves both behind. So a file at rest is opened as immutable, one that a killed
server left with a log through the index as it is, and one that is served like any other reader of its server.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from aip_hermes.database import migrations as schema
from aip_hermes.database.failures import StoreRefused, StoreUnavailable, translated
from aip_hermes.database.head import stated_id
from aip_hermes.database.owner import LOCK_NAME, OwnerLock

__all__ = ["ENGINE_FILES", "Untouched", "beside", "check_ours", "connect_untouched", "filled", "open_untouched"]

ENGINE_FILES: Final = ("-journal", "-wal", "-shm")
"""Suffixes of what the engine keeps beside a store."""

_BUSY_S = 5.0


class Untouched:
    """An open store that can't be written. schema_version: of the file. known_version: what this program knows."""

    def __init__(self, raw: sqlite3.Connection, *, schema_version: int, known_version: int) -> None:
        self.raw = raw
        self.schema_version = schema_version
        self.known_version = known_version

    def problems(self) -> list[str]:
        """Return what the engine finds wrong with pages, indexes and references; empty where nothing is."""
        try:
            found = [str(row[0]) for row in self.raw.execute("PRAGMA integrity_check(20)")]
            if found == ["ok"]:
                return [
                    f"a row of {table} refers to a missing row of {parent}"
                    for table, _, parent, _ in self.raw.execute("PRAGMA foreign_key_check")
                ][:20]
        except sqlite3.Error as error:
            return [str(translated(error))]
        return found


def beside(path: Path, suffix: str) -> Path:
    """Return the engine's own file next to a store, one of ENGINE_FILES."""
    return path.with_name(path.name + suffix)


@contextmanager
def open_untouched(
    path: Path, *, migrations: str, application_id: int, lock_name: str = LOCK_NAME
) -> Iterator[Untouched]:
    """Open `path` for reading alone; nothing is made, migrated, folded in or locked against its server.

    lock_name: the owner's lock beside the file, by which a server of it is known.
    Raises: StoreUnavailable for a file that is missing, damaged at its head, or left in the middle of a write;
    StoreRefused for one that isn't ours, or that is newer than this program.
    """
    known = schema.load(migrations)
    if not path.is_file():
        raise StoreUnavailable(f"{path} does not exist; its server makes it at the first start", kind="missing")
    check_ours(path, application_id=application_id)
    try:
        raw = connect_untouched(path, served=OwnerLock.holder_of(path.parent, name=lock_name) is not None)
    except sqlite3.Error as error:
        raise translated(error) from error
    try:
        raw.execute("PRAGMA query_only = ON")
        version = schema.check(raw, known, name=path.name)
        yield Untouched(raw, schema_version=version, known_version=len(known))
    except sqlite3.Error as error:
        raise translated(error) from error
    finally:
        raw.close()


def check_ours(path: Path, *, application_id: int) -> None:
    """Raise StoreRefused unless the head of the main file carries our id, whatever state the rest is in."""
    if path.stat().st_size == 0:
        raise StoreRefused(f"{path} is empty; nothing was ever stored in it")
    found = stated_id(path)
    if found is None:
        raise StoreRefused(f"{path} is not a SQLite file of this program; it was not touched")
    if found != application_id:
        raise StoreRefused(
            f"{path} belongs to another program (application id {found}, ours is {application_id}); it was not touched"
        )


def connect_untouched(path: Path, *, served: bool) -> sqlite3.Connection:
    """Return a connection that changes no file. served: whether a server of ours has the folder."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?{_way_in(path, served=served)}",
        uri=True,
        isolation_level=None,
        timeout=_BUSY_S,
        check_same_thread=False,
    )


def _way_in(path: Path, *, served: bool) -> str:
    if served:
        return "mode=ro"
    if filled(beside(path, "-journal")):
        raise StoreUnavailable(
            f"{path} was left in the middle of a write; start its server once, which rolls that back", kind="io"
        )
    if not filled(beside(path, "-wal")):
        return "mode=ro&immutable=1"
    if not beside(path, "-shm").exists():
        raise StoreUnavailable(
            f"{path} has a log without its index beside it; start its server once, which folds the log in", kind="io"
        )
    return "mode=ro&readonly_shm=1"


def filled(path: Path) -> bool:
    """Tell whether there is a file with anything in it."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
