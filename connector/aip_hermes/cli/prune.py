"""`aip-hermes prune`: the thin edge of the runtime's pruning."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aip_hermes.cli.ages import age_ms
from aip_hermes.cli.ready import announce
from aip_hermes.database import Place, SharedPlace, StoreRefused, open_store, open_untouched
from aip_hermes.ports import SystemClock
from aip_hermes.runtime.retention import prune
from aip_hermes.runtime.store import APPLICATION_ID, KIND, MIGRATIONS
from aip_hermes.settings import Settings

__all__ = ["age_ms", "run_prune"]


async def run_prune(*, config: Path, older_than_ms: int, dry_run: bool) -> None:
    """Remove what settled longer ago, or count it; print one JSON line with the rows per table.

    Opens the store beside its server, without its folder's lock; a store that its server has not brought to this
    program's schema is left alone.
    Raises: SettingsError, StoreRefused, StoreUnavailable.
    """
    place = Settings.load(config).store.place
    await _check_schema(place)
    clock = SystemClock()
    database = open_store(place, KIND, clock=clock)
    try:
        with _working("counting" if dry_run else "pruning"):
            pruned = await prune(database, older_than_ms=older_than_ms, clock=clock, dry_run=dry_run)
    except asyncio.CancelledError:
        # Closing waits for a lock that another program holds, twice as long as a write does. The engine undoes what
        # was not committed when this process is gone.
        raise
    except BaseException:
        await database.close()
        raise
    await database.close()
    announce({"dry_run": pruned.dry_run, "total": pruned.total, "rows": dict(pruned.rows)})


async def _check_schema(place: Place) -> None:
    """Refuse a store that its server has not brought to this program's schema."""
    if isinstance(place, SharedPlace):
        async with open_store(place, KIND, read_only=True) as database:
            await database.read(lambda connection: connection.execute("SELECT 1 AS alive"))
        return
    with open_untouched(place, migrations=MIGRATIONS, application_id=APPLICATION_ID) as found:
        if found.schema_version < found.known_version:
            raise StoreRefused(
                f"{place} has schema version {found.schema_version}, this program writes {found.known_version}; "
                "start its server once, which migrates it"
            )


@contextmanager
def _working(verb: str) -> Iterator[None]:
    """Show on stderr that it goes on, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{verb}…"):
        yield
