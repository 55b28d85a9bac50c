"""An endpoint whose disk is full, whose folder another one wants, and who reads a very long transcript."""

from __future__ import annotations

import asyncio
import resource
import shutil
import sqlite3
import statistics
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from pathlib import Path

import httpx
import pytest

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded import SessionDB
from tests.support.crash_stage import Forks, HermesServer, running_forks
from tests.support.embedded_endpoint import code_of
from tests.support.processes import finish, start
from tests.support.told_turns import transcript

ROWS = 50_000
LARGE = "x" * 20_000
UNAVAILABLE = (503, "session_db_unavailable")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@asynccontextmanager
async def serving(forks: Forks, folder: Path) -> AsyncIterator[tuple[HermesServer, httpx.AsyncClient]]:
    """Yield an endpoint of its own process on `folder`/data, and a client of it."""
    server = await asyncio.to_thread(forks.start_hermes, folder)
    try:
        headers = {"Authorization": f"Bearer {server.key}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
            yield server, client
    finally:
        await asyncio.to_thread(forks.kill)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Let `folder` be a file system of 2 MiB. Skips where nobody may mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system can't be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def full_disk(server: HermesServer, folder: Path) -> Iterator[None]:
    """Leave no byte on the small file system."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    yield
    filler.unlink()


@contextmanager
def short_files(server: HermesServer, folder: Path) -> Iterator[None]:
    """Let no file of the running endpoint grow beyond what its log has now."""
    log = folder / "data" / "hermes.db-wal"
    _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 4_096, most))
    yield
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))


async def changes_refused(client: httpx.AsyncClient) -> None:
    """Ask for changes until the store takes none; each answer says what became of it."""
    for number in range(200):
        answer = await client.post("/api/sessions/s/chat", json={"message": f"{number} {LARGE}"})
        if answer.status_code == 503:
            break
        assert answer.status_code == 200 or code_of(answer) == (500, "reply_not_stored"), answer.text
    before = await transcript(client, "s")
    assert code_of(answer) == UNAVAILABLE
    for _ in range(3):
        refused = await client.post("/api/sessions/s/chat", json={"message": LARGE})
        assert code_of(refused) == UNAVAILABLE
    assert code_of(await client.post("/api/sessions", json={"id": "t", "system_prompt": LARGE})) == UNAVAILABLE
    # What is there can be read all the same, and nothing of what was refused is there.
    assert await transcript(client, "s") == before
    assert (await client.get("/api/sessions/t")).status_code == 404
    assert (await client.get("/health")).status_code == 200


@pytest.mark.requirement("sessions:full-disk:refuses", "sessions:full-disk:resumes")
@pytest.mark.parametrize("filled", [full_disk, short_files])
async def test_a_full_disk_is_an_answer_and_costs_nothing_that_was_there(
    tmp_path: Path, forks: Forks, filled: Callable[[HermesServer, Path], AbstractContextManager[None]]
) -> None:
    with small_disk(tmp_path) if filled is full_disk else nullcontext():
        async with serving(forks, tmp_path) as (server, client):
            assert (await client.post("/api/sessions", json={"id": "s"})).status_code == 201
            assert (await client.post("/api/sessions/s/chat", json={"message": "before"})).status_code == 200
            with filled(server, tmp_path):
                await changes_refused(client)
            assert (await client.post("/api/sessions/s/chat", json={"message": "after"})).status_code == 200
            assert (await client.post("/api/sessions", json={"id": "t"})).status_code == 201
            session, rows = await transcript(client, "s")
        assert session["message_count"] == len(rows)
        assert [row["content"] for row in rows if row["role"] == "user"][-1] == "after"
        with closing(sqlite3.connect(tmp_path / "data" / "hermes.db")) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.requirement("sessions:folder:one-endpoint")
async def test_a_second_endpoint_on_a_served_folder_stops_and_names_the_first(tmp_path: Path, forks: Forks) -> None:
    async with serving(forks, tmp_path) as (server, client):
        assert (await client.post("/api/sessions", json={"id": "s"})).status_code == 201
        second = start(["hermes", "--data", str(tmp_path / "data"), "--port", "0"])
        status, out, err = await asyncio.to_thread(finish, second, seconds=60)
        assert (status, out) == (1, "")
        assert f"in use by process {server.pid}" in err
        assert (await client.post("/api/sessions/s/chat", json={"message": "still"})).status_code == 200


@pytest.mark.requirement("sessions:long-read:disturbs-nobody")
async def test_others_are_served_while_a_transcript_of_fifty_thousand_is_read(tmp_path: Path, forks: Forks) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    async with SessionDB(tmp_path / "data" / "hermes.db") as db:
        await db.create_session("long", "api_server")
        await db.append_messages_batch("long", [{"role": "user", "content": "x" * 100}] * ROWS)
    async with serving(forks, tmp_path) as (_, client):

        async def waited(path: str) -> float:
            begun = time.monotonic()
            assert (await client.get(path)).status_code == 200
            return time.monotonic() - begun

        begun = time.monotonic()
        reading = asyncio.create_task(client.get("/api/sessions/long/messages"))
        busy: dict[str, list[float]] = {"/health": [], "/api/sessions": []}
        while not reading.done():
            for path, waits in busy.items():
                waits.append(await waited(path))
        read_s = time.monotonic() - begun
        assert (await reading).text.count('"role": "user"') == ROWS
    # On the event loop the read would keep one of these waiting for nearly all of its own time.
    for waits in busy.values():
        assert len(waits) >= 5
        assert statistics.median(waits) < read_s / 8
        assert max(waits) < read_s / 2


@pytest.mark.requirement("session_db:open:refused")
async def test_a_store_on_a_file_system_that_nobody_can_write_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with small_disk(folder):
        async with SessionDB(folder / "state.db") as db:
            await db.create_session("s", "cli")
            await db.append_message("s", "user", "a word")
        await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", str(folder)], check=True)
        async with SessionDB(folder / "state.db", read_only=True) as db:
            assert [hit["session_id"] for hit in await db.search_messages("word")] == ["s"]
            with pytest.raises(StoreUnavailable):
                await db.append_message("s", "user", "no")
        assert [entry.name for entry in folder.iterdir()] == ["state.db"]
