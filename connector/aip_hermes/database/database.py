"""A store on SQLite: one operation = one hop = one transaction.

Writes that wait share one transaction and one fsync (a savepoint each); every caller is answered after the commit.
Reads run on connections of their own, see the last commit, and never checkpoint: the one writer does, which also keeps
clear of the log-reset defect of older SQLite releases.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import structlog

from aip_hermes.database import migrations as schema
from aip_hermes.database.connection import Connection, Note
from aip_hermes.database.failures import StoreClosed, StoreRefused, StoreUnavailable, translated
from aip_hermes.database.head import stated_id
from aip_hermes.database.mounts import shared_file_system
from aip_hermes.database.sqlite import Thread, connect, open_thread, tables_in
from aip_hermes.database.telling import tell
from aip_hermes.database.transaction import commit_together, in_transaction
from aip_hermes.ports import Clock, SystemClock

__all__ = ["FOLD_PAGES", "Database"]

T = TypeVar("T")
log = structlog.get_logger(__name__)

BATCH = 128
FOLD_PAGES = 4000
"""For commits of two or three dozen pages, most of which the next commit writes again."""
READER_CACHE_KIB = 500
READERS = 3
WRITER_BUSY_S = 20.0
READER_BUSY_S = 5.0


@dataclass(slots=True)
class _Write(Generic[T]):
    function: Callable[[Connection], T]
    answer: asyncio.Future[T]


class Database:
    """A lazily opened store; the constructor touches nothing.

    path: the SQLite file; missing folders are made (0700), a file without tables is new. migrations: package with
    `0001_….sql`. application_id: stands in the file's header; a file with tables and another id is refused untouched.
    read_only: no file is made, nothing is migrated. committed: called in this loop with each note of a transaction
    that was committed, before its caller is answered. shared: tells the type of a file system that machines share; on
    such a one the store keeps a rollback journal, which needs no shared memory, and warns once. fold_pages: how long
    the log grows before it is folded into the file; a flush of one that still grows takes about twice as long as of one
    that is written over, and folding often costs more where commits write the same pages again.

    Raises, from each operation: StoreUnavailable, StoreConflict, StoreRefused; exceptions of the operation itself pass
    through and undo it alone. RuntimeError beside an event loop that uses it already and is not closed.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        migrations: str,
        application_id: int,
        read_only: bool = False,
        clock: Clock | None = None,
        committed: Callable[[Note], None] | None = None,
        fold_pages: int = FOLD_PAGES,
        shared: Callable[[Path], str | None] = shared_file_system,
    ) -> None:
        self.path = Path(path)
        self._shared = shared
        self._fold_pages = fold_pages
        self._committed = committed
        self._migrations = schema.load(migrations)
        self._application_id = application_id
        self._read_only = read_only
        self._clock: Clock = clock or SystemClock()
        self._opening = asyncio.Lock()
        self._writer: Thread | None = None
        self._readers: list[Thread] = []
        self._near: sqlite3.Connection | None = None
        self._idle: asyncio.LifoQueue[Thread] | None = None
        self._waiting: deque[_Write[Any]] = deque()
        self._written = asyncio.Event()
        self._written.set()
        self._is_open = False
        self._closed = False
        self._refused = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a snapshot of the last commit."""
        await self._open()
        if self._idle is None:
            assert self._writer is not None  # noqa: S101 - without readers the writer exists
            return await self._hop(self._writer, lambda raw: in_transaction(raw, function, begin="BEGIN"))
        reader = await self._idle.get()
        try:
            return await self._hop(reader, lambda raw: in_transaction(raw, function, begin="BEGIN"))
        finally:
            self._idle.put_nowait(reader)

    async def look_up(self, function: Callable[[Connection], T]) -> T:
        """As `read`, for a look at single rows by their keys: here, where a thread's two hops cost ten times the look.

        A reader of a log waits for no writer; what is locked all the same is asked of a thread, which may wait.
        """
        await self._open()
        if self._near is not None:
            with suppress(sqlite3.Error):
                return in_transaction(self._near, function, begin="BEGIN")
        return await self.read(function)

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a write transaction; returns after its commit is on disk."""
        if self._read_only:
            raise StoreUnavailable("the store was opened for reading only")
        await self._open()
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Write(function, answer))
        if self._written.is_set():
            self._written.clear()
            # After this turn of the loop: all that write in it share a commit.
            asyncio.get_running_loop().call_soon(self._commit_waiting)
        return await answer

    async def vacuum(self) -> None:
        """Rewrite the file without its free pages, between two writes; needs room for a second copy meanwhile."""
        if self._read_only:
            raise StoreUnavailable("the store was opened for reading only")
        await self._open()
        assert self._writer is not None  # noqa: S101 - an open writable store has one
        await self._hop(self._writer, lambda raw: raw.execute("VACUUM").fetchall())

    async def close(self) -> None:
        """Finish what runs and waits, fold the log into the file, close. Idempotent."""
        self._belong()
        self._closed = True
        async with self._opening:
            if not self._is_open:
                return
            self._is_open = False
            await self._written.wait()
            for _ in self._readers:
                assert self._idle is not None  # noqa: S101 - it holds the readers
                reader = await self._idle.get()  # behind every read that waits for one
                await reader.close()
            if self._near is not None:
                self._near.close()
            if self._writer is not None:
                try:
                    await self._writer.run(lambda raw: raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
                except sqlite3.Error as error:  # the log stays; the next open folds it in
                    log.warning("database.checkpoint_failed", file=self.path.name, cause=str(error))
                await self._writer.close()

    def _commit_waiting(self) -> None:
        """Hand what waits to the writer, one batch at a time; its answer comes back here, without a task between."""
        assert self._writer is not None  # noqa: S101 - only an open writable store commits
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        batch = [write for write in batch if not write.answer.cancelled()]
        if not batch and not self._waiting:
            self._written.set()
            return
        notes: list[Note] = []
        self._writer.submit(
            partial(self._commit, functions=[write.function for write in batch], notes=notes),
            partial(self._answer, batch, notes),
        )

    def _commit(
        self, raw: sqlite3.Connection, functions: Sequence[Callable[[Connection], Any]], notes: list[Note]
    ) -> list[tuple[bool, Any]]:
        """Commit a batch, in the writer's thread.

        A commit that changes nothing needs no room. After a refusal each writes a page, until one changes something:
        where less room is left than that one needs, those that change nothing soon fail, too.
        """
        before = raw.total_changes
        first = f"PRAGMA application_id = {self._application_id:d}" if self._refused else None
        try:
            results = commit_together(raw, functions, notes, first=first)
        except sqlite3.Error as error:
            self._refused = self._refused or _is_refusal(translated(error))
            raise
        if any(_is_refusal(value) for _, value in results):
            self._refused = True
        elif raw.total_changes > before and any(done for done, _ in results):
            self._refused = False
        return results

    def _answer(
        self,
        batch: Sequence[_Write[Any]],
        notes: Sequence[Note],
        results: Sequence[tuple[bool, Any]] | None,
        error: BaseException | None,
    ) -> None:
        if results is None:
            failure = translated(error) if isinstance(error, sqlite3.Error) else error
            results, notes = [(False, failure)] * len(batch), ()
        self._commit_waiting()
        tell(self._committed, notes)
        for write, (done, value) in zip(batch, results, strict=True):
            if write.answer.cancelled():
                continue
            if done:
                write.answer.set_result(value)
            else:
                write.answer.set_exception(value)

    async def _hop(self, thread: Thread, function: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await thread.run(function)
        except sqlite3.Error as error:
            raise translated(error) from error

    def _belong(self) -> None:
        """Take part in this loop; one that was closed left nobody who waits for its reads and writes.

        Raises: RuntimeError while another loop is not closed.
        """
        loop, before = asyncio.get_running_loop(), self._loop
        if loop is before:
            return
        if before is not None and not before.is_closed():
            raise RuntimeError("this store belongs to another event loop; make one per loop")
        self._loop = loop
        if before is None:
            return
        self._opening, self._written = asyncio.Lock(), asyncio.Event()
        self._written.set()
        self._waiting.clear()
        if self._idle is not None:
            self._idle = _all_idle(self._readers)

    async def _open(self) -> None:
        self._belong()
        if self._is_open:
            return
        async with self._opening:
            if self._closed:
                raise StoreClosed
            if self._is_open:
                return
            try:
                await asyncio.to_thread(self._look)
                wal = True
                if not self._read_only:
                    self._writer = await open_thread(
                        self.path, read_only=False, busy_s=WRITER_BUSY_S, prepare=self._prepare_writer
                    )
                    wal = await self._writer.run(_journal_mode) == "wal"
                if wal or self._read_only:
                    await self._open_readers()
            except sqlite3.Error as error:
                await self._abandon()
                raise translated(error) from error
            except BaseException:
                await self._abandon()
                raise
            self._is_open = True

    async def _open_readers(self) -> None:
        for _ in range(READERS):
            reader = await open_thread(self.path, read_only=True, busy_s=READER_BUSY_S, prepare=self._prepare_reader)
            self._readers.append(reader)
        self._idle = _all_idle(self._readers)
        opening = partial(connect, self.path, read_only=True, busy_s=0.0, prepare=self._prepare_reader)
        self._near = await asyncio.to_thread(opening)

    async def _abandon(self) -> None:
        for thread in (*self._readers, *([self._writer] if self._writer else [])):
            await thread.close()
        self._readers, self._writer, self._idle = [], None, None

    def _look(self) -> None:
        """Refuse a foreign file before anything opens it for writing."""
        if not self.path.exists():
            if self._read_only:
                raise StoreUnavailable(f"{self.path} does not exist", kind="missing")
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made before the engine makes it: its log and its index take over these rights.
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            return
        there = self.path.stat()
        if there.st_size == 0:
            if not self._read_only and stat.S_ISREG(there.st_mode):
                with suppress(PermissionError):  # somebody else's, who lets us write
                    self.path.chmod(0o600)  # nothing is in it yet that anybody could have read
            return
        application_id = stated_id(self.path)
        if application_id == self._application_id:
            return  # its log may have to make sense of the rest
        log_file = self.path.with_name(self.path.name + "-wal")
        try:
            if application_id is None:
                raise sqlite3.DatabaseError("no head")
            unknown = tables_in(self.path) or (log_file.exists() and log_file.stat().st_size > 0)
        except sqlite3.DatabaseError as error:
            raise StoreRefused(f"{self.path} is not a SQLite file of this program; it was not touched") from error
        if unknown:
            raise StoreRefused(
                f"{self.path} belongs to another program (application id {application_id}, ours is "
                f"{self._application_id}); it was not touched"
            )

    def _prepare_writer(self, raw: sqlite3.Connection) -> None:
        # The id goes into the main file before the log exists, so that a kill right here still leaves a file of ours.
        if raw.execute("PRAGMA application_id").fetchone()[0] != self._application_id:
            raw.execute(f"PRAGMA application_id = {self._application_id:d}")
        shared = self._shared(self.path)
        mode = _with_journal(raw, "DELETE" if shared else "WAL")
        if shared or mode != "wal":
            log.warning("database.no_write_ahead_log", file=self.path.name, journal_mode=mode, file_system=shared)
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        # What was erased is overwritten, however the engine was built.
        raw.execute("PRAGMA secure_delete = ON")
        raw.execute(f"PRAGMA wal_autocheckpoint = {self._fold_pages:d}")
        raw.execute("PRAGMA journal_size_limit = 67108864")
        schema.apply(raw, self._migrations, name=self.path.name, now_ms=self._clock.now_ms())

    def _prepare_reader(self, raw: sqlite3.Connection) -> None:
        raw.execute("PRAGMA query_only = ON")
        raw.execute("PRAGMA wal_autocheckpoint = 0")
        # Together the readers keep little more than the one connection of a simpler store would.
        raw.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB:d}")
        done = schema.check(raw, self._migrations, name=self.path.name)
        if done < len(self._migrations):
            raise StoreRefused(
                f"{self.path.name} has schema version {done}, this program reads {len(self._migrations)}; "
                "let its server migrate it first"
            )


def _is_refusal(value: Any) -> bool:
    """Whether the file took no write; one that another process locks will."""
    return isinstance(value, StoreUnavailable) and value.kind != "locked"


def _all_idle(readers: Sequence[Thread]) -> asyncio.LifoQueue[Thread]:
    idle: asyncio.LifoQueue[Thread] = asyncio.LifoQueue()
    for reader in readers:
        idle.put_nowait(reader)
    return idle


def _with_journal(raw: sqlite3.Connection, wanted: str) -> str:
    try:
        return str(raw.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise
        return str(raw.execute("PRAGMA journal_mode = DELETE").fetchone()[0])


def _journal_mode(raw: sqlite3.Connection) -> str:
    return str(raw.execute("PRAGMA journal_mode").fetchone()[0])
