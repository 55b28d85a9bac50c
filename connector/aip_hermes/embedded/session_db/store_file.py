"""The file below the session store: who opens it, who closes it, and one hop per operation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from aip_hermes.database import Connection, Database
from aip_hermes.log import configure_unless_done
from aip_hermes.ports import Clock, SystemClock

__all__ = ["APPLICATION_ID", "FOLD_PAGES", "StoreFile", "default_path"]

T = TypeVar("T")

APPLICATION_ID: Final = 0x48535344
"""Stands in the header of our session files ("HSSD"); a state.db of hermes-agent has another one and is refused."""

FOLD_PAGES: Final = 1000
"""A commit writes half a dozen pages: with this many the log is written over after some hundred of them."""


def default_path() -> Path:
    """Return `state.db` in the folder that HERMES_HOME names, `~/.hermes` where it names none."""
    home = os.environ.get("HERMES_HOME", "").strip()
    return (Path(home).expanduser() if home else Path.home() / ".hermes") / "state.db"


class StoreFile:
    """A lazily opened file with the migrations of this package; the constructor touches nothing.

    Other stores that live in the same file (jobs, responses) borrow it and call `read` and `write`.
    """

    def __init__(
        self, dsn_or_path: os.PathLike[str] | str | None = None, read_only: bool = False, *, clock: Clock | None = None
    ) -> None:
        configure_unless_done()
        self._clock: Clock = clock or SystemClock()
        self._closed = False
        self._database = Database(
            os.fspath(default_path() if dsn_or_path is None else dsn_or_path),
            migrations="aip_hermes.embedded.session_db.migrations",
            application_id=APPLICATION_ID,
            read_only=read_only,
            clock=self._clock,
            fold_pages=FOLD_PAGES,
        )

    @property
    def path(self) -> Path:
        """Where the file is or will be."""
        return self._database.path

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what waits and close; any number of times."""
        self._closed = True
        await self._database.close()

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a snapshot of the last commit."""
        self._check_open()
        return await self._database.read(function)

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in one transaction; returns after its commit."""
        self._check_open()
        return await self._database.write(function)

    def _now(self) -> float:
        return self._clock.now_ms() / 1000

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("SessionDB is closed")
