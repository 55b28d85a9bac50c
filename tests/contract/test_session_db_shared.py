"""The session store on PostgreSQL: what several processes share, and what a file and a server have in common."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from aip_hermes.database import PoolSettings, StoreUnavailable
from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import texts
from tests.support.session_workers import append_in_processes


def tables(dsn: str) -> int:
    with psycopg.connect(dsn) as raw:
        row = raw.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'aip_sessions'").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.requirement("sessions:postgres:lazy")
async def test_the_constructor_connects_to_nothing_and_every_form_of_address_leads_there(postgres_dsn: str) -> None:
    SessionDB("postgresql://nobody@203.0.113.1/nowhere")
    tail = postgres_dsn.partition("://")[2]
    db = SessionDB(f"postgresql+psycopg://{tail}", pool=PoolSettings(pool_size=1, max_overflow=0))
    assert tables(postgres_dsn) == 0
    async with db:
        await db.create_session("s" * 256, "cli")
        assert tables(postgres_dsn) > 0
    async with SessionDB(postgres_dsn) as again:
        assert await again.session_count() == 1


@pytest.mark.requirement("sessions:postgres:lazy")
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://host/database", "neither"),
        ("postgresql+asyncpg://host/database", "neither"),
        ("postgresql:///database", "names a host and a database"),
        ("postgresql://host/", "names a host and a database"),
    ],
)
def test_an_address_of_another_kind_is_refused_at_once(address: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SessionDB(address)


@pytest.mark.requirement("sessions:postgres:lazy")
def test_without_the_driver_the_first_operation_says_what_to_install() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['psycopg'] = None\n"
        "from aip_hermes.embedded.session_db import SessionDB\n"
        "db = SessionDB('postgresql://host/database')\n"
        "asyncio.run(db.session_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "pip install 'aip-hermes-connector[postgres]'" in done.stderr


@pytest.mark.requirement("sessions:postgres:lazy")
def test_a_store_belongs_to_the_loop_that_used_it_first(postgres_dsn: str) -> None:
    db = SessionDB(postgres_dsn)
    with asyncio.Runner() as first:
        first.run(db.session_count())
        with asyncio.Runner() as second, pytest.raises(RuntimeError, match="another event loop"):
            second.run(db.session_count())
        first.run(db.close())


@pytest.mark.requirement("sessions:postgres:read-only")
async def test_a_store_for_reading_makes_nothing_and_writes_nothing(postgres_dsn: str) -> None:
    async with SessionDB(postgres_dsn, read_only=True) as reader:
        with pytest.raises(StoreUnavailable, match="reading only"):
            await reader.create_session("s", "cli")
    assert tables(postgres_dsn) == 0
    async with SessionDB(postgres_dsn) as db:
        await db.create_session("s", "cli")
        async with SessionDB(postgres_dsn, read_only=True) as reader:
            assert await reader.session_count() == 1
            assert await reader.search_messages("nothing") == []


@pytest.mark.requirement("sessions:postgres:processes")
async def test_processes_that_begin_together_make_one_store_and_keep_every_row_in_order(postgres_dsn: str) -> None:
    assert await asyncio.to_thread(append_in_processes, postgres_dsn, processes=4, number=20) == [""] * 4

    async with SessionDB(postgres_dsn) as db:
        said = texts(await db.get_messages("shared"))
        session = await db.get_session("shared")
    assert session is not None
    assert session["message_count"] == len(said) == 80
    for name in range(4):
        assert [text for text in said if text.startswith(f"{name}:")] == [f"{name}:{step}" for step in range(20)]


@pytest.mark.requirement("sessions:postgres:server-time")
async def test_leases_end_by_the_clock_of_the_server(postgres_dsn: str) -> None:
    # This worker's own clock stands still: by it no lease would ever end.
    async with SessionDB(postgres_dsn, clock=ManualClock(), server_time=True) as db, asyncio.timeout(30):
        assert await db.try_acquire_session_turn_lease("s", "one", ttl_seconds=0.1)
        while not await db.try_acquire_session_turn_lease("s", "two", ttl_seconds=60):
            pass
        assert not await db.try_acquire_session_turn_lease("s", "one", ttl_seconds=60)
        assert await db.try_acquire_compression_lock("s", "one", ttl_seconds=0.1)
        while not await db.try_acquire_compression_lock("s", "two", ttl_seconds=60):
            pass
        assert await db.get_session_turn_lease_holder("s") == "two"


@pytest.mark.requirement("sessions:postgres:server-time")
async def test_of_many_that_want_a_free_lease_at_once_one_gets_it(postgres_dsn: str) -> None:
    stores = [SessionDB(postgres_dsn) for _ in range(3)]
    tries = [store.try_acquire_session_turn_lease("s", f"{n}") for n in range(4) for store in stores]
    # Each store asks for each of four holders: one holder wins, and may take its own lease again.
    taken = [place // 3 for place, got in enumerate(await asyncio.gather(*tries)) if got]
    for store in stores:
        await store.close()
    assert len(set(taken)) == 1


@pytest.mark.requirement("sessions:postgres:export")
async def test_an_export_goes_into_the_other_engine_and_comes_out_the_same(postgres_dsn: str, tmp_path: Path) -> None:
    async with (
        SessionDB(tmp_path / "one.db") as file,
        SessionDB(postgres_dsn) as server,
        SessionDB(tmp_path / "two.db") as back,
    ):
        await file.create_session("a", "cli", model="m", model_config={"n": 1.5}, system_prompt="be\0brief")
        await file.create_session("b\0\ue000", "api_server", parent_session_id="a")
        for content in (
            "text\0 with \ue000",
            b"\x00\xff",
            42,
            1.5,
            [{"type": "text", "text": "part"}],
            {"a": [None]},
            None,
        ):
            await file.append_message("a", "user", content, timestamp=1.25)
        await file.append_message("b\0\ue000", "assistant", "", reasoning_content="", tool_calls=[{"id": "c"}])
        await file.set_session_title("a", "Title")
        await file.update_token_counts("a", input_tokens=2**40, estimated_cost_usd=0.1)
        first = await file.export_all()

        assert (await server.import_sessions(first))["ok"] is True
        second = await server.export_all()
        assert (await back.import_sessions(second))["ok"] is True
        third = await back.export_all()

    def without_ids(sessions: list[dict[str, object]]) -> list[object]:
        return [
            {**one, "messages": [{k: v for k, v in m.items() if k != "id"} for m in one["messages"]]}  # type: ignore[attr-defined]
            for one in sessions
        ]

    assert without_ids(second) == without_ids(first) == without_ids(third)
