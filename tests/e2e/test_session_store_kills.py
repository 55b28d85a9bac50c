"""A serving endpoint is SIGKILLed at random moments of a turn; the next one holds every row that was durable, once.

SESSION_KILLS: how many kills for each kind of moment; 2 when unset.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx
import pytest

from tests.support.crash_stage import Forks, HermesServer, running_forks
from tests.support.scripted_model import ScriptedModel, scripted_model
from tests.support.told_turns import Ledger, transcript

KILLS = int(os.environ.get("SESSION_KILLS", "2"))

Moment = Literal["received", "model", "tools", "answered"]
MOMENTS: tuple[Moment, ...] = ("received", "model", "tools", "answered")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@asynccontextmanager
async def client_of(server: HermesServer) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


@dataclass
class Story:
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


@pytest.mark.requirement("sessions:killed:nothing-lost", "sessions:killed:nothing-twice", "sessions:killed:goes-on")
async def test_an_endpoint_killed_in_a_turn_loses_no_durable_row_and_keeps_none_twice(
    tmp_path: Path, forks: Forks
) -> None:
    kinds = MOMENTS * KILLS
    async with scripted_model() as (model, url):
        story = Story(model=model, chance=random.Random(KILLS))  # noqa: S311 - moments, no secrets
        for number, moment in enumerate((*kinds, None)):
            server = forks.start_hermes(tmp_path, "--model-url", url, "--model", "scripted")
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
            finally:
                await asyncio.to_thread(forks.kill)
    assert intact(tmp_path)


@pytest.mark.requirement("sessions:killed:first-start")
async def test_a_first_start_killed_at_a_random_point_leaves_a_folder_that_the_next_one_serves(
    tmp_path: Path, forks: Forks
) -> None:
    chance = random.Random(KILLS)  # noqa: S311 - moments, no secrets
    whole = tmp_path / "whole"
    whole.mkdir()
    began = time.monotonic()
    forks.start_hermes(whole)
    start_s = time.monotonic() - began
    forks.kill()
    for number in range(2 * KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        forks.start_hermes_briefly(folder, live_s=chance.uniform(0, start_s))
        server = forks.start_hermes(folder)
        try:
            async with client_of(server) as client:
                assert (await client.post("/api/sessions", json={"id": "s"})).status_code == 201
                assert (await client.post("/api/sessions/s/chat", json={"message": "hello"})).status_code == 200
        finally:
            await asyncio.to_thread(forks.kill)
        assert intact(folder)


def intact(folder: Path) -> bool:
    """Whether the engine finds nothing wrong with the file that a killed endpoint left."""
    with closing(sqlite3.connect(folder / "data" / "hermes.db")) as raw:
        return [row[0] for row in raw.execute("PRAGMA integrity_check")] == ["ok"] and not raw.execute(
            "PRAGMA foreign_key_check"
        ).fetchall()
