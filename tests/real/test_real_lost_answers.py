"""Answers of a real hermes-agent that are really lost; then its own rows are asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import outcome_of
from tests.real.gateway import RealHermes
from tests.real.model import Answer
from tests.real.rows import RealRows, real_rows
from tests.support.cutting_relay import CUTS, Cut
from tests.support.reconcile_site import Losing, losing

pytestmark = pytest.mark.real

QUIET_ROWS_S, QUIET_TURNS_S = 60, 900
OPERATIONS = (
    "session_create",
    "session_patch",
    "session_fork",
    "session_chat",
    "session_chat_stream",
    "session_delete",
)
TURNS = frozenset({"session_chat", "session_chat_stream"})


@dataclass(frozen=True, kw_only=True)
class Site:
    """hermes: the endpoint. rows: the same, asked directly. losing: a runtime that loses its answers."""

    hermes: RealHermes
    rows: RealRows
    losing: Losing

    @property
    def source(self) -> str:
        return f"s-{self.rows.mark}"

    @property
    def made(self) -> str:
        return f"n-{self.rows.mark}"

    def values(self, operation: str) -> Mapping[str, Any]:
        title = f"New {self.rows.mark}"
        source: Mapping[str, Any] = {"session_id": self.source}
        match operation:
            case "session_create":
                return {"body": {"id": self.made, "title": title}}
            case "session_patch":
                return {**source, "title": title, "end_reason": "case_closed"}
            case "session_fork":
                return {**source, "body": {"id": self.made, "title": title}}
            case "session_delete":
                return source
        return {**source, "message": "What is verified?"}

    async def happened(self, operation: str) -> bool:
        """Say by the endpoint's own rows whether the operation took effect."""
        row = await self.rows.row(self.source)
        if operation in ("session_create", "session_fork"):
            return await self.rows.row(self.made) is not None
        if operation == "session_delete":
            return row is None
        assert row is not None
        if operation == "session_patch":
            return (row["title"], row["end_reason"]) == (f"New {self.rows.mark}", "case_closed")
        return bool(row["message_count"] == 4)


@pytest.fixture
async def site(own_hermes: RealHermes, tmp_path: Path) -> AsyncIterator[Site]:
    async with real_rows(own_hermes) as rows, losing(tmp_path, own_hermes.url, key=own_hermes.key) as runtime:
        site = Site(hermes=own_hermes, rows=rows, losing=runtime)
        await rows.create(site.source, title=f"First {rows.mark}")
        yield site


@pytest.mark.requirement("real:lost-answers")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_verdict_is_what_the_real_rows_say(operation: str, cut: Cut, site: Site) -> None:
    lost = site.losing
    await site.rows.chat(site.source, "An earlier question")
    result = await lost.act(operation, site.values(operation), cut=cut, approve=operation == "session_delete")
    assert len(lost.relay.mutations) == (0 if cut == "before_sending" else 1)
    if cut != "after_last_byte":
        assert outcome_of(result.wire()) == "uncertain"
    happened = await site.happened(operation)
    assert happened == (cut != "before_sending")
    verdict = await lost.reconcile(result)
    if not happened:
        quiet_s = QUIET_TURNS_S if operation in TURNS else QUIET_ROWS_S
        assert verdict["verdict"] == "indeterminate"
        assert 0 < verdict["retry_after_ms"] <= quiet_s * 1000
        lost.clock.advance(quiet_s)
        verdict = await lost.reconcile(result)
    assert verdict["verdict"] == ("applied" if happened else "not_applied")
    assert len(lost.relay.mutations) == (0 if cut == "before_sending" else 1)
    assert await site.happened(operation) == happened


@pytest.mark.requirement("real:lost-answers")
async def test_a_real_turn_that_goes_on_is_not_judged_before_its_end(site: Site) -> None:
    gate = threading.Event()
    site.hermes.model.next.append(Answer(text="Late.", until=gate))
    try:
        turn = await site.losing.act("session_chat", site.values("session_chat"), cut="while_running")
        assert await asyncio.to_thread(site.hermes.model.waiting.acquire, timeout=30)
        early = await site.losing.reconcile(turn)
        assert (early["verdict"], early["reason"]) == ("indeterminate", "may_be_under_way")
        site.losing.clock.advance(QUIET_TURNS_S)
        half = await site.losing.reconcile(turn)
        assert (half["verdict"], half["reason"]) == ("partially_applied", "reply_missing")
    finally:
        gate.set()
    async with asyncio.timeout(30):
        await site.losing.relay.ended.wait()
    late = await site.losing.reconcile(turn)
    assert (late["verdict"], late["reason"]) == ("applied", "reply_stored")
    assert len(site.losing.relay.mutations) == 1


@pytest.mark.requirement("real:lost-answers")
@pytest.mark.parametrize("cut", ["before_headers", "mid_body"])
async def test_a_real_half_fork_whose_refusal_was_lost_is_partial_after_the_quiet_time(cut: Cut, site: Site) -> None:
    await site.rows.create(f"other-{site.rows.mark}", title=f"Taken {site.rows.mark}")
    fork = {"session_id": site.source, "body": {"id": site.made, "title": f"Taken {site.rows.mark}"}}
    result = await site.losing.act("session_fork", fork, cut=cut)
    assert (await site.losing.reconcile(result))["verdict"] == "indeterminate"
    site.losing.clock.advance(QUIET_ROWS_S)
    assert (await site.losing.reconcile(result))["verdict"] == "partially_applied"
    source, child = await site.rows.row(site.source), await site.rows.row(site.made)
    assert source is not None
    assert child is not None
    assert (source["end_reason"], child["title"]) == ("branched", None)
    assert len(site.losing.relay.mutations) == 1
