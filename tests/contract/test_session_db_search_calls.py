"""Words in tool calls: arguments are JSON inside JSON, and its escapes are no part of any word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.search.index import INDEX_CHUNK
from tests.support.session_stores import OpenStore

SAID = 'first\nsecond\tthird\r\nfourth /böse/ C:\\newpath "quoted" 👍 42'
WORDS = ("first", "second", "third", "fourth", "böse", "newpath", "quoted", "text", "write")


def call(arguments: object) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "write", "arguments": arguments}}


CALLS: dict[str, Any] = {
    "escaped letters": [call(json.dumps({"text": SAID}))],
    "letters as they are": [call(json.dumps({"text": SAID}, ensure_ascii=False))],
    "an object": [call({"text": SAID})],
    "a JSON text": json.dumps([call(json.dumps({"text": SAID}))]),
    "a list in an object": [call(json.dumps({"deep": [{"text": SAID}]}))],
}


@pytest.mark.requirement("search:query:as-typed")
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "indexed"])
async def test_each_word_of_a_call_is_found_beside_the_same_word_in_a_text(
    session_db: SessionDB, session_store: OpenStore, waiting: bool
) -> None:
    await session_db.create_session("s", "cli")
    # The word elsewhere: no second look at parts of words makes up for one that the index does not know.
    plain = await session_db.append_message("s", "user", " ".join(WORDS))
    calls = {await session_db.append_message("s", "assistant", tool_calls=made): name for name, made in CALLS.items()}
    if not waiting:
        await session_db.optimize_fts()

    async with session_store() as fresh:
        for word in WORDS:
            hits = {hit["id"] for hit in await fresh.search_messages(word, limit=INDEX_CHUNK)}
            missed = [name for row_id, name in calls.items() if row_id not in hits]
            assert (word, missed, plain in hits) == (word, [], True)


@pytest.mark.requirement("search:query:as-typed")
async def test_arguments_that_are_no_json_and_numbers_in_them_are_found(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    broken = await session_db.append_message("s", "assistant", tool_calls=[call('{"text": "cut\\noff')])
    number = await session_db.append_message(
        "s", "assistant", tool_calls=[call('{"a\\n": 4711, "b": "zebra\\u0000x"}')]
    )
    await session_db.optimize_fts()

    found = {word: [hit["id"] for hit in await session_db.search_messages(word)] for word in ("cut", "4711", "zebra")}
    assert found == {"cut": [broken], "4711": [number], "zebra": [number]}


@pytest.mark.requirement("search:query:as-typed")
async def test_letters_with_several_marks_are_found_without_them(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    whole = await session_db.append_message("s", "user", "phở ở Hà Nội ộng")
    await session_db.optimize_fts()

    assert [hit["id"] for hit in await session_db.search_messages("pho ong noi")] == [whole]
    assert [hit["id"] for hit in await session_db.search_messages("ộng")] == [whole]
