"""Endpoints that are SIGKILLed at random moments of a turn or of their first start, one after the other on one folder.

Each next endpoint must hold every row that was durable, once, in order and counted, and go on with the session.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx

from tests.support.crash_stage import Forks, HermesServer
from tests.support.scripted_model import ScriptedModel, scripted_model
from tests.support.told_turns import Ledger, transcript

__all__ = ["MOMENTS", "killed_starts", "killed_turns"]

Moment = Literal["received", "model", "tools", "answered"]
MOMENTS: tuple[Moment, ...] = ("received", "model", "tools", "answered")


async def killed_turns(
    folder: Path, forks: Forks, *, kills: int, seed: int, on_kill: Callable[[], None] = lambda: None
) -> None:
    """Kill `kills` endpoints at each kind of moment and hold every next one against what is known. Raises
    AssertionError.
    """
    async with scripted_model() as (model, url):
        story = _Story(model=model, chance=random.Random(seed))  # noqa: S311 - moments, no secrets
        for number, moment in enumerate((*MOMENTS * kills, None)):
            server = await asyncio.to_thread(forks.start_hermes, folder, "--model-url", url, "--model", "scripted")
            try:
                async with client_of(server) as client:
                    if number == 0:
                        answer = await client.post("/api/sessions", json={"id": "s"})
                        assert answer.status_code == 201
                    story.ledger.check(*await transcript(client, "s"))
                    kind = "tools" if moment == "tools" else "plain"
                    await story.turn(client, f"{kind} {number} undisturbed")
                    story.ledger.check(*await transcript(client, "s"))
                    if moment is not None:
                        await story.killed(server, client, f"{kind} {number} killed", moment)
                        assert await asyncio.to_thread(forks.ended) == signal.SIGKILL
                        on_kill()
            finally:
                await asyncio.to_thread(forks.kill)
    assert _intact(folder)


async def killed_starts(
    folder: Path, forks: Forks, *, kills: int, seed: int, on_kill: Callable[[], None] = lambda: None
) -> None:
    """Kill the first start on each of `kills` new folders at a random point; the next start must serve there. Raises
    AssertionError.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    whole = folder / "whole"
    whole.mkdir()
    began = time.monotonic()
    await asyncio.to_thread(forks.start_hermes, whole)
    start_s = time.monotonic() - began
    await asyncio.to_thread(forks.kill)
    for number in range(kills):
        one = folder / str(number)
        one.mkdir()
        await asyncio.to_thread(forks.start_hermes_briefly, one, live_s=chance.uniform(0, start_s))
        on_kill()
        server = await asyncio.to_thread(forks.start_hermes, one)
        try:
            async with client_of(server) as client:
                assert (await client.post("/api/sessions", json={"id": "s"})).status_code == 201
                assert (await client.post("/api/sessions/s/chat", json={"message": "hello"})).status_code == 200
        finally:
            await asyncio.to_thread(forks.kill)
        assert _intact(one)


@asynccontextmanager
async def client_of(server: HermesServer) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


@dataclass
class _Story:
    """One session over many endpoints; each turn is noted before it leaves."""

    model: ScriptedModel
    chance: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    turn_s: float = 0.1

    def __post_init__(self) -> None:
        self.model.asked = self._heard

    async def turn(self, client: httpx.AsyncClient, text: str) -> None:
        """Take one turn that nobody disturbs, and see how long one takes."""
        self.ledger.sent(text)
        began = time.monotonic()
        answer = await client.post("/api/sessions/s/chat", json={"message": text})
        self.turn_s = time.monotonic() - began
        assert answer.status_code == 200, answer.text
        self.ledger.answered(text)

    async def killed(self, server: HermesServer, client: httpx.AsyncClient, text: str, moment: Moment) -> None:
        """Send a turn and kill its endpoint at the moment, or a random while after."""
        kill = _Kill(server.pid, after_s=self.chance.uniform(0, self.turn_s))
        wanted_results = self.chance.choice((1, 2)) if moment == "tools" else 0

        async def asked(turn: str, results: int) -> None:
            self.ledger.model_asked(turn, results)
            if turn == text and results == wanted_results and moment in ("model", "tools"):
                # While the model thinks nothing changes, so let half of the kills meet what follows its answer.
                await kill.now() if self.chance.random() < 0.5 else kill.later()

        self.model.asked = asked
        self.ledger.sent(text)
        if moment == "received":
            kill.later()
        try:
            async with client.stream("POST", "/api/sessions/s/chat", json={"message": text}) as answer:
                assert answer.status_code == 200
                if moment == "answered":
                    await kill.now()
                self.ledger.answered(text)
        except httpx.TransportError:
            assert moment != "answered"
        await kill.done()
        self.model.asked = self._heard

    async def _heard(self, text: str, results: int) -> None:
        self.ledger.model_asked(text, results)


class _Kill:
    """One SIGKILL, at once or a while later."""

    def __init__(self, pid: int, *, after_s: float) -> None:
        self._pid = pid
        self._after_s = after_s
        self._sent = asyncio.Event()

    def later(self) -> None:
        asyncio.get_running_loop().call_later(self._after_s, self._send)

    async def now(self) -> None:
        self._send()

    async def done(self) -> None:
        async with asyncio.timeout(30):
            await self._sent.wait()

    def _send(self) -> None:
        if not self._sent.is_set():
            os.kill(self._pid, signal.SIGKILL)
            self._sent.set()


def _intact(folder: Path) -> bool:
    """Whether the engine finds nothing wrong with the file that a killed endpoint left."""
    with closing(sqlite3.connect(folder / "data" / "hermes.db")) as raw:
        return [row[0] for row in raw.execute("PRAGMA integrity_check")] == ["ok"] and not raw.execute(
            "PRAGMA foreign_key_check"
        ).fetchall()
