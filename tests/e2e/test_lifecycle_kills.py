"""A process that walks a lifecycle is SIGKILLed at random moments; others go on from its file of identities.

The moments are requests: before one reaches the server, while it is answered, or right behind its answer. A request
whose sender is dead is dropped, or arrives late, beside the next process. LIFECYCLE_SEEDS: how many walks, of ten kills
each; 1 when unset.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import Process
from pathlib import Path
from typing import Literal

import httpx
import pytest

from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import LifecycleSite, Relay, approve, lifecycle_site, relaying
from tests.support.lifecycle_walk import CHANGES, LEFT, WAITS

KILLS = 10
SEEDS = range(int(os.environ.get("LIFECYCLE_SEEDS", "1")))

Moment = Literal["dropped", "late", "answered", "behind"]
MOMENTS: tuple[Moment, ...] = ("dropped", "late", "answered", "behind")


class KillingRelay(Relay):
    """Stands between a walker and the server and kills the walker when its turn comes."""

    walker: Process | None = None
    left: int | None = None
    moment: Moment = "behind"

    def arm(self, walker: Process, *, after: int | None, moment: Moment) -> None:
        self.walker, self.left, self.moment = walker, after, moment

    async def forward(self, method: str, path: str, headers: httpx.Headers, body: bytes) -> httpx.Response | None:
        due = self.left == 0
        if self.left is not None:
            self.left -= 1
        if not due:
            return await self._passed(method, path, headers, body)
        if self.moment in ("dropped", "late"):
            await self._kill()
            return None if self.moment == "dropped" else await self._passed(method, path, headers, body)
        answer = await self._passed(method, path, headers, body)
        if self.moment == "answered":
            await self._kill()
            return None
        self._killing = asyncio.ensure_future(self._kill())
        return answer

    async def _passed(self, method: str, path: str, headers: httpx.Headers, body: bytes) -> httpx.Response:
        kept = {name: value for name, value in headers.items() if name not in ("host", "content-length", "connection")}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.request(method, self.target + path, headers=kept, content=body)

    async def _kill(self) -> None:
        assert self.walker is not None
        self.walker.send_signal(signal.SIGKILL)
        await self.walker.wait()


async def run(arguments: str, relay: KillingRelay, *, after: int | None, moment: Moment) -> int:
    """Run a walker until it ends, or is killed behind `after` requests; return its exit status."""
    walker = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.support.lifecycle_walk", arguments)
    relay.arm(walker, after=after, moment=moment)
    try:
        async with asyncio.timeout(120):
            return await walker.wait()
    finally:
        if walker.returncode is None:
            walker.kill()
            await walker.wait()


async def killed_walk(site: LifecycleSite, folder: Path, chance: random.Random) -> list[str]:
    """Walk, with ten kills on the way; return the moments of those that hit."""
    hit: list[str] = []
    async with relaying(site.url, KillingRelay(target=site.url)) as (relay, url):
        assert isinstance(relay, KillingRelay)
        told = {"url": url, "token_file": str(site.folder / "tokens" / "requester"), "store": str(folder / "ids.db")}
        while True:
            moment = chance.choice(MOMENTS)
            after = chance.randint(3, 13) if len(hit) < KILLS else None
            status = await run(json.dumps(told), relay, after=after, moment=moment)
            if status == 0:
                return hit
            assert status in (-signal.SIGKILL, WAITS), status
            if status == WAITS:
                await approve(site)
            else:
                hit.append(moment)


@pytest.mark.requirement("lifecycle:killed")
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_walker_is_killed_at_random_moments_and_others_finish_its_walk(tmp_path: Path, seed: int) -> None:
    async with lifecycle_site(tmp_path, model=RecordingModel()) as site:
        hit = await killed_walk(site, tmp_path, random.Random(seed))  # noqa: S311 - moments, no secrets
        assert len(hit) == KILLS
        assert tuple(site.relay.changes) == CHANGES
        assert await site.rows() == LEFT
        child = await site.endpoint.session("w-child")
        assert (child["title"], child["end_reason"]) == ("Walk, child", "walked")
        _, messages = await site.endpoint.messages("w-child")
        said = [row["content"] for row in messages if row["role"] == "user"]
        assert said == ["What is verified?", "And here?", "And here?"]
