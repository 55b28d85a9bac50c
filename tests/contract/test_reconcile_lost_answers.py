"""Answers that are really lost, between a real connector and a real endpoint; then the endpoint is asked itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import outcome_of
from tests.support.cutting_relay import CUTS, Cut
from tests.support.embedded_endpoint import GatedModel
from tests.support.reconcile_site import LostAnswers, lost_answers

QUIET_ROWS_S, QUIET_TURNS_S = 60, 900

OPERATIONS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "session_create": ({"body": {"id": "new-1", "title": "New one"}}, QUIET_ROWS_S),
    "session_patch": ({"session_id": "s1", "title": "Renamed", "end_reason": "case_closed"}, QUIET_ROWS_S),
    "session_fork": ({"session_id": "s1", "body": {"id": "f1", "title": "Fork one"}}, QUIET_ROWS_S),
    "session_chat": ({"session_id": "s1", "message": "What is verified?"}, QUIET_TURNS_S),
    "session_chat_stream": ({"session_id": "s1", "message": "What is verified?"}, QUIET_TURNS_S),
    "session_delete": ({"session_id": "s1"}, QUIET_ROWS_S),
}


async def _happened(site: LostAnswers, operation: str) -> bool:
    """Say by the endpoint's own rows whether the operation took effect."""
    client, row = site.hermes.client, site.hermes.session
    match operation:
        case "session_create":
            return (await client.get("/api/sessions/new-1")).status_code == 200
        case "session_fork":
            return (await client.get("/api/sessions/f1")).status_code == 200
        case "session_delete":
            return (await client.get("/api/sessions/s1")).status_code == 404
        case "session_patch":
            return bool((await row("s1"))["title"] == "Renamed")
    return bool((await row("s1"))["message_count"] == 4)


@pytest.mark.requirement("reconcile:verdict:as-the-rows", "reconcile:reads-only", "reconcile:result-stands")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_verdict_is_what_the_rows_say(operation: str, cut: Cut, tmp_path: Path) -> None:
    values, quiet_s = OPERATIONS[operation]
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1", title="First")
        await site.hermes.chat("s1", "An earlier question")
        result = await site.act(operation, values, cut=cut, approve=operation == "session_delete")
        assert len(site.relay.mutations) == (0 if cut == "before_sending" else 1)
        if cut != "after_last_byte":
            assert outcome_of(result.wire()) == "uncertain"
        happened = await _happened(site, operation)
        assert happened == (cut != "before_sending")
        verdict = await site.reconcile(result)
        if not happened:
            assert verdict["verdict"] == "indeterminate"
            assert 0 < verdict["retry_after_ms"] <= quiet_s * 1000
            site.clock.advance(quiet_s)
            verdict = await site.reconcile(result)
        assert verdict["verdict"] == ("applied" if happened else "not_applied")
        assert "retry_after_ms" not in verdict
        again = await site.reconcile(result)
        assert again["verdict"] == verdict["verdict"]


@pytest.mark.requirement("reconcile:quiet:late-effects")
async def test_a_turn_that_goes_on_is_not_judged_before_its_end_and_opens_its_session_then(tmp_path: Path) -> None:
    model = GatedModel()
    async with lost_answers(tmp_path, model=model) as site:
        await site.hermes.create("s1")
        turn = await site.act("session_chat", {"session_id": "s1", "message": "Slow one"}, cut="while_running")
        await model.asked.wait()
        early = await site.reconcile(turn)
        assert (early["verdict"], early["reason"]) == ("indeterminate", "may_be_under_way")
        fork = await site.act("session_fork", {"session_id": "s1", "body": {"id": "f1"}})
        assert fork.error is not None
        assert fork.error.code == "connector.hermes_agent.session_busy"
        site.clock.advance(QUIET_TURNS_S)
        half = await site.reconcile(turn)
        assert (half["verdict"], half["reason"]) == ("partially_applied", "reply_missing")
        model.gate.set()
        await site.relay.ended.wait()
        late = await site.reconcile(turn)
        assert (late["verdict"], late["reason"]) == ("applied", "reply_stored")


