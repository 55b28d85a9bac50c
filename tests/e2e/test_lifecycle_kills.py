"""A process that walks a lifecycle is SIGKILLed at random moments; others go on from its file of identities.

The moments are requests: before one reaches the server, while it is answered, or right behind its answer. A request
whose sender is dead is dropped, or arrives late, beside the next process. LIFECYCLE_SEEDS: how many rounds of ten
kills; 1 when unset.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx
import pytest

from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import LifecycleSite, Relay, approve, lifecycle_site, relaying
from tests.support.lifecycle_walk import WAITS, changes_of, left_by

KILLS = 10
SEEDS = range(int(os.environ.get("LIFECYCLE_SEEDS", "1")))

Moment = Literal["dropped", "late", "answered", "behind"]
MOMENTS: tuple[Moment, ...] = ("dropped", "late", "answered", "behind")


class KillingRelay(Relay):
    """Stands between a walker and the server and kills the walker when its turn comes."""

    pid: int = 0
    left: int | None = None
    moment: Moment = "behind"

    def arm(self, pid: int, *, after: int | None, moment: Moment) -> None:
        self.pid, self.left, self.moment = pid, after, moment

    async def forward(self, method: str, path: str, headers: httpx.Headers, body: bytes) -> httpx.Response | None:
        due = self.left == 0
        if self.left is not None:
            self.left -= 1
        if not due:
            return await self.passed(method, path, headers, body)
        if self.moment in ("dropped", "late"):
            os.kill(self.pid, signal.SIGKILL)
            return None if self.moment == "dropped" else await self.passed(method, path, headers, body)
        answer = await self.passed(method, path, headers, body)
        if self.moment == "answered":
            os.kill(self.pid, signal.SIGKILL)
            return None
        # Whoever reads first: the walker its answer, or the kernel this.
        asyncio.get_running_loop().call_soon(os.kill, self.pid, signal.SIGKILL)
        return answer


class Walkers:
    """Orders walkers from `tests.support.lifecycle_walk`, one at a time."""

    def __init__(self, process: Process, relay: KillingRelay, **order: str) -> None:
        self._process = process
        self._relay = relay
        self._order = order

    async def run(self, name: str, *, after: int | None, moment: Moment) -> int:
        """Run a walker until it ends, or is killed at its request number `after`; return its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**self._order, "name": name}).encode() + b"\n")
        await self._process.stdin.drain()
        self._relay.arm((await self._said())["pid"], after=after, moment=moment)
        status: int = (await self._said())["status"]
        self._relay.left = None
        return status

    async def _said(self) -> dict[str, int]:
        assert self._process.stdout is not None
        async with asyncio.timeout(120):
            line = await self._process.stdout.readline()
        assert line, "the process that forks walkers is gone"
        said: dict[str, int] = json.loads(line)
        return said


@asynccontextmanager
async def walkers(site: LifecycleSite, folder: Path) -> AsyncIterator[Walkers]:
    """Run the process that forks walkers, behind a relay; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.lifecycle_walk", stdin=PIPE, stdout=PIPE
    )
    try:
        async with relaying(site.url, KillingRelay(target=site.url)) as (relay, url):
            assert isinstance(relay, KillingRelay)
            tokens = str(site.folder / "tokens" / "requester")
            yield Walkers(process, relay, url=url, token_file=tokens, store=str(folder / "ids.db"))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(30):
            await process.wait()


@pytest.mark.requirement("lifecycle:killed")
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_walker_is_killed_at_random_moments_and_others_finish_its_walk(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    kills, walked, status = 0, 0, -1
    async with lifecycle_site(tmp_path, model=RecordingModel()) as site, walkers(site, tmp_path) as ordered:
        while kills < KILLS or status != 0:
            armed = kills < KILLS
            status = await ordered.run(
                f"w{walked}", after=chance.randint(3, 13) if armed else None, moment=chance.choice(MOMENTS)
            )
            assert status in (0, WAITS, *([-signal.SIGKILL] if armed else []))
            kills += status == -signal.SIGKILL
            walked += status == 0
            if status == WAITS:
                await approve(site)
        # Where one walk was over before its kills were used up, another one took the rest.
        names = [f"w{number}" for number in range(walked)]
        assert site.relay.changes == [change for name in names for change in changes_of(name)]
        assert await site.rows() == {row: count for name in names for row, count in left_by(name).items()}
        for name in names:
            child = await site.endpoint.session(f"{name}-child")
            assert (child["title"], child["end_reason"]) == (f"{name}, child", "walked")
            _, messages = await site.endpoint.messages(f"{name}-child")
            said = [row["content"] for row in messages if row["role"] == "user"]
            assert said == ["What is verified?", "And here?", "And here?"]
