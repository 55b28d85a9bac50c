"""Two endpoint processes on one store: a session has one turn at a time, whichever of them is asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.embedded_endpoint import KEY
from tests.support.endpoint_process import endpoint_process

TURNS = 20


@pytest.fixture(params=["file", "shared"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file, and a database on a server."""
    return str(request.getfixturevalue("postgres_dsn")) if request.param == "shared" else str(tmp_path / "hermes.db")


@contextmanager
def two(store: str) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    with endpoint_process(store) as one, endpoint_process(store) as other:
        yield one, other


@asynccontextmanager
async def clients(*processes: subprocess.Popen[str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        found = []
        for process in processes:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            headers = {"Authorization": f"Bearer {KEY}"}
            client = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=120)
            found.append(await stack.enter_async_context(client))
        yield found


async def rows_of(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    rows = (await client.get("/api/sessions/s/messages")).json()["data"]
    return [(row["role"], row["content"]) for row in rows]


@pytest.mark.requirement("sessions:endpoints:one-turn")
async def test_turns_of_one_session_follow_each_other_over_two_endpoints(store: str) -> None:
    with two(store) as processes:
        async with clients(*processes) as (one, other):
            assert (await one.post("/api/sessions", json={"id": "s"})).status_code == 201
            said = [f"question {number}" for number in range(TURNS)]
            answers = await asyncio.gather(
                *(
                    (one, other)[number % 2].post("/api/sessions/s/chat", json={"message": text})
                    for number, text in enumerate(said)
                )
            )
            rows = await rows_of(other)
            count = (await one.get("/api/sessions/s")).json()["session"]["message_count"]
    assert [answer.status_code for answer in answers] == [200] * TURNS
    assert [role for role, _ in rows] == ["user", "assistant"] * TURNS
    questions, replies = [text for _, text in rows[::2]], [text for _, text in rows[1::2]]
    assert sorted(questions) == sorted(said)
    # Each turn read all turns before it, and its reply stands behind its own question.
    begun = [f"Turn {number} of this session. You said: “{text}”." for number, text in enumerate(questions, 1)]
    assert [reply.partition(" The session began")[0] for reply in replies] == begun
    told = {text: answer.json()["message"]["content"] for text, answer in zip(said, answers, strict=True)}
    assert told == dict(zip(questions, replies, strict=True))
    assert count == 2 * TURNS


@pytest.mark.requirement("sessions:endpoints:one-turn")
async def test_what_a_killed_endpoint_had_begun_keeps_the_other_one_from_nothing(store: str) -> None:
    with two(store) as (dies, lives):
        async with clients(dies, lives) as (one, other):
            assert (await one.post("/api/sessions", json={"id": "s"})).status_code == 201
            mine = [asyncio.create_task(one.post("/api/sessions/s/chat", json={"message": "m"})) for _ in range(10)]
            await asyncio.wait(mine, return_when=asyncio.FIRST_COMPLETED)
            os.kill(dies.pid, signal.SIGKILL)
            # Nobody asks how it ended before the other one goes on: to the system it is still there.
            heard = await asyncio.gather(*mine, return_exceptions=True)
            answer = await other.post("/api/sessions/s/chat", json={"message": "and now?"})
            rows = await rows_of(other)
    assert answer.status_code == 200
    assert rows[-2][1] == "and now?"
    assert "You said: “" in rows[-1][1]
    assert rows[-1][1] == answer.json()["message"]["content"]
    answered = [each.json()["message"]["content"] for each in heard if isinstance(each, httpx.Response)]
    assert answered
    assert [text for text in answered if rows.count(("assistant", text)) != 1] == []
