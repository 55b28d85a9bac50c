"""`aip-hermes migrate`: brings a store to this program's schema, once, before its servers start."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import click

from aip_hermes.cli.ready import announce
from aip_hermes.database import Connection, OwnerLock, SharedPlace, StoreKind, open_store, store_place
from aip_hermes.database.owner import LOCK_NAME
from aip_hermes.embedded import folder
from aip_hermes.embedded.session_db.store_file import KIND as SESSIONS
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.store import KIND as RUNTIME

__all__ = ["run_migrate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """A kind of store, and by which lock in its folder the owner of a file is known."""

    kind: StoreKind
    lock_name: str


_KEPT: Final = {
    "runtime": _Kept(kind=RUNTIME, lock_name=LOCK_NAME),
    "sessions": _Kept(kind=SESSIONS, lock_name=folder.LOCK_NAME),
}
_VERSION = "SELECT max(version) AS version FROM schema_migrations"


async def run_migrate(*, dsn: str, store: str, check: bool) -> None:
    """Migrate a store, or with `check` only say whether it is ready; print one JSON line.

    dsn: a path or a `postgresql://` address. store: `runtime`, a server's actions, or `sessions`, those of an embedded
    Hermes; a database may hold both. With `check` nothing is made or changed.
    Raises: click.BadParameter for an address that leads nowhere, AlreadyOwned for a file that a server has,
    StoreRefused, StoreUnavailable.
    """
    try:
        place = store_place(dsn)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--dsn") from None
    kept = _KEPT[store]
    alone = nullcontext() if check or isinstance(place, SharedPlace) else OwnerLock(place.parent, name=kept.lock_name)
    with alone:
        async with open_store(place, kept.kind, read_only=check, clock=SystemClock()) as database:
            version = await database.read(_version)
    shown = place.address.shown if isinstance(place, SharedPlace) else str(place)
    announce({"store": shown, "schema_version": version, "ready": True})


def _version(connection: Connection) -> int:
    (row,) = connection.execute(_VERSION)
    return int(row["version"])
