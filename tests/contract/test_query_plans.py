"""How the store finds what it is asked for: by an index, however much there is."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aip_hermes.runtime.store import QUERIES
from tests.support.runtime_site import Site

ASKED = (
    "fetch_action",
    "fetch_event_page",
    "fetch_chunks",
    "last_event",
    "last_chunk",
    "has_chunks",
    "fetch_log_page",
    "list_actions",
    "count_actions",
    "fetch_chain",
    "fetch_receipt",
    "last_receipt",
    "list_audit",
    "list_audit_of_action",
    "fetch_key",
    "fetch_approval",
    "list_approvals",
    "fetch_overdue",
    "fetch_expired_text",
    "fetch_by_subject",
    "forget_subjects",
    "claim_message",
)
"""Queries behind a request, or behind what is looked for once a second or minute. Pruning may take its time."""

IN_ORDER = ("list_actions", "fetch_log_page", "fetch_event_page", "fetch_chunks", "list_audit", "fetch_expired_text")
"""Pages: they come in the order of the index, so that a page reads what it hands out and no more."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[sqlite3.Connection]:
    site = Site(tmp_path)
    async with site.open():
        pass
    raw = sqlite3.connect(site.path)
    yield raw
    raw.close()


def plan_of(store: sqlite3.Connection, name: str) -> list[str]:
    query = QUERIES[name]
    params = dict.fromkeys(re.findall(r":([a-z_]+)", query))
    return [row[3] for row in store.execute(f"EXPLAIN QUERY PLAN {query}", params)]


@pytest.mark.requirement("records:plans")
@pytest.mark.parametrize("name", ASKED)
async def test_nothing_that_is_asked_often_looks_through_a_table(store: sqlite3.Connection, name: str) -> None:
    scanned = [step for step in plan_of(store, name) if step.startswith("SCAN") and not _in_index_order(step)]
    assert scanned == []


def _in_index_order(step: str) -> bool:
    """A walk along an index that a LIMIT ends; a table's own key is one."""
    return "USING" in step or step == "SCAN events"


@pytest.mark.requirement("records:plans")
@pytest.mark.parametrize("name", IN_ORDER)
async def test_a_page_is_not_sorted_out_of_everything(store: sqlite3.Connection, name: str) -> None:
    assert [step for step in plan_of(store, name) if "TEMP B-TREE" in step] == []


@pytest.mark.requirement("records:plans")
async def test_what_the_audit_log_says_of_one_action_is_found_by_the_action(store: sqlite3.Connection) -> None:
    for name in ("list_audit_of_action", "append_audit"):
        assert any("action_id=?" in step for step in plan_of(store, name))


@pytest.mark.requirement("records:plans")
@pytest.mark.parametrize("name", ["waiting_tenants", "take_due", "take_late", "next_due", "next_late", "wait_from_now"])
async def test_the_worker_looks_at_what_waits_and_at_nothing_that_has_ended(
    store: sqlite3.Connection, name: str
) -> None:
    looks = [step for step in plan_of(store, name) if " actions" in step or " behind" in step]
    found_by_id = "sqlite_autoindex_actions_1 (tenant=? AND action_id=?)"
    waiting = ("actions_due", "actions_late", "actions_waiting", found_by_id)
    assert [step for step in looks if not any(index in step for index in waiting)] == []
