"""The one module that reaches into the thread of an aiosqlite connection.

An operation is a plain function that runs whole in that thread: one hop per operation, never one per statement. The
range of aiosqlite in the project file is what this module was tested with.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import aiosqlite

__all__ = ["Thread", "connect", "open_thread", "tables_in"]

T = TypeVar("T")
_END_S = 5.0


class Thread:
    """A SQLite connection and the thread it lives in."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` in the thread and return what it returns."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def then(result: T | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(cast("T", result))
            else:
                answer.set_exception(error)

        self.submit(function, then)
        return await answer

    def submit(
        self, function: Callable[[sqlite3.Connection], T], then: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `function` in the thread, then `then(result, error)` in this loop, in the turn that brings the answer."""
        connection = self._connection
        handed_on = cast("asyncio.Future[T]", _HandedOn(then))
        connection._tx.put_nowait((handed_on, lambda: function(connection._conn)))

    async def close(self) -> None:
        """Finish what is queued, then close."""
        await self._connection.close()


class _HandedOn:
    """Stands in a future's place for the thread, and passes on at once what a future would keep for another turn."""

    def __init__(self, then: Callable[[Any, BaseException | None], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._then = then

    def get_loop(self) -> _HandedOn:
        return self

    def call_soon_threadsafe(self, callback: Callable[..., object], *values: Any) -> None:
        # A loop that ended without its answer must not take the thread, and a traceback of it, along.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *values)

    def done(self) -> bool:
        return False

    def set_result(self, result: Any) -> None:
        self._then(result, None)

    def set_exception(self, error: BaseException) -> None:
        self._then(None, error)


def connect(
    path: Path, *, read_only: bool, busy_s: float, prepare: Callable[[sqlite3.Connection], Any]
) -> sqlite3.Connection:
    """Open `path` and run `prepare` on it first. The connection, one thread's at a time, is closed when that fails."""
    way = ("mode=ro&immutable=1" if _rests_for_good(path) else "mode=ro") if read_only else "mode=rwc"
    raw = sqlite3.connect(
        f"file:{quote(str(path))}?{way}",
        uri=True,
        isolation_level=None,
        timeout=busy_s,
        check_same_thread=False,
    )
    try:
        prepare(raw)
    except BaseException:
        raw.close()
        raise
    return raw


async def open_thread(
    path: Path, *, read_only: bool, busy_s: float, prepare: Callable[[sqlite3.Connection], Any]
) -> Thread:
    """Open `path` in a thread of its own, as `connect` does."""
    opening = partial(connect, path, read_only=read_only, busy_s=busy_s, prepare=prepare)
    connection = aiosqlite.Connection(opening, iter_chunk_size=64)
    # A program that forgets to close a store must still be able to end. Before 0.22 the connection is the thread.
    thread: Any = getattr(connection, "_thread", connection)
    thread.daemon = True
    try:
        return Thread(await connection)
    except BaseException:
        # The thread reports its end to this loop, which must still be there to hear it.
        await asyncio.shield(asyncio.to_thread(thread.join, _END_S))
        raise


def _rests_for_good(path: Path) -> bool:
    """Whether a file lies whole where nobody can write, and where the engine can't make the index of a log."""
    try:
        if not os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return False
    except (AttributeError, OSError):
        return False
    return not any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-shm", "-journal"))


def tables_in(path: Path) -> int:
    """Return the number of tables in the main file, without touching the file or its log.

    Raises: sqlite3.DatabaseError where the file makes no sense by itself.
    """
    raw = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    try:
        return int(raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    finally:
        raw.close()
