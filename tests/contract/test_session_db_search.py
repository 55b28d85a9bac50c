"""Search as people use it: what finds what, in which order, with what around it."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.search import FIELDS
from tests.support.postgres import FILE_STORE
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore, said

ROWS = {
    "apostrophe": "we don't know",
    "slash": "either a/b or none",
    "comma": "first c,d then",
    "percent": "about 50% of it",
    "hash": "see #tag there",
    "bracket": "list [z] of them",
    "angle": "if x<y> holds",
    "mail": "write to user@example.com today",
    "question": "is it omega?",
    "minus": "gamma -beta",
    "star": "sigma al*ha sigma",
    "underscore": "call_this now",
    "dots": "version 1.2.3-rc_4 is out",
    "accents": "Köln und Café",
    "greek": "Ελληνικά",
    "emoji": "ship it 🚀",
    "arrow": "left -> right",
    "long": "the deployment failed twice",
    "fox": "quick brown fox",
    "reverse": "brown but quick",
    "operators": "this and that or not",
    "chinese": "部署失败了,请重试",
    "japanese": "データベースを削除する",
    "korean": "배포가 실패했습니다",
    "number": "error 404 again",
}

FOUND = [
    ("don't", {"apostrophe"}),
    ("a/b", {"slash"}),
    ("c,d", {"comma"}),
    ("50%", {"percent"}),
    ("#tag", {"hash"}),
    ("[z]", {"bracket"}),
    ("x<y>", {"angle"}),
    ("user@example.com", {"mail"}),
    ("omega?", {"question"}),
    ("gamma -beta", {"minus"}),
    ("al*ha", {"star"}),
    ("call_this", {"underscore"}),
    ("1.2.3-rc_4", {"dots"}),
    ("KÖLN cafe", {"accents"}),
    ("ελληνικά", {"greek"}),
    ("🚀", {"emoji"}),
    ("->", {"arrow"}),
    ("deploy*", {"long"}),
    ("*deploy***", {"long"}),
    ("DEPLOYMENT failed", {"long"}),
    ("deployment (failed)", {"long"}),
    ("twice:failed", {"long"}),
    ("brown quick", {"fox", "reverse"}),
    ('"quick brown"', {"fox"}),
    ('"brown quick"', set()),
    ('"quick bro"*', {"fox"}),
    ('"quick brown', {"fox", "reverse"}),
    ("quick NOT fox", {"reverse"}),
    ("quick NOT fox NOT but", set()),
    ("fox OR deployment", {"fox", "long"}),
    ("quick fox OR deployment failed", {"fox", "long"}),
    ("quick AND fox", {"fox"}),
    ("AND quick fox OR", {"fox"}),
    ("quick AND OR NOT fox", {"reverse"}),
    ("and", {"operators"}),
    ("not that", {"operators"}),
    ("AND", set()),
    ("NOT OR AND", set()),
    ("", set()),
    (" \t\n", set()),
    ("()", set()),
    ('"', set()),
    ('""', set()),
    ("***", set()),
    ("部", {"chinese"}),
    ("失败", {"chinese"}),
    ("部署失", {"chinese"}),
    ("重试 部署", {"chinese"}),
    ("部署 削除", {"chinese", "japanese"}),
    ("データ", {"japanese"}),
    ("실패", {"korean"}),
    ("部署 NOT 重试", set()),
    ("404", {"number"}),
    ("nowhere", set()),
    ("\0 fox \ud800", {"fox"}),
    ("NEAR(quick fox)", set()),
]


INSIDE: list[tuple[str, list[str]]] = [
    ("größe", ["list"]),
    ("inside", ["list"]),
    ("pixels", []),
    ("image_url", []),
    ("object", ["object", "marked"]),
    ("secretkind", []),
    ("31337", ["number"]),
    ("raw", []),
    ("behind", ["nul"]),
    ("after", ["nul in a list"]),
    ("deep", ["deep"]),
    ("json", ["marked"]),
    ("grep_files", ["call"]),
    ("Übergang", ["call"]),
    ("数据", ["call"]),
    ("file_reader", ["result"]),
]


@pytest.fixture
async def stocked(session_db: SessionDB) -> SessionDB:
    await session_db.create_session("s", "cli")
    for name, text in ROWS.items():
        await session_db.append_message("s", "user", text, platform_message_id=name)
    return session_db


async def names(db: SessionDB, query: str, **options: Any) -> list[str]:
    rows = {row["id"]: row for row in await db.get_messages("s", include_inactive=True)}
    hits = await db.search_messages(query, **{"limit": 100, **options})
    return [str(rows[hit["id"]]["platform_message_id"]) for hit in hits]


@pytest.mark.requirement("search:query:as-typed")
@pytest.mark.requirement("search:query:never-raises")
async def test_each_query_finds_its_rows_and_no_other(stocked: SessionDB) -> None:
    found = [(query, set(await names(stocked, query))) for query, _ in FOUND]

    assert found == FOUND


@pytest.mark.requirement("search:query:as-typed")
async def test_every_mark_of_a_keyboard_may_stand_in_a_word(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    marks = [chr(code) for code in range(33, 127) if not chr(code).isalnum()]
    words = [f"left{number}{mark}right{number}" for number, mark in enumerate(marks)]
    ids = [await session_db.append_message("s", "user", f"some {word} text") for word in words]

    for word, row_id in zip(words, ids, strict=True):
        assert [hit["id"] for hit in await session_db.search_messages(word)] == [row_id], word


@pytest.mark.requirement("search:query:parts-of-words")
async def test_parts_of_words_are_found_where_no_word_is(stocked: SessionDB) -> None:
    assert await names(stocked, "ployme") == ["long"]
    assert await names(stocked, "PLOYME aile") == ["long"]
    assert await names(stocked, '"uick brow"') == ["fox"]
    assert await names(stocked, '"rown quic"') == []
    assert await names(stocked, "ui") == []
    assert await names(stocked, "ployme", offset=1) == []
    others = [f"nowhere{number}" for number in range(32)]
    assert await names(stocked, " OR ".join(["ployme", *others[:31]])) == ["long"]
    assert await names(stocked, " OR ".join(["ployme", *others])) == []


@pytest.mark.requirement("search:query:never-raises")
async def test_a_query_is_read_up_to_2048_characters(stocked: SessionDB) -> None:
    assert await names(stocked, "fox" + " " * 2045 + "nowhere") == ["fox"]
    assert await names(stocked, "fox" + " " * 2038 + "nowhere") == []
    for word in ("x ", "x NOT ", "x OR ", '"a b" ', "部 ", "ü "):
        assert await names(stocked, word * 2000) is not None


@FILE_STORE
@pytest.mark.requirement("search:rows:visible")
async def test_rewound_rows_hide_compacted_ones_do_not(stocked: SessionDB, session_store: OpenStore) -> None:
    with sqlite3.connect(session_store().path) as raw:
        raw.execute("UPDATE messages SET active = 0 WHERE platform_message_id IN ('fox', 'chinese')")
        raw.execute("UPDATE messages SET active = 0, compacted = 1 WHERE platform_message_id = 'reverse'")
    raw.close()

    assert await names(stocked, "quick") == ["reverse"]
    assert set(await names(stocked, "quick", include_inactive=True)) == {"fox", "reverse"}
    assert await names(stocked, "部署") == []
    assert await names(stocked, "部署", include_inactive=True) == ["chinese"]


@FILE_STORE
@pytest.mark.requirement("search:rows:visible")
async def test_deleted_rows_are_gone_and_changed_ones_are_found_by_their_new_text(
    stocked: SessionDB, session_store: OpenStore
) -> None:
    assert await names(stocked, "fox") == ["fox"]
    with sqlite3.connect(session_store().path) as raw:
        raw.execute("UPDATE messages SET content = 'slow snail' WHERE platform_message_id = 'fox'")
    raw.close()

    assert await names(stocked, "fox") == []
    assert await names(stocked, "snail") == ["fox"]
    assert (await stocked.search_index_status(check=True))["damage"] is None
    await stocked.delete_session("s")
    assert await stocked.search_messages("snail OR deployment", include_inactive=True) == []
    assert await stocked.search_messages("部", include_inactive=True) == []
    assert (await stocked.search_index_status(check=True))["damage"] is None


@pytest.mark.requirement("search:rows:contents")
async def test_texts_in_lists_objects_and_tool_calls_are_found(session_db: SessionDB) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,pixels"}}
    given: dict[str, object] = {
        "list": [{"type": "text", "text": "inside a list: größe"}, picture],
        "object": {"answer": "in an object", "type": "secretkind"},
        "number": 31337,
        "bytes": b"\xffraw bytes\x00",
        "marked": "\0json:no object",
        "nul": "before\0behind",
        "nul in a list": [{"type": "text", "text": "ahead\0after \\\\u0000"}],
        "nan": {"value": float("nan"), "text": "beside nan"},
        "deep": [[[["deep down"]]]],
    }
    await session_db.create_session("s", "cli")
    for name, content in given.items():
        await session_db.append_message("s", "user", content, platform_message_id=name)
    call = {"id": "c", "type": "function", "function": {"name": "grep_files", "arguments": '{"for": "Übergang 数据"}'}}
    await session_db.append_message("s", "assistant", None, tool_calls=[call], platform_message_id="call")
    await session_db.append_message("s", "tool", "done", tool_name="file_reader", platform_message_id="result")

    for query, found in INSIDE:
        assert sorted(await names(session_db, query)) == sorted(found), query


@pytest.mark.requirement("search:rows:filters")
async def test_filters(session_db: SessionDB) -> None:
    for source in ("cli", "cron", "api"):
        await session_db.create_session(source, source)
        await said(session_db, source, "a word", "a word")

    async def found(**options: Any) -> set[tuple[str, str]]:
        return {(hit["source"], hit["role"]) for hit in await session_db.search_messages("word", **options)}

    assert len(await found()) == 6
    assert await found(source_filter=["cli", "cron"], role_filter=["user"]) == {("cli", "user"), ("cron", "user")}
    assert await found(exclude_sources=["cli", "cron"], role_filter=["assistant"]) == {("api", "assistant")}
    assert await found(source_filter=[]) == set()
    assert await found(source_filter=["nowhere"]) == set()
    assert len(await found(exclude_sources=[], role_filter=[])) == 6
    assert await found(limit=0) == set()


@pytest.mark.requirement("search:rows:order")
async def test_the_best_fit_comes_first_or_the_newest_or_the_oldest(
    session_db: SessionDB, session_clock: ManualClock
) -> None:
    await session_db.create_session("s", "cli")
    for name, text in (
        ("one", "word among many others that say nothing of it"),
        ("best", "word word word"),
        ("last", "a word and some more around it"),
    ):
        await session_db.append_message("s", "user", text, platform_message_id=name)
        session_clock.advance(1000)
    await session_db.append_message("s", "user", "word of old times", timestamp=1.0, platform_message_id="old")

    assert (await names(session_db, "word"))[0] == "best"
    assert await names(session_db, "word", sort="newest") == ["last", "best", "one", "old"]
    assert await names(session_db, "word", sort="oldest") == ["old", "one", "best", "last"]
    assert await names(session_db, "word", sort="by colour") == await names(session_db, "word")


@pytest.mark.requirement("search:rows:order")
async def test_pages_join_to_the_whole_beyond_the_first_thousand(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    texts = [f"word {'and more ' * (number % 7)}" for number in range(2_300)]
    await session_db.append_messages_batch("s", [{"role": "user", "content": text} for text in texts])

    for sort in (None, "newest", "oldest"):
        pages = [
            [hit["id"] for hit in await session_db.search_messages("word", limit=700, offset=offset, sort=sort)]
            for offset in range(0, 2_800, 700)
        ]
        assert [len(page) for page in pages] == [700, 700, 700, 200]
        assert len({row_id for page in pages for row_id in page}) == 2_300


@pytest.mark.requirement("search:hits:shape")
async def test_a_hit_shows_its_matches_and_its_neighbours(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli", model="m")
    before = "b" * 300
    text = f"{'start ' * 60}needle in a hay stack {'end ' * 60}"
    await said(session_db, "s", before, text, "after it")

    (hit,) = await session_db.search_messages("needle hay")
    (plain,) = await session_db.search_messages("eedle")

    assert tuple(hit) == FIELDS
    assert (hit["id"], hit["session_id"], hit["role"], hit["source"], hit["model"]) == (2, "s", "assistant", "cli", "m")
    assert hit["context"] == [
        {"role": "user", "content": "b" * 200},
        {"role": "assistant", "content": text[:200]},
        {"role": "user", "content": "after it"},
    ]
    assert ">>>needle<<< in a >>>hay<<< stack end" in hit["snippet"]
    assert hit["snippet"].startswith("...start")
    assert hit["snippet"].endswith("end...")
    assert len(hit["snippet"].split()) == 40
    assert len(plain["snippet"]) == 120
    assert plain["snippet"].find("eedle") == 40
    assert list(await session_db.search_messages("needle", fields=["snippet", "id"])) == [
        {"snippet": (await session_db.search_messages("needle"))[0]["snippet"], "id": 2}
    ]


@pytest.mark.requirement("search:hits:shape")
async def test_fields_are_names_in_a_list(session_db: SessionDB) -> None:
    with pytest.raises(TypeError):
        await session_db.search_messages("x", fields="snippet")
    with pytest.raises(ValueError, match="colour"):
        await session_db.search_messages("x", fields=["id", "colour"])


@FILE_STORE
@pytest.mark.requirement("search:hits:one-query")
async def test_many_hits_take_no_more_statements_than_one(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await said(session_db, "s", "lonely", *["common"] * 30)
    await session_db.search_messages("lonely")

    async def statements(query: str, found: int) -> int:
        traced: list[str] = []
        await session_db.read(lambda c: c._raw.set_trace_callback(traced.append))
        assert len(await session_db.search_messages(query)) == found
        await session_db.read(lambda c: c._raw.set_trace_callback(None))
        return sum(1 for sql in traced if not sql.startswith("--"))

    assert await statements("lonely", 1) == await statements("common", 20)
