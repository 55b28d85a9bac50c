"""Where the sessions of a folder are, and how they are opened: beside a running server, and never made or migrated."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from aip_hermes import log
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.database import Connection, StoreRefused, Untouched, open_untouched
from aip_hermes.embedded.folder import LOCK_NAME, STORE_NAME
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.store_file import KIND

__all__ = ["looking", "reading", "store_in", "writing"]

_OF_UP: Final = "hermes"


def store_in(folder: Path) -> Path:
    """Return the store of an embedded Hermes' folder, or of a folder of `aip-hermes up`. Raises SessionsRefused."""
    for place in (folder, folder / _OF_UP):
        if (place / STORE_NAME).is_file():
            if not os.access(place / STORE_NAME, os.R_OK):
                raise SessionsRefused(f"{place / STORE_NAME} can't be read; ask its owner, or use their account")
            return place / STORE_NAME
    if not folder.is_dir():
        raise SessionsRefused(f"there is no folder {folder}; name the one of your Hermes with --data")
    raise SessionsRefused(
        f"there are no sessions in {folder} (no {STORE_NAME}); name the folder of your Hermes with --data, or make "
        f"one: `aip-hermes hermes --data {folder}`"
    )


@contextmanager
def looking(path: Path) -> Iterator[Untouched]:
    """Open the store for reading alone, whatever its schema. Raises StoreUnavailable, StoreRefused."""
    with open_untouched(
        path, migrations=KIND.migrations, application_id=KIND.application_id, lock_name=LOCK_NAME
    ) as found:
        yield found


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """Open one view of the store for reading alone, beside its server. Raises StoreUnavailable, StoreRefused."""
    with looking(path) as found:
        _check_schema(path, found)
        found.raw.execute("BEGIN")
        yield Connection(found.raw)


@asynccontextmanager
async def writing(path: Path) -> AsyncIterator[SessionDB]:
    """Open the store beside its server, which takes turns with this process. Raises StoreUnavailable, StoreRefused."""
    log.configure(stream=sys.stderr, console=True, level="error")
    with looking(path) as found:
        _check_schema(path, found)
    db = SessionDB(path)
    db.actor = "command"
    try:
        yield db
    except asyncio.CancelledError:
        # Closing would wait for a lock that another program holds; the engine undoes what was not committed.
        raise
    except BaseException:
        await db.close()
        raise
    await db.close()


def _check_schema(path: Path, found: Untouched) -> None:
    if found.schema_version < found.known_version:
        raise StoreRefused(
            f"{path} has schema version {found.schema_version}, this program knows {found.known_version}; start its "
            "server once, which migrates it"
        )
