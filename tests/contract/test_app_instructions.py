"""Decisions and requests to cancel: kept first, found again, and the same one when they are said twice."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aip_hermes.client import (
    AipClient,
    AlreadyDecided,
    ClientFailure,
    IdentityClash,
    IdentityStoreFailed,
    Instruction,
    NoAnswer,
    PeerError,
    SqliteIdentityStore,
)
from aip_hermes.ids import ActionId, ApprovalId
from tests.support.app_calls import application
from tests.support.client_site import ClientSite, cap, client_site, sid
from tests.support.cutting_relay import Cut

REASON = "The case is closed, says Ada."
LOST: tuple[Cut, ...] = ("before_sending", "before_headers", "mid_headers", "mid_body")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[ClientSite]:
    async with client_site(tmp_path) as running:
        await running.endpoint.create("s1")
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "reviewer.db") as opened:
        yield opened


async def asked(site: ClientSite) -> tuple[ActionId, ApprovalId]:
    """Ask for a deletion; return the action and its approval."""
    async with site.client() as aip:
        result = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
    assert result.approval_id is not None
    return result.action_id, result.approval_id


@pytest.mark.requirement("app:instructions:kept-first", "app:instructions:resumed")
@pytest.mark.parametrize("cut", LOST)
async def test_a_lost_decision_is_found_and_said_again_it_is_the_same(
    site: ClientSite, store: SqliteIdentityStore, cut: Cut
) -> None:
    _, approval_id = await asked(site)
    async with site.client("reviewer", store=store) as reviewer:
        await reviewer.me()
        site.front.cut = cut
        with pytest.raises(ClientFailure) as lost:
            await reviewer.decide(approval_id, decision="denied", reason=REASON)
        assert lost.value.uncertain
        [kept] = await reviewer.open_instructions()
        assert (kept.kind, kept.about, kept.attempts) == ("decision", approval_id, 1)
        assert kept.instruction_id == lost.value.details["decision_id"]
        assert (kept.said["decision"], set(kept.said)) == ("denied", {"decision", "decided_at", "policy_hash"})
        arrived = cut != "before_sending"
        found = await reviewer.resume_instruction(kept)
        assert found.state == ("taken" if arrived else "open")
        if not arrived:
            with pytest.raises(IdentityClash):
                await reviewer.resume_instruction(kept, reason="another one")
            found = await reviewer.resume_instruction(kept, reason=REASON)
        assert (found.state, found.instruction.state) == ("taken", "settled")
        assert found.instruction.said == kept.said
        assert await reviewer.open_instructions() == []
        context = (await reviewer.connection.approval_context(approval_id))["approval_context"]
        assert [each["decision_id"] for each in context["decisions"]] == [kept.instruction_id]


@pytest.mark.requirement("app:instructions:resumed")
async def test_a_decision_that_came_too_late_is_missed_and_one_about_another_approval_is_not_sent(
    site: ClientSite, store: SqliteIdentityStore
) -> None:
    _, approval_id = await asked(site)
    async with site.client("reviewer", store=store) as reviewer, site.client("reviewer") as other:
        await reviewer.me()
        site.front.cut = "before_sending"
        with pytest.raises(NoAnswer):
            await reviewer.decide(approval_id, decision="approved", reason=REASON)
        [kept] = await reviewer.open_instructions()
        turned = replace(kept, instruction_id="decision_x", said={**kept.said, "policy_hash": "sha256:other"})
        await store.begin_instruction(turned)
        with pytest.raises(IdentityClash):
            await reviewer.decide(approval_id, decision="approved", reason=REASON, decision_id="decision_x")
        await other.decide(approval_id, decision="denied", reason="keep it")
        found = await reviewer.resume_instruction(kept, reason=REASON)
        assert (found.state, found.next_step) == ("missed", "nothing: the approval was closed without it")
        with pytest.raises(AlreadyDecided):
            await reviewer.decide(approval_id, decision="approved", reason=REASON)


@pytest.mark.requirement("app:instructions:kept-first", "app:instructions:resumed")
@pytest.mark.parametrize("cut", LOST)
async def test_a_lost_cancel_is_found_and_can_be_said_again(
    site: ClientSite, store: SqliteIdentityStore, cut: Cut
) -> None:
    async with site.client(store=store) as aip:
        waiting = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
        site.front.cut = cut
        with pytest.raises(ClientFailure):
            await aip.cancel(waiting.action_id, reason=REASON)
        [kept] = await aip.open_instructions()
        assert (kept.kind, kept.about) == ("cancel", waiting.action_id)
        found = await aip.resume_instruction(kept)
        if cut == "before_sending":
            assert (found.state, found.result) == ("open", None)
            found = await aip.resume_instruction(kept, reason=REASON)
        assert found.state == "taken"
        assert found.result is not None
        assert (found.result.outcome, found.instruction.result) == ("cancelled", {"outcome": "cancelled"})
        assert await aip.open_instructions() == []


@pytest.mark.requirement("app:instructions:kept-first")
async def test_a_refused_cancel_is_over_and_asked_once_more_it_is_open_until_its_answer(
    site: ClientSite, store: SqliteIdentityStore
) -> None:
    unknown = ActionId("act_00000000000000000000000000000000")
    async with site.client(store=store) as aip:
        for attempts, state in ((1, "settled"), (2, "open")):
            with pytest.raises(PeerError):
                await aip.cancel(unknown)
            kept = await store.instruction(server=aip.origin, instruction_id=f"cancel:{unknown}")
            assert kept is not None
            assert (kept.attempts, kept.state) == (attempts, state)


@pytest.mark.requirement("app:instructions:kept-first", "app:instructions:resumed")
@pytest.mark.parametrize("point", ["client_instruction_kept", "client_instruction_answered"])
async def test_a_reviewer_that_is_killed_is_followed_by_another_one(
    site: ClientSite, store: SqliteIdentityStore, point: str
) -> None:
    action_id, approval_id = await asked(site)
    order = {
        "url": site.url,
        "token_file": str(site.folder / "tokens" / "reviewer"),
        "ids": str(store.path),
        "calls": [{"decide": approval_id, "decision": "approved", "reason": REASON}],
        "die_at": point,
    }
    async with application(order) as process:
        assert await process.wait() == -signal.SIGKILL
    async with site.client("reviewer", store=store) as reviewer:
        [kept] = await reviewer.open_instructions()
        found = await reviewer.resume_instruction(kept)
        assert found.state == ("open" if point == "client_instruction_kept" else "taken")
        found = await reviewer.resume_instruction(kept, reason=REASON)
        assert found.state == "taken"
    async with site.client() as aip:
        assert (await aip.wait(action_id, timeout_s=60)).completed()["deleted"] is True
    assert [each for each in site.back.mutations if each[0] == "DELETE"] == [("DELETE", "/api/sessions/s1")]


@pytest.mark.requirement("app:instructions:kept-first")
async def test_neither_reason_nor_text_is_in_the_file_and_a_full_one_stops_the_decision(
    site: ClientSite, store: SqliteIdentityStore
) -> None:
    action_id, approval_id = await asked(site)
    async with site.client("reviewer", store=store) as reviewer:
        await reviewer.decide(approval_id, decision="denied", reason=REASON)
        assert await reviewer.open_instructions() == []
        assert await store.forget(settled_before_ms=2**60) == 1
    async with site.client(store=store) as aip:
        result = await aip.cancel(action_id, reason=REASON)
        assert result.outcome == "failed"  # the result that came first
    await store.aclose()
    with closing(sqlite3.connect(store.path)) as raw:
        assert REASON not in "\n".join(raw.iterdump())
    other = Path(store.path).with_name("folder.db")
    other.mkdir()
    async with SqliteIdentityStore(other) as unusable, site.client(store=unusable) as aip:
        before = len(site.front.passed)
        with pytest.raises(IdentityStoreFailed):
            await aip.cancel(action_id)
        assert len(site.front.passed) == before


@pytest.mark.requirement("app:instructions:kept-first")
async def test_one_said_elsewhere_is_not_asked_here(site: ClientSite) -> None:
    elsewhere = Instruction(
        server="http://elsewhere", instruction_id="cancel:act_1", kind="cancel", about="act_1", content_hash="0" * 64
    )
    async with AipClient(base_url=site.url) as aip:
        with pytest.raises(ValueError, match="elsewhere"):
            await aip.resume_instruction(elsewhere)
