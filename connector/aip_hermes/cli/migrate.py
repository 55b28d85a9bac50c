"""`aip-hermes migrate`: brings a store to this program's schema, once, before its servers start."""

from __future__ import annotations

from contextlib import nullcontext

import click

from aip_hermes.cli.ready import announce
from aip_hermes.database import Connection, OwnerLock, SharedPlace, open_store, store_place
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.store import KIND

__all__ = ["run_migrate"]

_VERSION = "SELECT max(version) AS version FROM schema_migrations"


async def run_migrate(*, dsn: str, check: bool) -> None:
    """Migrate the runtime's store, or with `check` only say whether it is ready; print one JSON line.

    dsn: a path or a `postgresql://` address. With `check` nothing is made or changed.
    Raises: click.BadParameter for an address that leads nowhere, AlreadyOwned for a file that a server has,
    StoreRefused, StoreUnavailable.
    """
    try:
        place = store_place(dsn)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--dsn") from None
    alone = nullcontext() if check or isinstance(place, SharedPlace) else OwnerLock(place.parent)
    with alone:
        async with open_store(place, KIND, read_only=check, clock=SystemClock()) as database:
            version = await database.read(_version)
    shown = place.address.shown if isinstance(place, SharedPlace) else str(place)
    announce({"store": shown, "schema_version": version, "ready": True})


def _version(connection: Connection) -> int:
    (row,) = connection.execute(_VERSION)
    return int(row["version"])
