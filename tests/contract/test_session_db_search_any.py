"""Whatever is stored and whatever is asked: found by its own words, and never an error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from aip_hermes.embedded.session_db import SessionDB

OPERATORS = {"AND", "OR", "NOT"}
NUMBERS = count(1)

chars = st.characters() | st.sampled_from("abcXYZ 019éÄßжЖ部署データ한글\u0301\u200d🚀*?-_.,:;'/\\()[]{}<>+^~|\0\n\t")
texts = st.text(chars, min_size=1, max_size=60)
shapes = st.lists(
    st.sampled_from(["AND", "OR", "NOT", "NEAR", '"', "*", "(", ")", "word", "pre*", '"a b"', "部", "-", "\0"]) | texts,
    max_size=30,
)


class Stored:
    """An open store that takes one text after the other."""

    def __init__(self, path: Path) -> None:
        self._runner = asyncio.Runner()
        self._db = SessionDB(path)

    def close(self) -> None:
        self._runner.run(self._db.close())
        self._runner.close()

    def append(self, text: str) -> tuple[str, int]:
        """Store a text in a session of its own; returns its source, by which it can be told from others, and row id."""
        source = f"source-{next(NUMBERS)}"

        async def append() -> int:
            await self._db.create_session(source, source)
            return await self._db.append_message(source, "user", text)

        return source, self._runner.run(append())

    def found(self, query: str, source: str | None = None) -> list[int]:
        chosen = None if source is None else [source]
        return [hit["id"] for hit in self._runner.run(self._db.search_messages(query, source_filter=chosen))]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    store = Stored(tmp_path_factory.mktemp("search") / "hermes.db")
    yield store
    store.close()


@pytest.mark.requirement("search:query:own-words")
@given(text=texts, data=st.data())
@example(text="\U0001e900\U0001e901 hi", data=None)
def test_a_text_is_found_by_any_of_its_words(stored: Stored, text: str, data: st.DataObject | None) -> None:
    words = [word for word in text.split() if '"' not in word and word not in OPERATORS and word.strip("+{}():^*\0")]
    assume(words)
    chosen = words if data is None else data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=5))
    source, row_id = stored.append(text)

    assert stored.found(" ".join(chosen), source) == [row_id]


@pytest.mark.requirement("search:query:never-raises")
@given(query=st.text(chars | st.sampled_from('"'), max_size=80) | shapes.map(" ".join))
@example(query="\ud800")
def test_any_text_is_a_query(stored: Stored, query: str) -> None:
    assert isinstance(stored.found(query), list)


@pytest.mark.requirement("search:rows:filters")
async def test_a_page_beyond_all_rows_is_empty_and_a_limit_beyond_them_shows_all(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.append_messages_batch("s", [{"role": "user", "content": "word 部"}] * 3)

    for query in ("word", "部", "wor"):
        assert len(await session_db.search_messages(query, limit=10**30)) == 3
        assert await session_db.search_messages(query, offset=10**30) == []
        assert await session_db.search_messages(query, limit=-(10**30), offset=-(10**30)) == []
