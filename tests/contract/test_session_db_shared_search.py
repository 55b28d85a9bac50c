"""The same hits on a file and on a server, and how the server answers: along indexes."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from aip_hermes.database.postgres.dialect import parameters, translated_query
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.listing import Filter, page_query
from aip_hermes.embedded.session_db.queries import QUERIES
from tests.support.runtime_clock import ManualClock

CALL: Final = {
    "id": "c",
    "function": {"name": "write_file", "arguments": json.dumps({"text": "nested\nnewline Größe"})},
}
ROWS: Final[tuple[dict[str, Any], ...]] = (
    {"role": "user", "content": "the deployment failed on monday"},
    {"role": "assistant", "content": "deploy again, then check the log; the end"},
    {"role": "user", "content": "the " * 400 + "end of a long text"},
    {"role": "user", "content": "Naïve café, ÜBER größe, İstanbul, ﷺ"},
    {"role": "user", "content": "你好世界 部署失败"},
    {"role": "assistant", "content": "ひらがな カタカナ 한국어"},
    {"role": "user", "content": [{"type": "text", "text": "parts with words"}, {"type": "image_url", "url": "hidden"}]},
    {"role": "user", "content": {"note": "inside\0an object", "type": "secret"}},
    {"role": "user", "content": 4711},
    {"role": "user", "content": b"bytes are no words"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "tool_name": None},
    {"role": "tool", "content": "result: C:\\path\\file_name.txt (ok) 100% a+b=c don't", "tool_name": "read_file"},
    {"role": "user", "content": "x" * 300 + " longword " + "y" * 5000},
    {"role": "user", "content": "OR and NOT are words in lower case: or not; 'quoted' \"double\" back\\slash % _ ?"},
    {"role": "user", "content": "emoji 👍 and \ue000 private \0 nul"},
    {"role": "user", "content": " ".join(f"w{number}" for number in range(150_000)) + " tail of the giant"},
)
QUERIES_TYPED: Final = (
    "deploy", "deploy*", "deployment failed", '"failed on"', '"on failed"', '"the end"', '"the en"*',
    "the NOT end", "deployment OR longword", "the AND end", "monday OR (log NOT deploy)", "naive", "cafe",
    "UBER", "uber", "größe", "GRÖSSE", "istanbul", "你", "你好", "世界 部署", "部署失败", "ひら", "カタカナ",
    "한국", "parts", "hidden", "secret", "object", "inside", "4711", "bytes", "write_file", "nested",
    "newline", "read_file", "path", "file_name", "name", "txt", "100", "100%", "a+b", "don't", "don",
    "x" * 300, "x" * 256, "y" * 5000, "yyyy*", "longword", "or", "not", "quoted", "back\\slash", "?", "%",
    "_", "👍", "\ue000", "private", "nul", "w149999", "w14999*", '"tail of the giant"', "tail giant",
    "giant NOT tail", "ploy", "loymen", "role", "assistant", "NOT deploy", "AND", '""', "*", "e",
    '"end of" OR monday', "words NOT parts NOT quoted", "'", "!", "&|",
)  # fmt: skip


@pytest.fixture
async def both(tmp_path: Path, postgres_dsn: str) -> AsyncIterator[tuple[SessionDB, SessionDB]]:
    """The same rows in a file and on a server."""
    clock = ManualClock()
    async with SessionDB(tmp_path / "hermes.db", clock=clock) as file, SessionDB(postgres_dsn, clock=clock) as server:
        for db in (file, server):
            for name in ("a", "b"):
                await db.create_session(name, "cli" if name == "a" else "api_server")
            for place, row in enumerate(ROWS):
                await db.append_message("ab"[place % 2], **row, timestamp=1_000.0 + place * 7 % 5)
            await db.optimize_fts()
        yield file, server


@pytest.mark.requirement("sessions:postgres:search")
async def test_every_query_finds_the_same_on_both_engines(both: tuple[SessionDB, SessionDB]) -> None:
    different: dict[str, Any] = {}
    for query in QUERIES_TYPED:
        for how in ({}, {"sort": "newest"}, {"sort": "oldest", "limit": 2, "offset": 1}, {"source_filter": ["cli"]}):
            here, there = [await db.search_messages(query, **{"limit": 50, **how}) for db in both]  # type: ignore[arg-type]
            if here != there:
                different[f"{query[:40]} {how}"] = ([h["id"] for h in here], [h["id"] for h in there])
    assert not different


@pytest.mark.requirement("sessions:postgres:search")
async def test_what_fits_best_is_the_same_on_both_engines(tmp_path: Path, postgres_dsn: str) -> None:
    chance = random.Random(3)  # noqa: S311 - the same texts every time
    words = ("alpha", "beta", "gamma", "delta", "fox", "dog", "log", "deploy", "error", "the", "a", "of")
    said = [" ".join(chance.choices(words, weights=range(1, 13), k=chance.randint(3, 40))) for _ in range(300)]
    asked = ("alpha", "fox dog", "alpha OR beta", "the", "alpha NOT the", '"the of"', "ga*", "alpha OR the OR log")
    found: list[list[list[int]]] = []
    async with SessionDB(tmp_path / "hermes.db") as file, SessionDB(postgres_dsn) as server:
        for db in (file, server):
            await db.create_session("s", "cli")
            await db.append_messages_batch("s", [{"role": "user", "content": text} for text in said])
            found.append([[hit["id"] for hit in await db.search_messages(query)] for query in asked])
    assert found[0] == found[1]
    assert all(found[0])


@pytest.mark.requirement("sessions:postgres:search")
async def test_parts_of_words_are_looked_up_in_trigrams_where_the_server_has_them(postgres_dsn: str) -> None:
    async with SessionDB(postgres_dsn) as db:
        await db.create_session("s", "cli")
        await db.append_messages_batch("s", [{"role": "user", "content": f"deploy{n} 100%_{n}"} for n in range(500)])
        assert await db.optimize_fts() == 1
        plain = {query: await db.search_messages(query, limit=500) for query in ("eploy77", "ploy1", "0%_4", "eploy7_")}
        with psycopg.connect(postgres_dsn, autocommit=True) as raw:
            raw.execute("CREATE EXTENSION pg_trgm")
        assert await db.optimize_fts() == 1
        assert {query: await db.search_messages(query, limit=500) for query in plain} == plain
        assert [len(hits) for hits in plain.values()] == [1, 111, 111, 0]
    query = QUERIES["scan_newest"].postgres or ""
    contains = (QUERIES["text_contains"].postgres or "").replace("{parameter}", "text_0")
    asked = SEARCH | {"text_0": "%eploy77%", "limit": 20, "offset": 0}
    with psycopg.connect(postgres_dsn, autocommit=True) as raw:
        raw.execute("SET search_path TO aip_sessions; SET enable_seqscan TO off")
        explained = f"EXPLAIN {translated_query(query.replace('{condition}', contains))}".encode()
        plan = "\n".join(line for (line,) in raw.execute(explained, parameters(asked)))
    assert "messages_parts" in plan


@pytest.mark.requirement("sessions:postgres:search")
async def test_words_that_are_taken_from_the_texts_again_are_the_same(both: tuple[SessionDB, SessionDB]) -> None:
    _, server = both

    def words(connection: Any) -> list[tuple[Any, ...]]:
        return list(
            connection.tuples(
                "SELECT id, content, content_text, calls_text, folded, words, word_total FROM messages ORDER BY id"
            )
        )

    before = await server.read(words)
    told: list[tuple[int, int]] = []
    await server.rebuild_search_index(lambda done, last: told.append((done, last)))
    assert await server.read(words) == before
    assert told == [(len(ROWS), len(ROWS))]


FILL: Final = """
INSERT INTO sessions (id, source, started_at, newest_message_at, title, parent_session_id, end_reason)
SELECT 's' || n, CASE n % 3 WHEN 0 THEN 'cli' ELSE 'api_server' END, n, n + 0.5, 't' || n,
    CASE WHEN n % 10 = 0 AND n > 10 THEN 's' || (n - 10) END, CASE WHEN n % 10 = 0 THEN 'compression' END
