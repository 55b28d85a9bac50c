"""What people type into a search box, marks and all, finds the text that has it, and nothing else."""

from __future__ import annotations

import pytest

from aip_hermes.embedded import SessionDB

TYPED = {
    "it's": "it's here",
    "gateway/run.py": "look into gateway/run.py",
    "user@host": "ask user@host first",
    "50%": "nearly 50% done",
    "c++": "written in c++ and more",
    "node.js*": "matches node.js* only",
    '"quoted"': 'he said "quoted" twice',
    "搜索": "会话搜索",
    "検索": "検索できる",
    "검색": "세션 검색",
}
"""Words, and the stored text that has them."""

MARKS = ("", " ", '"', "''", "++", "*", "-", "()", "!?", "~^", "。", "…", "🙂")
"""Nothing of them is stored as a word."""


@pytest.mark.requirement("search:query:literal")
async def test_every_text_is_found_by_its_marked_word_and_by_itself(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    ids = {await session_db.append_message("s", "user", text): text for text in TYPED.values()}

    async def found(query: str) -> list[str]:
        return [ids[hit["id"]] for hit in await session_db.search_messages(query, limit=100)]

    assert {word: await found(word) for word in TYPED} == {word: [text] for word, text in TYPED.items()}
    assert {text: await found(text) for text in TYPED.values()} == {text: [text] for text in TYPED.values()}
    assert {marks: await found(marks) for marks in MARKS} == {marks: [] for marks in MARKS}