@pytest.mark.requirement("reconcile:lock:released")
async def test_a_session_opens_as_soon_as_a_lost_turn_is_seen_to_be_over(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        turn = await site.act("session_chat", {"session_id": "s1", "message": "Lost"}, cut="mid_body")
        closed = await site.act("session_fork", {"session_id": "s1", "body": {"id": "f1"}})
        assert closed.error is not None
        assert closed.error.details is not None
        assert closed.error.details["reason"] == "closed_by_uncertain_turn"
        verdict = await site.reconcile(turn)
        assert (verdict["verdict"], verdict["session_opened"]) == ("applied", True)
        assert (await site.act("session_fork", {"session_id": "s1", "body": {"id": "f2"}})).status == "completed"


@pytest.mark.requirement("reconcile:delete:erases")
async def test_a_delete_that_is_proven_erases_what_was_kept_of_its_session(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        turn = await site.act("session_chat", {"session_id": "s1", "message": "Personal"})
        assert turn.status == "completed"
        delete = await site.act("session_delete", {"session_id": "s1"}, cut="mid_headers", approve=True)
        verdict = await site.reconcile(delete)
        assert (verdict["verdict"], verdict["erased_actions"]) == ("applied", 1)
        with pytest.raises(Exception) as gone:  # noqa: PT011  the code is what counts
            await site.reconcile(turn)
        assert getattr(gone.value, "code", None) == "action.gone"


@pytest.mark.requirement("reconcile:fork:halves")
async def test_a_half_fork_is_partial_at_once_when_the_endpoint_said_that_it_was_done(tmp_path: Path) -> None:
    async with lost_answers(tmp_path, quirks=["fork-not-atomic"]) as site:
        await site.hermes.create("s1")
        await site.hermes.create("other", title="Taken")
        fork = await site.act("session_fork", {"session_id": "s1", "body": {"id": "f1", "title": "Taken"}})
        assert outcome_of(fork.wire()) == "uncertain"
        verdict = await site.reconcile(fork)
        assert (verdict["verdict"], verdict["reason"]) == ("partially_applied", "half_done")
        assert (await site.hermes.session("f1"))["title"] is None


@pytest.mark.requirement("reconcile:fork:halves")
@pytest.mark.parametrize("cut", ["before_headers", "mid_body"])
async def test_a_half_fork_whose_refusal_was_lost_is_partial_after_the_quiet_time(cut: Cut, tmp_path: Path) -> None:
    async with lost_answers(tmp_path, quirks=["fork-not-atomic"]) as site:
        await site.hermes.create("s1")
        await site.hermes.create("other", title="Taken")
        fork = await site.act("session_fork", {"session_id": "s1", "body": {"id": "f1", "title": "Taken"}}, cut=cut)
        assert (await site.reconcile(fork))["verdict"] == "indeterminate"
        site.clock.advance(QUIET_ROWS_S)
        assert (await site.reconcile(fork))["verdict"] == "partially_applied"


@pytest.mark.requirement("reconcile:verdict:stands")
async def test_what_was_proven_stays_proven_when_the_world_moves_on(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        create = await site.act("session_create", {"body": {"id": "new-1"}}, cut="mid_body")
        first = await site.reconcile(create)
        assert first["verdict"] == "applied"
        await site.hermes.client.delete("/api/sessions/new-1")
        site.clock.advance(QUIET_ROWS_S)
        second = await site.reconcile(create)
        assert (second["verdict"], second["number"], second["proven_at"]) == ("applied", 2, first["proven_at"])
        assert second["this_look"]["verdict"] == "not_applied"


@pytest.mark.requirement("reconcile:delete:another-row")
async def test_a_row_that_somebody_made_again_is_not_taken_for_the_one_that_was_to_go(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        delete = await site.act("session_delete", {"session_id": "s1"}, cut="before_headers", approve=True)
        await site.hermes.create("s1")
        site.clock.advance(QUIET_ROWS_S)
        verdict = await site.reconcile(delete)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "another_row")


@pytest.mark.requirement("reconcile:turns:said-again")
async def test_a_turn_that_was_sent_again_is_not_taken_for_the_one_that_never_arrived(tmp_path: Path) -> None:
    said = {"session_id": "s1", "message": "Hello?"}
    async with lost_answers(tmp_path) as site:
        await site.hermes.create("s1")
        lost = await site.act("session_chat", said, cut="before_sending")
        assert (await site.act("session_chat", said)).status == "completed"
        site.clock.advance(QUIET_TURNS_S)
        verdict = await site.reconcile(lost)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "several_may_be_it")
        await site.hermes.chat("s1", "Hello?")  # as if it had arrived late
        assert (await site.reconcile(lost))["verdict"] == "applied"


@pytest.mark.requirement("reconcile:unread:says-why")
async def test_an_endpoint_that_is_down_leaves_the_outcome_open_and_is_said_to_be_down(tmp_path: Path) -> None:
    async with lost_answers(tmp_path) as site:
        create = await site.act("session_create", {"body": {"id": "new-1"}}, cut="mid_body")
        site.relay.stop_listening()
        site.clock.advance(QUIET_ROWS_S)
        verdict = await site.reconcile(create)
        assert (verdict["verdict"], verdict["reason"]) == ("indeterminate", "endpoint_not_read")
        assert (verdict["evidence"][0]["found"], verdict["evidence"][0]["facts"]["reason"]) == ("not_read", "refused")
        assert verdict["retry_after_ms"] == 5_000
