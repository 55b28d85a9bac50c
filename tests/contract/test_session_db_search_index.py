"""The index below a search: what a damaged, missing or half-made one costs, and how it becomes whole again."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys

import pytest
from structlog.testing import capture_logs

from aip_hermes.database import StoreConflict, StoreUnavailable
from aip_hermes.database import migrations as schema
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.store_file import APPLICATION_ID
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock
from tests.support.search_damage import DAMAGES, WithoutFullText, damage
from tests.support.session_stores import OpenStore

WORDS = 600
MIGRATIONS = "aip_hermes.embedded.session_db.migrations"

KILLED_IN_REBUILD = """
import asyncio, os, signal, sys
from aip_hermes.embedded.session_db import SessionDB

async def rebuild():
    async with SessionDB(sys.argv[1]) as db:
        await db.rebuild_search_index(lambda done, total: done < total and os.kill(os.getpid(), signal.SIGKILL))

asyncio.run(rebuild())
"""


async def append_words(db: SessionDB, start: int, count: int = WORDS) -> None:
    messages = [{"role": "user", "content": f"word{number} common"} for number in range(start, start + count)]
    assert await db.append_messages_batch("s", messages) == count


async def found(db: SessionDB, query: str, *, offset: int = 0) -> list[int]:
    return [hit["id"] for hit in await db.search_messages(query, limit=5, offset=offset)]


async def sound(db: SessionDB) -> bool:
    """Whether there is an index, it has every row and a full check finds nothing."""
    status = await db.search_index_status(check=True)
    return (status["indexed"], status["waiting"], status["cause"], status["damage"]) == (True, 0, None, None)


@FILE_STORE
@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("while_open", [True, False], ids=["open", "closed"])
@pytest.mark.requirement("search:index:damaged")
async def test_a_damaged_index_stops_no_write_and_heals_when_opened_anew(
    session_store: OpenStore, name: str, while_open: bool
) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0)
        assert await found(db, "word7") == [8]
        if while_open:
            damage(db.path, name)
            await check_damaged(db)
    if not while_open:
        damage(db.path, name)
        async with session_store() as opened:
            await check_damaged(opened)

    async with session_store() as healed:
        assert await found(healed, "word7") == [8]
        assert await sound(healed)
        assert await found(healed, "word1300") == [1301]
        assert await healed.delete_session("s")
        assert await found(healed, "common") == []
        assert await sound(healed)
    with sqlite3.connect(db.path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()


async def check_damaged(db: SessionDB) -> None:
    """Rows enter, alone and many at once, are found, and the loss is told once."""
    with capture_logs() as events:
        await append_words(db, WORDS)
        await asyncio.gather(*(db.append_message("s", "user", f"word{1200 + n}") for n in range(200)))
        assert len(await found(db, "common")) == 5
        assert await db.message_count("s") == 1400
        assert await found(db, "word1199") == [1200]
        assert len(await found(db, "word1399")) == 1
    status = await db.search_index_status()
    assert [event["event"] for event in events] == ["session_db.search_index_given_up"]
    assert not status["indexed"]
    assert status["cause"]


@FILE_STORE
@pytest.mark.requirement("search:index:damaged")
async def test_a_search_that_meets_the_damage_goes_on_without_the_index(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0)
        assert await found(db, "word599") == [600]
        damage(db.path, "garbage-in-leaves")

        assert await found(db, "word599") == [600]
        assert not (await db.search_index_status())["indexed"]
        assert await db.optimize_fts() == 1
        assert await sound(db)
        damage(db.path, "garbage-in-leaves")
    async with SessionDB(db.path, read_only=True) as reader:
        assert await found(reader, "word599") == [600]


@FILE_STORE
@pytest.mark.requirement("search:index:damaged")
async def test_a_check_names_the_damage_and_a_rebuild_ends_it(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0)
        assert await found(db, "word1") == [2]
        damage(db.path, "garbage-in-leaves")

        assert (await db.search_index_status(check=True))["damage"]
        assert (await db.search_index_status())["indexed"]
        assert await db.rebuild_fts() == 1
        assert await sound(db)


@pytest.mark.requirement("search:index:damaged")
async def test_a_refused_row_costs_no_index(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        row = "INSERT INTO sessions (id, source, started_at) VALUES ('s', 'x', 0)"

        with pytest.raises(StoreConflict):
            await db.write(lambda c: c.execute(row))
        with pytest.raises(StoreUnavailable):
            await db.write(lambda c: c.execute("SELECT * FROM no_such_table"))
        assert await sound(db)


@FILE_STORE
@pytest.mark.requirement("search:index:absent")
async def test_without_full_text_search_the_texts_are_searched(session_store: OpenStore) -> None:
    path = session_store().path
    async with WithoutFullText(path) as db:
        await db.create_session("s", "cli")
        await append_words(db, 0)
        assert await found(db, "word599") == [600]
        assert len(await found(db, "word5* OR word6*")) == 5
        assert await found(db, '"word599 common"') == [600]
        assert await found(db, "common NOT word") == []
        assert not (await db.search_index_status())["indexed"]
        assert await db.optimize_fts() == 0
        with pytest.raises(StoreUnavailable):
            await db.rebuild_search_index()
    async with session_store() as able:
        assert await found(able, "word599") == [600]
        assert await sound(able)


@FILE_STORE
@pytest.mark.requirement("search:index:older-stores")
@pytest.mark.requirement("search:index:rebuild")
async def test_rows_from_before_the_index_are_found(session_store: OpenStore) -> None:
    path = session_store().path
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    schema.apply(raw, schema.load(MIGRATIONS)[:3], name="older", now_ms=0)
    raw.execute("BEGIN")
    raw.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 0)")
    raw.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', ?, 0)",
        [(f"word{number} common",) for number in range(5_000)],
    )
    raw.execute("COMMIT")
    raw.close()

    async with session_store() as db:
        await append_words(db, 5_000, 1)
        assert (await db.search_index_status())["waiting"] > 4_000
        assert await found(db, "word4999") == [5_000]
        assert await sound(db)
        told: list[tuple[int, int]] = []
        await db.rebuild_search_index(lambda done, total: told.append((done, total)))
        assert told == [(2_000, 5_001), (4_000, 5_001), (5_001, 5_001)]
        assert await sound(db)


@FILE_STORE
@pytest.mark.requirement("search:index:older-stores")
async def test_rows_that_wait_for_the_index_are_found_where_nothing_can_be_written(
    session_store: OpenStore, session_clock: ManualClock
) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0, 300)
        session_clock.advance(1000)
        await append_words(db, 300, 20)
        assert (await db.search_index_status())["waiting"]

    async with SessionDB(db.path, read_only=True) as reader:
        assert await found(reader, "word3") == [4]
        assert await found(reader, "word319") == [320]
        assert await found(reader, "common") == [320, 319, 318, 317, 316]
        pages = [row_id for offset in range(0, 325, 5) for row_id in await found(reader, "common", offset=offset)]
        assert sorted(pages) == list(range(1, 321))
        assert await found(reader, "common NOT word") == [320, 319, 318, 317, 316]
        assert await found(reader, "word319 NOT ord319") == [320]
        assert (await reader.search_messages("word319 OR word0", sort="oldest"))[-1]["id"] == 320
    with sqlite3.connect(db.path) as raw:
        raw.execute("UPDATE search_index SET indexed_through = 0")
        raw.execute(
            "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (9999, 's', 'user', 'z', 0)"
        )
    raw.close()
    async with SessionDB(db.path, read_only=True) as reader:
        assert await found(reader, "word319 common") == [320]


@FILE_STORE
@pytest.mark.requirement("search:index:rebuild")
async def test_a_killed_rebuild_is_completed_by_what_comes_after_it(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0, 5_000)

    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED_IN_REBUILD, str(db.path))
    async with asyncio.timeout(30):
        assert await killed.wait() == -signal.SIGKILL

    async with session_store() as opened:
        assert (await opened.search_index_status())["waiting"] == 3_000
        await append_words(opened, 5_000, 10)
        assert await found(opened, "word4999") == [5_000]
        assert await found(opened, "word5009") == [5_010]
        assert await sound(opened)


@FILE_STORE
@pytest.mark.requirement("search:index:erased")
async def test_optimizing_takes_deleted_words_out_of_the_file(session_store: OpenStore) -> None:
    async with session_store() as db:
        await db.create_session("s", "cli")
        await append_words(db, 0)
        await db.create_session("secret", "cli")
        await db.append_message("secret", "user", "xylophonist")
        assert len(await found(db, "xylophonist")) == 1
    assert b"xylophonist" in db.path.read_bytes()

    async with session_store() as db:
        await db.delete_session("secret")
        assert await found(db, "xylophonist OR xylophon") == []
        assert await db.optimize_fts() == 1
        assert await sound(db)
    assert b"xylophonist" not in db.path.read_bytes()


@pytest.mark.requirement("search:rows:fresh")
async def test_a_row_is_found_as_soon_as_it_is_stored(session_db: SessionDB, session_store: OpenStore) -> None:
    await session_db.create_session("s", "cli")

    async def stored_and_found(number: int) -> list[int]:
        row_id = await session_db.append_message("s", "user", f"word{number}")
        return [row_id, *await found(session_db, f"word{number}")]

    pairs = await asyncio.gather(*(stored_and_found(number) for number in range(300)))
    async with session_store() as other:
        late = await session_db.append_message("s", "user", "latecomer")
        assert await found(other, "latecomer") == [late]

    assert all(len(pair) == 2 and pair[0] == pair[1] for pair in pairs)


@FILE_STORE
@pytest.mark.requirement("search:index:damaged")
async def test_another_process_goes_on_after_the_index_was_given_up(session_store: OpenStore) -> None:
    async with session_store() as one, session_store() as other:
        await one.create_session("s", "cli")
        await append_words(one, 0)
        assert await found(other, "word7") == [8]
        damage(one.path, "table-lost")
        await append_words(one, WORDS)
        assert not (await one.search_index_status())["indexed"]

        await append_words(other, 2 * WORDS)
        assert await found(other, "word1799") == [1800]
        async with session_store() as healing:
            await append_words(healing, 3 * WORDS)
            assert await found(healing, "word2399") == [2400]
            await append_words(other, 4 * WORDS)
            await append_words(one, 5 * WORDS)
            assert [await found(db, "word7") for db in (one, other, healing)] == [[8]] * 3
            assert [await found(db, "word3599") for db in (one, other, healing)] == [[3600]] * 3
            assert await sound(healing)
