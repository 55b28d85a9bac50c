"""Where a store is, and what every store can do, whatever keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from aip_hermes.database.address import PostgresAddress, postgres_address
from aip_hermes.database.connection import Connection, Note
from aip_hermes.database.database import FOLD_PAGES, Database
from aip_hermes.database.failures import StoreUnavailable
from aip_hermes.database.pool_settings import PoolSettings
from aip_hermes.ports import Clock

__all__ = ["Place", "SharedPlace", "Store", "StoreKind", "open_store", "store_place"]

T = TypeVar("T")


class Store(Protocol):
    """One operation = one hop = one transaction. A context that closes it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run `function` on a snapshot of the last commit."""

    async def look_up(self, function: Callable[[Connection], T]) -> T:
        """As `read`, for a look at single rows by their keys: a file is read in the calling thread."""

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in a write transaction; returns after its commit is on disk."""

    async def vacuum(self) -> None:
        """Give back the room that removed rows took, in a transaction of no one."""

    async def close(self) -> None:
        """Finish what runs. Idempotent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedPlace:
    """A database that several processes write at once. pool: the connections of this one."""

    address: PostgresAddress
    pool: PoolSettings = field(default_factory=PoolSettings)


Place = Path | SharedPlace


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreKind:
    """What is kept: migrations and fold_pages as `Database` takes them, application_id for a file, schema for a shared
    database.
    """

    migrations: str
    application_id: int
    schema: str
    fold_pages: int = FOLD_PAGES


def store_place(text: str | Path, *, pool: PoolSettings | None = None) -> Place:
    """Return the place that a path or a `postgresql://` address names. Raises ValueError as `postgres_address`."""
    if isinstance(text, Path) or (address := postgres_address(text)) is None:
        return Path(text)
    return SharedPlace(address=address, pool=pool or PoolSettings())


def open_store(
    place: Place,
    kind: StoreKind,
    *,
    read_only: bool = False,
    clock: Clock | None = None,
    committed: Callable[[Note], None] | None = None,
    heard: Callable[[Note], None] | None = None,
) -> Store:
    """Return the store; nothing is touched before its first operation.

    heard: told what other processes of a shared store committed, as `PostgresDatabase`; of a file nothing is heard.

    Raises StoreUnavailable where the extra `postgres` is not installed.
    """
    if isinstance(place, Path):
        return Database(
            place,
            migrations=kind.migrations,
            application_id=kind.application_id,
            read_only=read_only,
            clock=clock,
            committed=committed,
            fold_pages=kind.fold_pages,
        )
    try:
        from aip_hermes.database.postgres import PostgresDatabase
    except ImportError:
        raise StoreUnavailable(
            "a store on PostgreSQL needs its driver; run `pip install 'aip-hermes-connector[postgres]'`", kind="missing"
        ) from None
    return PostgresDatabase(
        place.address,
        schema=kind.schema,
        migrations=kind.migrations,
        settings=place.pool,
        read_only=read_only,
        clock=clock,
        committed=committed,
        heard=heard,
    )
