"""Any forest of sessions is listed and followed as the rules say, read off by a slow reader of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aip_hermes.embedded.session_db import SessionDB
from tests.support.runtime_clock import ManualClock
from tests.support.session_stores import OpenStore, ids_of

MARKS = {"branch": "_branched_from", "delegate": "_delegate_from", "reset": "_reset_from"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plant:
    """One session to make. parent: how many places back its parent stands, 0 for none. active: seconds after the
    start of all at which somebody was active, 0 for never."""

    parent: int
    mark: str | None
    source: str
    reason: str | None
    active: int
    archived: bool


PLANTS = st.builds(
    Plant,
    parent=st.integers(0, 3),
    mark=st.sampled_from([None, None, None, "branch", "delegate", "reset"]),
    source=st.sampled_from(["cli", "cli", "tool"]),
    reason=st.sampled_from([None, "compression", "compression", "branched", "client_closed", "idle"]),
    active=st.sampled_from([0, 0, 5, 500, 900]),
    archived=st.sampled_from([False, False, False, True]),
)
Answers = dict[str, Any]


async def plant(db: SessionDB, clock: ManualClock, plants: list[Plant]) -> None:
    await db.delete_sessions([row["id"] for row in await db.search_sessions(limit=100)])
    began = clock.now_ms()
    for number, one in enumerate(plants):
        clock.advance(1000)
        parent = f"s{number - one.parent}" if 0 < one.parent <= number else None
        config = {MARKS[one.mark]: parent} if one.mark and parent else None
        await db.create_session(
            f"s{number}", one.source, parent_session_id=parent, model_config=config, session_key="k"
        )
        if one.reason:
            await db.end_session(f"s{number}", one.reason)
        if one.active:
            await db.touch_session_activity(f"s{number}", began / 1000 + one.active)
    for number, one in enumerate(plants):
        await db.write(
            lambda c, n=number, a=one.archived: c.execute(  # type: ignore[misc]
                "UPDATE sessions SET archived = :a WHERE id = :id", {"id": f"s{n}", "a": int(a)}
            )
        )


class Reader:
    """Follows the rules over plain rows."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = {row["id"]: row for row in rows}

    def mark(self, row: dict[str, Any]) -> str | None:
        return next((kind for kind, key in MARKS.items() if key in (row["model_config"] or "")), None)

    def continues(self, row: dict[str, Any]) -> bool:
        parent = self.rows.get(row["parent_session_id"])
        compressed = parent is not None and parent["end_reason"] == "compression"
        return compressed and self.mark(row) is None and row["source"] != "tool"

    def root(self, row: dict[str, Any]) -> dict[str, Any]:
        return self.root(self.rows[row["parent_session_id"]]) if self.continues(row) else row

    def tip(self, row: dict[str, Any]) -> dict[str, Any]:
        below = [r for r in self.rows.values() if r["parent_session_id"] == row["id"] and self.continues(r)]
        if not below:
            return row
        rank = {True: 2, False: 0}
        return self.tip(
            max(
                below,
                key=lambda r: (
                    rank[r["end_reason"] == "compression"] or (1 if r["ended_at"] is None else 0),
                    r["last_active"],
                    r["started_at"],
                    r["id"],
                ),
            )
        )

    def listable(self, row: dict[str, Any]) -> bool:
        parent = self.rows.get(row["parent_session_id"])
        if parent is None or self.mark(row) in ("branch", "reset"):
            return True
        if self.mark(row) is not None:
            return False
        branched = parent["end_reason"] == "branched" and row["started_at"] >= parent["ended_at"]
        return bool(branched or parent["end_reason"] == "idle")

    def listed(self) -> list[str]:
        found = []
        for row in self.rows.values():
            if self.listable(row) and not row["archived"]:
                chain = [r for r in self.rows.values() if self.root(r) is row]
                key = (max(r["last_active"] for r in chain), row["started_at"], row["id"])
                found.append((key, self.tip(row)["id"] if row["end_reason"] == "compression" else row["id"]))
        return [session_id for _, session_id in sorted(found, reverse=True)]


@pytest.fixture
def forest(session_store: OpenStore, session_clock: ManualClock) -> Iterator[Callable[[list[Plant]], Answers]]:
    """Plants a forest in one store and asks it."""
    db = session_store()

    async def asked(plants: list[Plant]) -> Answers:
        await plant(db, session_clock, plants)
        rows = await db.search_sessions(limit=100)
        return {
            "rows": rows,
            "listed": await db.list_sessions_rich(limit=100, order_by_last_active=True),
            "by_start": await db.list_sessions_rich(limit=100),
            "second": await db.list_sessions_rich(limit=2, offset=1, order_by_last_active=True),
            "count": await db.session_count(exclude_children=True),
            "tips": {row["id"]: await db.resolve_resume_session_id(row["id"]) for row in rows},
            "lineages": {row["id"]: await db.get_compression_lineage(row["id"]) for row in rows},
        }

    with asyncio.Runner() as runner:
        yield lambda plants: runner.run(asked(plants))
        runner.run(db.close())


@pytest.mark.requirement("session_db:listing:order")
@pytest.mark.requirement("session_db:lineage:chain")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(plants=st.lists(PLANTS, max_size=9))
def test_a_forest_is_read_as_the_rules_say(forest: Callable[[list[Plant]], Answers], plants: list[Plant]) -> None:
    answers = forest(plants)
    reader = Reader(answers["rows"])
    listed = ids_of(answers["listed"])

    assert listed == reader.listed()
    assert ids_of(answers["second"]) == listed[1:3]
    assert sorted(ids_of(answers["by_start"])) == sorted(listed)
    assert answers["count"] == len(listed)
    for session_id, tip in answers["tips"].items():
        row = reader.rows[session_id]
        assert tip == reader.tip(row)["id"]
        lineage = answers["lineages"][session_id]
        assert (lineage[0], lineage[-1]) == (reader.root(row)["id"], tip)
        assert session_id in lineage
