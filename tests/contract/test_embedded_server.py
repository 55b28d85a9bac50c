"""The endpoint behind a real server, and processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import httpx
import pytest

from aip_hermes.database import AlreadyOwned
from aip_hermes.embedded import SessionDB, open_endpoint
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import KEY, GatedModel, asgi_client, code_of, served

ROWS = 20_000


@pytest.mark.requirement("embedded:api:raw-path", "embedded:api:body")
async def test_encoded_ids_and_large_bodies_over_a_real_connection(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes:
        await hermes.db.create_session("a/b", "api_server")

        assert (await hermes.client.get("/api/sessions/a%2Fb")).json()["session"]["id"] == "a/b"
        assert (await hermes.client.get("/api/sessions/a/b")).text == "404: Not Found"
        large = await hermes.client.post("/api/sessions", content=b" " * 10_000_001)
        assert code_of(large) == (413, "body_too_large")
        assert (await hermes.client.get("/health")).status_code == 200


@pytest.mark.requirement("embedded:health:prompt")
async def test_health_answers_while_a_large_transcript_is_read(tmp_path: Path) -> None:
    async with served(tmp_path) as hermes:
        await hermes.create("big")
        batch = [{"role": "user", "content": "x" * 100}] * ROWS
        await hermes.db.append_messages_batch("big", batch)

        async with asyncio.timeout(30):
            reading = asyncio.create_task(hermes.client.get("/api/sessions/big/messages"))
            waits = []
            begun = time.monotonic()
            while not reading.done():
                before = time.monotonic()
                assert (await hermes.client.get("/health")).status_code == 200
                waits.append(time.monotonic() - before)
            answer = await reading
            took = time.monotonic() - begun

        assert len(answer.json()["data"]) == ROWS
        # Client and server share this process and its two cores; a read on the event loop would stop it for longer.
        assert len(waits) > 2
        assert sorted(waits)[len(waits) // 2] < max(0.1, took / 4)


@pytest.mark.requirement("embedded:turn:shutdown")
async def test_a_server_that_ends_stops_its_turns_and_keeps_their_user_rows(tmp_path: Path) -> None:
    model = GatedModel()
    async with asyncio.timeout(30):
        async with served(tmp_path, model=model) as hermes:
            await hermes.create("s")
            turn = asyncio.create_task(hermes.chat("s", "kept"))
            await model.asked.wait()
        with pytest.raises(httpx.HTTPError):
            (await turn).raise_for_status()
    async with SessionDB(tmp_path / "hermes.db") as db:
        assert [row["content"] for row in await db.get_messages("s")] == ["kept"]


@pytest.mark.requirement("embedded:turn:durable")
async def test_the_user_row_survives_a_kill_during_the_model_call(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.embedded_blocked_turn",
        str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            while (line := await process.stdout.readline()) != b"asked\n":
                assert line, "the process ended early"
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()

    async with SessionDB(tmp_path / "hermes.db") as db:
        rows = await db.get_messages("s")
        session = await db.get_session("s")
        assert [(row["role"], row["content"]) for row in rows] == [("user", "survives")]
        assert session is not None
        assert (session["message_count"], session["ended_at"]) == (1, None)


@pytest.mark.requirement("embedded:open:folder", "embedded:turn:history")
async def test_an_endpoint_owns_its_folder_and_a_later_one_continues_it(tmp_path: Path) -> None:
    key = Secret(KEY)
    async with open_endpoint(tmp_path, key=key) as app, asgi_client(app) as client:
        await client.post("/api/sessions", json={"id": "s"})
        await client.post("/api/sessions/s/chat", json={"message": "before"})
        with pytest.raises(AlreadyOwned) as owned:
            async with open_endpoint(tmp_path, key=key):
                pass
        assert owned.value.pid == os.getpid()
    async with open_endpoint(tmp_path, key=key) as app, asgi_client(app) as client:
        answer = await client.post("/api/sessions/s/chat", json={"message": "after"})
        rows = (await client.get("/api/sessions/s/messages")).json()["data"]

        assert answer.json()["message"]["content"].startswith("Turn 2 ")
        assert [row["content"] for row in rows if row["role"] == "user"] == ["before", "after"]
