"""How the engine answers: what is asked of one session, or of a page, is found along an index."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import SessionDB
from aip_hermes.embedded.session_db.listing import page_query
from aip_hermes.embedded.session_db.queries import QUERIES
from tests.support.postgres import FILE_STORE

OF_ONE_SESSION = sorted(
    name for name, sql in QUERIES.items() if re.search(r"\bmessages\b", sql) and ":session_id" in sql
)
OF_ONE_ROW = sorted(
    name
    for name, sql in QUERIES.items()
    if re.search(r"\b(sessions|system_prompts)\b", sql)
    and "doomed" not in sql  # a table of one transaction
    and re.search(r"\bid = (CAST\()?:(id|session_id)|SELECT (CAST\()?:id", sql)
)


async def plan(db: SessionDB, sql: str) -> list[str]:
    """What the engine does for a statement, with nothing bound."""
    names: dict[str, Any] = dict.fromkeys(re.findall(r":([a-z_]+)", sql), None)

    def explain(connection: Connection) -> list[str]:
        return [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", names)]

    return await db.read(explain)


def walked(steps: list[str], *tables: str) -> list[str]:
    """The steps that look through a whole table."""
    return [step for step in steps if re.match(rf"SCAN ({'|'.join(tables)})\b", step) and "USING" not in step]


@FILE_STORE
@pytest.mark.requirement("session_db:listing:plans")
@pytest.mark.parametrize("name", OF_ONE_SESSION)
async def test_a_transcript_is_found_by_its_session(session_db: SessionDB, name: str) -> None:
    assert walked(await plan(session_db, QUERIES[name]), "messages", "m", "sessions", "s") == []


@FILE_STORE
@pytest.mark.requirement("session_db:listing:plans")
@pytest.mark.parametrize("name", OF_ONE_ROW)
async def test_a_row_its_parents_and_its_children_are_found_by_id(session_db: SessionDB, name: str) -> None:
    steps = await plan(session_db, QUERIES[name])
    assert walked(steps, "sessions", "s", "parent", "child", "prompt", "system_prompts") == []


@FILE_STORE
@pytest.mark.requirement("session_db:listing:plans")
@pytest.mark.parametrize("roots", [True, False])
@pytest.mark.parametrize(("by_activity", "index"), [(True, "sessions_active"), (False, "sessions_started")])
async def test_a_page_is_a_walk_along_an_index(
    session_db: SessionDB, roots: bool, by_activity: bool, index: str
) -> None:
    steps = await plan(session_db, page_query(roots=roots, by_activity=by_activity))
    (first,) = [step for step in steps if re.match(r"SCAN (s|root|sessions)\b", step)]
    assert first.endswith(f"USING INDEX {index}")
    assert steps.index(first) == 0
    assert "USE TEMP B-TREE FOR ORDER BY" not in steps[-1]


@FILE_STORE
@pytest.mark.requirement("session_db:listing:plans")
async def test_a_page_costs_no_more_statements_when_it_is_longer(session_db: SessionDB) -> None:
    for number in range(30):
        await session_db.create_session(f"s{number}", "cli", system_prompt=f"prompt {number % 3}")
        if number % 2:
            await session_db.end_session(f"s{number}", "compression")
            await session_db.create_session(f"t{number}", "cli", parent_session_id=f"s{number}")

    async def statements(limit: int) -> int:
        seen: list[str] = []
        await session_db.read(lambda c: c._raw.set_trace_callback(seen.append))
        try:
            page = await session_db.list_sessions_rich(limit=limit, order_by_last_active=True)
        finally:
            await session_db.read(lambda c: c._raw.set_trace_callback(None))
        assert len(page) == limit
        return len([text for text in seen if text.lstrip().startswith(("SELECT", "WITH"))])

    assert await statements(2) == await statements(30) <= 3