FROM generate_series(1, 3000) AS n;
INSERT INTO messages (session_id, role, content, timestamp, folded, words)
SELECT 's' || (n % 3000 + 1), CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END, 'word' || n, n, ' word' || n || ' ',
    array_to_tsvector(ARRAY['word' || n])
FROM generate_series(1, 15000) AS n;
INSERT INTO leases SELECT 'turn', 's' || n, 'h', 1, 2 FROM generate_series(1, 2000) AS n;
ANALYZE;
"""
PAGE: Final = Filter().parameters() | {"limit": 20, "offset": 0, "project": 1}
SEARCH: Final = {"include_inactive": 0, "sources": None, "excluded": None, "roles": None, "match": "'word77'"}
ROW: Final = {"id": "s77", "session_id": "s77", "limit": 20, "offset": 0, "include_inactive": 0, "after_id": 0}
HOT: Final[dict[str, dict[str, Any]]] = {
    "list_roots_by_activity": PAGE,
    "list_roots_by_start": PAGE,
    "list_rows_by_activity": PAGE,
    "list_rows_by_start": PAGE,
    "fetch_session": ROW,
    "fetch_messages": ROW,
    "fetch_latest_messages": ROW,
    "fetch_told_texts": ROW,
    "compression_tip": ROW,
    "compression_ancestors": ROW,
    "compression_lineage": ROW,
    "session_by_title": {"title": "t77"},
    "search_ranked": SEARCH | {"block": 1000, "block_start": 0},
    "search_newest": SEARCH | {"limit": 20, "offset": 0},
    "search_state": {},
    "fetch_lease": {"kind": "turn", "subject": "s77"},
}


@pytest.mark.requirement("sessions:postgres:plans")
async def test_what_is_read_most_is_found_along_an_index(postgres_dsn: str) -> None:
    async with SessionDB(postgres_dsn) as db:
        await db.session_count()
    walked: dict[str, list[str]] = {}
    with psycopg.connect(postgres_dsn, autocommit=True) as raw:
        raw.execute("SET search_path TO aip_sessions")
        raw.execute(FILL.encode())
        for name, asked in HOT.items():
            query = QUERIES[name]
            text = (query.postgres or query).replace("{condition}", "TRUE")
            explained = f"EXPLAIN (FORMAT JSON) {translated_query(text)}".encode()
            ((plan,),) = raw.execute(explained, parameters(asked)).fetchall()
            if whole := [table for table in _walked(plan[0]["Plan"]) if table in ("messages", "sessions", "leases")]:
                walked[name] = whole
        assert page_query(roots=True, by_activity=True) is QUERIES["list_roots_by_activity"]
    assert not walked


def _walked(node: dict[str, Any]) -> list[str]:
    """Return the tables that a plan reads from the beginning to the end."""
    found = [node["Relation Name"]] if node["Node Type"] == "Seq Scan" else []
    for child in node.get("Plans", ()):
        found += _walked(child)
    return found
