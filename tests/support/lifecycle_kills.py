"""Walkers of a lifecycle that are SIGKILLed at random moments, and what must be there in the end.

The moments are requests: before one reaches the server, while it is answered, or right behind its answer. A request
whose sender is dead is dropped, or arrives late, beside the next process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx

from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import LifecycleSite, Relay, approve, lifecycle_site, relaying
from tests.support.lifecycle_walk import WAITS, changes_of, left_by

__all__ = ["walked"]

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


async def walked(folder: Path, *, kills: int, seed: int, on_kill: Callable[[int], None] = lambda _: None) -> list[str]:
    """Let walkers be killed so often, and others finish their walks; return what is not as it was meant, a sentence
    each.

    seed: of the moments; the timing is the machine's. on_kill: told how many there were.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    killed, over, status = 0, 0, -1
    async with lifecycle_site(folder, model=RecordingModel()) as site, walkers(site, folder) as ordered:
        while killed < kills or status != 0:
            armed = killed < kills
            status = await ordered.run(
                f"w{over}", after=chance.randint(3, 13) if armed else None, moment=chance.choice(MOMENTS)
            )
            if status not in (0, WAITS, *([-signal.SIGKILL] if armed else [])):
                return [f"walk w{over} ended with status {status} after {killed} kills"]
            if status == -signal.SIGKILL:
                killed += 1
                on_kill(killed)
            over += status == 0
            if status == WAITS:
                await approve(site)
        # Where one walk was over before its kills were used up, another one took the rest.
        return await _wrong(site, [f"w{number}" for number in range(over)])


async def _wrong(site: LifecycleSite, names: list[str]) -> list[str]:
    wrong = []
    wanted = [change for name in names for change in changes_of(name)]
    if site.relay.changes != wanted:
        wrong.append(f"the endpoint was asked for {site.relay.changes}, and {wanted} was meant")
    rows, meant = await site.rows(), {row: count for name in names for row, count in left_by(name).items()}
    if rows != meant:
        wrong.append(f"the endpoint has {rows}, and {meant} was meant")
    for name in names:
        child = await site.endpoint.session(f"{name}-child")
        _, messages = await site.endpoint.messages(f"{name}-child")
        said = [row["content"] for row in messages if row["role"] == "user"]
        found = (child["title"], child["end_reason"], said)
        if found != (f"{name}, child", "walked", ["What is verified?", "And here?", "And here?"]):
            wrong.append(f"the child of {name} is {found}")
    return wrong
