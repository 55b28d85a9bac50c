"""`aip-hermes sessions prune`: ended sessions without activity for long, removed in steps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from aip_hermes.cli.aipctl.terminal import say
from aip_hermes.cli.ready import announce
from aip_hermes.cli.sessions.place import reading, store_in, writing
from aip_hermes.cli.sessions.progress import counting
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.embedded.session_db.selection import Selection, selected
from aip_hermes.ports import SystemClock

__all__ = ["run_prune_sessions"]

_STEP: Final = 100
"""Sessions in one transaction: a server beside waits for no more."""

_DAY_MS: Final = 86_400_000


async def run_prune_sessions(
    *, folder: Path, older_than_ms: int, source: str | None, dry_run: bool, filters: dict[str, Any]
) -> None:
    """Remove what matches, or count it; print one JSON line. Raises SessionsRefused, StoreFailure."""
    path = store_in(folder)
    days = older_than_ms / _DAY_MS
    try:
        chosen = Selection.older(days, now=SystemClock().now_ms() / 1000, source=source, **filters)
    except ValueError as error:
        raise SessionsRefused(f"{error}; nothing was removed") from None
    with reading(path) as connection:
        matching = len(selected(connection, chosen, ended=True))
        still_open = len(selected(connection, chosen, ended=False))
    removed = 0
    if not dry_run and matching:
        async with writing(path) as db:
            with counting("pruning", matching) as progress:
                while step := await db.prune_sessions(days, source, limit=_STEP, **filters):
                    removed += step
                    progress(removed)
                    # A server beside gets its turn.
                    await asyncio.sleep(0)
    announce({"dry_run": dry_run, "total": matching if dry_run else removed, "open": still_open})
    if still_open:
        say(f"sessions that match but have not ended, and stay: {still_open}")
