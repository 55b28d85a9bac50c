"""What a page of approvals costs the store, and that nothing is lost between its slices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from aip_hermes.database import Connection, Database
from aip_hermes.runtime import Authorities, Caller
from aip_hermes.runtime.approval_pages import ApprovalsAsked, approval_page
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from aip_hermes.runtime.visible_approvals import Sight
from tests.support.runtime_site import Site, ask, caller, decision, requester, reviewer

OTHERS = 450
"""Approvals of somebody else: more than two slices of the list."""

COPY = """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :most)
INSERT INTO approvals (
    approval_id, tenant, action_id, capability_id, requester_id, subject_id, status, request, input_hash, content_hash,
    snapshot, expires_at, created_at, updated_at)
SELECT printf('%s-%03d', approval_id, n), tenant, action_id, capability_id, 'agent:example:other',
    'agent:example:other', status, request, input_hash, content_hash, snapshot, expires_at, created_at, updated_at
FROM approvals JOIN numbers WHERE approval_id = :id"""


class Counting:
    """A connection that counts its statements."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.statements = 0

    def execute(self, query: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.statements += 1
        return self._connection.execute(query, params)


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    """One approval, then those of somebody else at the same moment, then another one."""
    site = Site(tmp_path)
    async with site.open() as runtime:
        _, first = await ask(site, runtime, idempotency_key="A")
        site.clock.advance(1)
        await ask(site, runtime, idempotency_key="B")
    await site.edit(COPY, most=OTHERS, id=first.id)
    return site


async def page(site: Site, by: Caller, **asked: Any) -> tuple[int, int | None, int]:
    """Return how many are on it, where the next one starts, and how many statements that took."""

    def look(connection: Connection) -> tuple[int, int | None, int]:
        counting = Counting(connection)
        sight = Sight(by, authorities=Authorities(site.authorities), now=site.clock.now_ms())
        wanted = ApprovalsAsked(**{"size": 1000, **asked})
        found, rest = approval_page(cast("Connection", counting), wanted, tenant="tenant-a", sight=sight)
        return len(found), rest, counting.statements

    async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID, read_only=True) as database:
        return await database.read(look)


@pytest.mark.requirement("runtime:query:approvals-page")
@pytest.mark.parametrize(
    ("by", "asked", "found"),
    [
        (requester(), {}, 2),
        (caller("human:example:stranger"), {}, 0),
        (reviewer(), {}, OTHERS + 2),
        (reviewer(), {"approver": "human:example:nobody"}, 0),
    ],
)
async def test_a_page_takes_a_statement_for_each_slice_and_none_for_each_row(
    site: Site, by: Caller, asked: dict[str, Any], found: int
) -> None:
    assert await page(site, by, **asked) == (found, None, 4)


@pytest.mark.requirement("runtime:query:approvals-page", "runtime:query:approvals")
@pytest.mark.parametrize("limit", [1000, 201, 150])
async def test_pages_together_have_each_approval_once_across_all_slices(site: Site, limit: int) -> None:
    async with site.open() as runtime:
        ids: list[str] = []
        cursor = None
        while True:
            answered = await runtime.approvals(reviewer(), limit=limit, cursor=cursor)
            ids += [view.request.id for view in answered.approvals]
            if (cursor := answered.cursor) is None:
                break
            assert cursor == f"offset:{len(ids)}"
    assert len(ids) == OTHERS + 2


@pytest.mark.requirement("runtime:query:approvals-page")
async def test_where_the_next_page_starts_counts_what_the_caller_does_not_see(site: Site) -> None:
    assert (await page(site, requester(), size=1))[:2] == (1, OTHERS + 1)
    assert (await page(site, requester(), size=1, start=OTHERS + 1))[:2] == (1, None)


@pytest.mark.requirement("runtime:query:approvals-page")
async def test_a_list_has_the_decision_and_the_standing_of_each_action(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.open() as runtime:
        _, first = await ask(site, runtime, idempotency_key="A")
        site.clock.advance(1)
        await ask(site, runtime, idempotency_key="B")
        await runtime.decide(decision(first, decision="denied"), reviewer())
        listed = (await runtime.approvals(reviewer(), include_action_status=True)).approvals
    assert [view.decision and view.decision.decision for view in listed] == ["denied", None]
    assert [view.action_status and view.action_status.state for view in listed] == ["failed", "pending_approval"]
