"""A store on PostgreSQL: one operation = one hop = one transaction, the same functions as on SQLite.

A write runs SERIALIZABLE, so a function that reads and then writes needs no lock of its own; where the server finds
that two of them could not have run one after the other, it undoes one, and that one is run again. An operation may
therefore run more than once and changes nothing but what it is handed.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from aip_hermes.database import migrations as numbered
from aip_hermes.database.address import PostgresAddress
from aip_hermes.database.connection import Connection, Engine, Note
from aip_hermes.database.failures import StoreClosed, StoreUnavailable
from aip_hermes.database.pool_settings import PoolSettings
from aip_hermes.database.postgres import schema as schemas
from aip_hermes.database.postgres.ddl import translated_ddl
from aip_hermes.database.postgres.dialect import in_rows, parameters, translated_query
from aip_hermes.database.postgres.failures import must_be_repeated, translated
from aip_hermes.database.postgres.listening import Listener, publish
from aip_hermes.database.postgres.transaction import READ, WRITE, CommitLost, Raw, fate, in_transaction
from aip_hermes.database.telling import tell
from aip_hermes.ports import Clock, SystemClock

__all__ = ["PostgresDatabase"]

T = TypeVar("T")
Cursor = psycopg.Cursor[tuple[Any, ...]]

_TRIES: Final = 40
_TRIES_WITHOUT_SERVER: Final = 2
_LONGEST_PAUSE_S: Final = 0.2
_FOR_EVER_S: Final = 10.0 * 365 * 24 * 3600
_NO_LIMIT: Final = 1000
_LOOK_S: Final = 0.05
_GONE: Final = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)


class PostgresConnection(Connection):
    """One transaction's view of the store, with the values that the other engine would give."""

    __slots__ = ("_cursor", "_server_time")

    engine: Engine = "postgres"

    def __init__(self, cursor: Cursor, notes: list[Note] | None = None, *, server_time: bool = False) -> None:
        self._cursor = cursor
        self._server_time = server_time
        self._notes = notes
        self._changes = 0

    def time_of_leases(self, own: float) -> float:
        """Return the server's time, whenever the transaction began; one's own where the store was given a clock."""
        if not self._server_time:
            return own
        (row,) = self._cursor.execute(b"SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)")
        return float(row[0])

    def execute(self, query: str, params: Mapping[str, Any] = {}) -> list[dict[str, Any]]:
        """Run one statement with `:name` parameters and return all its rows as dictionaries, RETURNING included."""
        cursor = self._cursor
        written = getattr(query, "postgres", None) or query
        cursor.execute(translated_query(written).encode(), parameters(params))
        self._changes = cursor.rowcount
        if cursor.description is None:
            return []
        names = [column.name for column in cursor.description]
        return [dict(zip(names, map(in_rows, row), strict=True)) for row in cursor]

    def insert(self, query: str, params: Mapping[str, Any]) -> int:
        """Run one INSERT of one row, without RETURNING, into a table whose key is the number `id`; returns that."""
        written = getattr(query, "postgres", None) or query
        self._cursor.execute(translated_query(f"{written} RETURNING id").encode(), parameters(params))
        row = self._cursor.fetchone()
        return 0 if row is None else int(row[0])

    def tuples(self, query: str, params: Mapping[str, Any] = {}) -> list[tuple[Any, ...]]:
        """Run one SELECT and return its rows as tuples in the order of its columns."""
        cursor = self._cursor
        written = getattr(query, "postgres", None) or query
        cursor.execute(translated_query(written).encode(), parameters(params))
        return [tuple(map(in_rows, row)) for row in cursor]


