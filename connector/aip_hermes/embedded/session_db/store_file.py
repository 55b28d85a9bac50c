"""The place below the session store: who opens it, who closes it, and one hop per operation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from aip_hermes.database import Connection, PoolSettings, Store, StoreKind, open_store, store_place
from aip_hermes.log import configure_unless_done
from aip_hermes.ports import Clock, SystemClock

__all__ = ["APPLICATION_ID", "FOLD_PAGES", "KIND", "StoreFile", "default_path"]

T = TypeVar("T")

APPLICATION_ID: Final = 0x48535344
"""Stands in the header of our session files ("HSSD"); a state.db of hermes-agent has another one and is refused."""

FOLD_PAGES: Final = 1000
"""A commit writes half a dozen pages: with this many the log is written over after some hundred of them."""


def default_path() -> Path:
    """Return `state.db` in the folder that HERMES_HOME names, `~/.hermes` where it names none."""
    home = os.environ.get("HERMES_HOME", "").strip()
    return (Path(home).expanduser() if home else Path.home() / ".hermes") / "state.db"


KIND: Final = StoreKind(
    migrations="aip_hermes.embedded.session_db.migrations",
    application_id=APPLICATION_ID,
    schema="aip_sessions",
    fold_pages=FOLD_PAGES,
)


class StoreFile:
    """A lazily opened place with the migrations of this package; the constructor touches nothing.

    dsn_or_path: a file, or a `postgresql://` address. pool: the connections to that. clock: whose time it is; without
    one the leases of a shared store go by its server's clock, so that workers whose clocks differ agree. server_time:
    whether they do, whatever clock there is.
    Raises ValueError for an address of another kind, without a host or without a database.

    Other stores that live in the same place (jobs, responses) borrow it and call `read` and `write`.
    """

    def __init__(
        self,
        dsn_or_path: os.PathLike[str] | str | None = None,
        read_only: bool = False,
        *,
        clock: Clock | None = None,
        pool: PoolSettings | None = None,
        server_time: bool | None = None,
    ) -> None:
        self._place = store_place(os.fspath(default_path() if dsn_or_path is None else dsn_or_path), pool=pool)
        self._read_only = read_only
        self._server_time = self.is_shared and (clock is None if server_time is None else server_time)
        configure_unless_done()
        self._clock: Clock = clock or SystemClock()
        self._closed = False
        # Whether something was removed whose words may still stand in an index.
        self._removed_any = False
        self._opened: Store | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several processes write here at once: on PostgreSQL."""
        return not isinstance(self._place, Path)

    @property
    def path(self) -> Path:
        """Where the file is or will be. Raises ValueError for a store on PostgreSQL, which has none."""
        if not isinstance(self._place, Path):
            raise ValueError(f"the store on {self.name} is no file")
        return self._place

    @property
    def name(self) -> str:
        """The file's name, or host and database; neither user nor password."""
        return self._place.name if isinstance(self._place, Path) else self._place.address.shown

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what waits and close; any number of times."""
        self._closed = True
        if self._opened is not None:
            await self._opened.close()

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a snapshot of the last commit."""
        return await self._store().read(function)

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in one transaction; returns after its commit. On PostgreSQL it may run more than once."""
        return await self._store().write(function)

    def _store(self) -> Store:
        """Return the store below; one on PostgreSQL needs its driver from here on."""
        self._check_open()
        if self._opened is None:
            self._opened = open_store(
                self._place, KIND, read_only=self._read_only, clock=None if self._server_time else self._clock
            )
        return self._opened

    def _now(self) -> float:
        return self._clock.now_ms() / 1000

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("SessionDB is closed")
