"""A process that works with the turn lease of session `s`, by its orders on the command line.

hold: takes the lease, prints `held`, waits to be killed. count: takes the lease again and again; inside, it reads a
number from a file and writes the next one, which shows anybody else inside.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.session_db.holders import process_holder

ROUNDS = 20


async def hold(db: SessionDB, session_id: str) -> None:
    """Keep the lease until killed."""
    assert await db.try_acquire_session_turn_lease(session_id, process_holder(turn="t", platform="test"))
    sys.stdout.write("held\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def count(db: SessionDB, session_id: str) -> None:
    """Add to the number, `ROUNDS` times, alone each time."""
    number = db.path.with_name("number")
    for turn in range(ROUNDS):
        holder = process_holder(turn=str(turn), platform="test")
        assert await db.acquire_session_turn_lease(session_id, holder, wait_seconds=60, poll_interval_seconds=0.002)
        before = int(number.read_text()) if number.exists() else 0
        await db.get_session(session_id)  # gives the other process its chance
        number.write_text(str(before + 1))
        await db.release_session_turn_lease(session_id, holder)


async def main(order: str, file: Path, session_id: str) -> None:
    """Carry out one order."""
    async with SessionDB(file) as db:
        await {"hold": hold, "count": count}[order](db, session_id)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