class PostgresDatabase:
    """A lazily opened store; the constructor touches nothing.

    schema: the PostgreSQL schema of this store; stores share a database, each in its own. migrations: package with
    `0001_….sql`, and `0001_….postgres.sql` where the two differ. read_only: nothing is made or migrated, and every
    transaction is READ ONLY at the server too. clock: None leaves the time of leases to the server.
    committed: called in this loop with each note of a transaction that was committed, before its caller is answered.
    heard: called in this loop with each note that another process committed, and with `listening.MISSED` where some may
    have been missed.

    Raises, from each operation: StoreUnavailable, StoreConflict, StoreRefused; exceptions of the operation itself pass
    through and undo it. RuntimeError on a second event loop.
    """

    def __init__(
        self,
        address: PostgresAddress,
        *,
        schema: str,
        migrations: str,
        settings: PoolSettings | None = None,
        read_only: bool = False,
        clock: Clock | None = None,
        committed: Callable[[Note], None] | None = None,
        heard: Callable[[Note], None] | None = None,
    ) -> None:
        self.address = address
        self._schema = schema
        self._migrations = numbered.load(migrations, dialect="postgres", translate=translated_ddl)
        self._settings = settings or PoolSettings()
        self._read_only = read_only
        self._clock: Clock = clock or SystemClock()
        self._server_time = clock is None
        self._committed = committed
        self._listener = None if heard is None else Listener(self._connected, schema, heard)
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ConnectionPool[Raw] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._slots = asyncio.Semaphore(self._settings.limit or _NO_LIMIT)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a snapshot of the last commit."""
        return await self._run(lambda: self._reading(function))

    async def look_up(self, function: Callable[[Connection], T]) -> T:
        """As `read`: the rows are elsewhere, however few they are."""
        return await self.read(function)

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a write transaction, again where the server undid it for another; returns after its commit
        is on disk.
        """
        if self._read_only:
            raise StoreUnavailable("the store was opened for reading only")
        result, notes = await self._run(lambda: self._writing(function))
        tell(self._committed, notes)
        return result

    async def vacuum(self) -> None:
        """Free the places of removed rows for later ones, and count anew what the server plans by."""
        if self._read_only:
            raise StoreUnavailable("the store was opened for reading only")
        await self._run(self._vacuum)

    async def close(self) -> None:
        """Wait for what runs, give the connections back. Idempotent."""
        self._closed = True
        async with self._opening:
            pool, threads, self._pool, self._threads = self._pool, self._threads, None, None
            if self._listener is not None:
                await asyncio.to_thread(self._listener.stop)
            if threads is not None:
                await asyncio.to_thread(partial(threads.shutdown, wait=True))
            if pool is not None:
                await asyncio.to_thread(pool.close)

    # -- one hop --------------------------------------------------------------------------------------------------

    async def _run(self, work: Callable[[], T]) -> T:
        await self._open()
        try:
            async with asyncio.timeout(self._settings.pool_timeout):
                await self._slots.acquire()
        except TimeoutError:
            raise translated(PoolTimeout()) from None
        loop, threads = asyncio.get_running_loop(), self._threads
        if threads is None:
            self._slots.release()
            raise StoreClosed
        running = threads.submit(work)

        def free(_: object) -> None:
            with suppress(RuntimeError):  # the loop ended before the operation
                loop.call_soon_threadsafe(self._slots.release)

        # By the thread, not by who waits: a caller that is cancelled leaves its operation running.
        running.add_done_callback(free)
        try:
            return await asyncio.wrap_future(running)
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            raise translated(error) from error

    def _reading(self, function: Callable[[Connection], T]) -> T:
        return self._repeatedly(lambda raw: in_transaction(raw, READ, lambda c: function(self._view(c, None))))

    def _writing(self, function: Callable[[Connection], T]) -> tuple[T, list[Note]]:
        def whole(cursor: Cursor) -> tuple[T, list[Note]]:
            notes: list[Note] = []
            result = function(self._view(cursor, notes))
            if self._listener is not None:
                publish(cursor, self._schema, self._listener.name, notes)
            return result, notes

        return self._repeatedly(lambda raw: in_transaction(raw, WRITE, whole))

    def _view(self, cursor: Cursor, notes: list[Note] | None) -> PostgresConnection:
        return PostgresConnection(cursor, notes, server_time=self._server_time)

    def _vacuum(self) -> None:
        with self._connection() as raw:
            tables = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (self._schema,)).fetchall()
            for (table,) in tables:
                raw.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self._schema, table)))

    def _repeatedly(self, once: Callable[[Raw], T]) -> T:
        """Run `once` until its transaction stands: again after one that another undid, again on a new connection after
        one that broke off. A lost COMMIT is looked up, never guessed.
        """
        broken = 0
        for attempt in range(_TRIES):
            try:
                with self._connection() as raw:
                    return once(raw)
            except CommitLost as lost:
                if self._committed_after_all(lost.transaction):
                    return cast("T", lost.result)
            except psycopg.OperationalError as error:
                if not must_be_repeated(error):
                    broken += 1
                    if broken >= _TRIES_WITHOUT_SERVER or _answered(error):
                        raise
                elif attempt == _TRIES - 1:
                    raise
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE_S, 0.002 * 2**attempt)))  # noqa: S311 - spread, no secret
        raise StoreUnavailable("the store is not available: too many operations on the same rows", kind="locked")

    def _committed_after_all(self, transaction: str | None) -> bool:
        until = time.monotonic() + self._settings.pool_timeout
        while True:
            try:
                with self._connection() as raw:
                    if (found := fate(raw, transaction)) != "in progress":
                        return found == "committed"
            except (psycopg.OperationalError, PoolTimeout) as error:
                if time.monotonic() > until:
                    raise StoreUnavailable(
                        "the server went away while it committed, and could not be asked since whether it did",
                        kind="io",
                    ) from error
            time.sleep(_LOOK_S)

    def _connection(self) -> AbstractContextManager[Raw]:
        pool = self._pool
        if pool is None:
            raise PoolClosed
        return pool.connection()

    # -- opening --------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise RuntimeError("this store belongs to another event loop; make one per loop")
        if self._pool is not None:
            return
        async with self._opening:
            if self._closed:
                raise StoreClosed
            if self._pool is not None:
                return
            self._loop = loop
            try:
                await asyncio.to_thread(self._prepare)
            except psycopg.Error as error:
                raise translated(error) from error
            self._threads = ThreadPoolExecutor(self._settings.limit or _NO_LIMIT, thread_name_prefix="postgres")
            self._pool = await asyncio.to_thread(self._filled_pool)
            if self._listener is not None:
                self._listener.start(loop)

    def _prepare(self) -> None:
        """Make, migrate or recognise the schema, on a connection of its own, before anything else uses it."""
        with self._connected() as raw:
            name = self.address.shown
            if self._read_only:
                schemas.check(raw, self._migrations, schema=self._schema, name=name)
            else:
                now_ms = self._clock.now_ms()
                schemas.bring_up(raw, self._migrations, schema=self._schema, name=name, now_ms=now_ms)

    def _connected(self) -> Raw:
        """Return a connection of its own, beside the pool."""
        raw = psycopg.connect(self.address.conninfo, **self._arguments())
        self._configure(raw)
        return raw

    def _filled_pool(self) -> ConnectionPool[Raw]:
        settings = self._settings
        limit = settings.limit or _NO_LIMIT
        recycle = settings.pool_recycle
        return ConnectionPool(
            self.address.conninfo,
            kwargs=self._arguments(),
            min_size=settings.pool_size,
            max_size=limit,
            timeout=settings.pool_timeout,
            max_lifetime=_FOR_EVER_S if recycle < 0 else recycle,
            check=ConnectionPool.check_connection if settings.pool_pre_ping else None,
            configure=self._configure,
            # After an outage the next operation tries at once; the pool's own patience must not outlast its callers'.
            reconnect_timeout=settings.pool_timeout,
            open=True,
        )

    def _arguments(self) -> dict[str, Any]:
        connect = self._settings.connect
        found: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": connect.connect_timeout,
            "prepare_threshold": connect.prepare_threshold,
            "application_name": connect.application_name,
        }
        return found if connect.options is None else found | {"options": connect.options}

    def _configure(self, raw: Raw) -> None:
        raw.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        if self._read_only:
            raw.execute(b"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")


def _answered(error: psycopg.OperationalError) -> bool:
    """Say whether the server itself refused, so that asking once more on another connection changes nothing."""
    return error.sqlstate is not None and not isinstance(error, _GONE)
