"""Bounds and texts that choose what is removed: of another kind they are refused, before a row is touched."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.embedded.session_db import SessionDB


@pytest.mark.requirement("session_db:prune:filters")
@pytest.mark.parametrize(
    "filters",
    [
        {"started_before": "2020-01-01"}, {"last_active_before": "1"}, {"started_after": True}, {"max_messages": "0"},
        {"max_cost": "0"}, {"source": ["cli"]}, {"title_like": 5}, {"archived": "yes"}, {"end_reason": b"done"},
    ],
)  # fmt: skip
async def test_a_filter_of_another_kind_is_refused_and_removes_nothing(
    session_db: SessionDB, filters: dict[str, Any]
) -> None:
    await session_db.create_session("s", "cli")
    await session_db.end_session("s", "done")

    with pytest.raises(TypeError):
        await session_db.prune_sessions(None, **filters)
    assert await session_db.get_session("s") is not None


@pytest.mark.requirement("session_db:prune:filters")
async def test_a_bound_beyond_what_an_engine_counts_is_a_bound(session_db: SessionDB) -> None:
    await session_db.create_session("s", "cli")
    await session_db.end_session("s", "done")

    for bounds, found in (
        ({"min_messages": 10**30}, 0), ({"max_tokens": 10**30}, 1), ({"min_tool_calls": -(10**30)}, 1),
        ({"max_messages": -(10**30)}, 0), ({"started_before": 10**30}, 1), ({"min_cost": float("inf")}, 0),
    ):  # fmt: skip
        assert (bounds, len(await session_db.list_prune_candidates(None, **bounds))) == (bounds, found)
