"""Processes that write one session store at once: `python -m tests.support.session_workers PLACE NAME NUMBER`."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from aip_hermes.embedded.session_db import SessionDB

__all__ = ["append_in_processes"]

SESSION = "shared"


def append_in_processes(place: str, *, processes: int, number: int) -> list[str]:
    """Let each process append `number` messages to the session `shared`, all at once. Returns what they said of errors.

    Each opens the store itself and is held back until all have started.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.session_workers", place, str(name), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in range(processes)
    ]
    for worker in running:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in running:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [worker.communicate(timeout=120)[1] for worker in running]


async def _work(place: str, name: str, number: int) -> None:
    async with SessionDB(place) as db:
        await db.ensure_session(SESSION, "cli")
        for step in range(number):
            await db.append_message(SESSION, "user", f"{name}:{step}")


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(_work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
