"""A process that ended holds no conversation, also where nobody has asked yet how it ended."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from aip_hermes.embedded import SessionDB

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.requirement("session_db:lease:takeover")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell whether a process ended")
async def test_a_process_that_ended_is_gone_before_anybody_asked_how(tmp_path: Path) -> None:
    async with SessionDB(tmp_path / "hermes.db") as db:
        await db.create_session("s", "test")
        arguments = [sys.executable, "-m", "tests.support.lease_holder", "hold", str(db.path), "s"]
        holding = await asyncio.to_thread(Popen, arguments, cwd=ROOT, stdout=PIPE, text=True)
        try:
            assert holding.stdout is not None
            assert await asyncio.to_thread(holding.stdout.readline) == "held\n"
            assert not await db.try_acquire_session_turn_lease("s", "me")
            holding.kill()
            # Wait for its end without asking how: it stays in the table of processes.
            await asyncio.to_thread(os.waitid, os.P_PID, holding.pid, os.WEXITED | os.WNOWAIT)
            assert await db.try_acquire_session_turn_lease("s", "me")
        finally:
            holding.kill()
            await asyncio.to_thread(holding.communicate)
