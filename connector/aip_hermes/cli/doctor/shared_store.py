"""What a doctor can say of a store that is a database: whether it is reached, ours and whole, and what it holds."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aip_hermes.cli.doctor.finding import Finding, fail, fine
from aip_hermes.cli.doctor.storage import contents
from aip_hermes.database import SharedPlace, StoreFailure, StoreRefused, open_store
from aip_hermes.ports import Clock
from aip_hermes.runtime.figures import figures
from aip_hermes.runtime.store import KIND

__all__ = ["store"]


async def store(place: SharedPlace, *, clock: Clock) -> AsyncIterator[Finding]:
    """Look at the database with a read-only transaction; nothing is made or migrated."""
    shown = place.address.shown
    try:
        async with open_store(place, KIND, read_only=True, clock=clock) as database:
            found = await database.read(lambda connection: figures(connection, now=clock.now_ms()))
    except StoreRefused as error:
        yield fail("store", str(error), "`aip-hermes migrate --dsn DSN` makes it or brings it up, before servers start")
        return
    except StoreFailure as error:
        yield fail("store", f"{shown}: {error}", "start PostgreSQL, or correct `store.dsn`, then ask again")
        return
    yield fine("store", f"{shown} is this program's, of its newest schema")
    for finding in contents(found, served=True):
        yield finding
