"""An endpoint whose clock is minutes behind, or that does not show all of a transcript: absence by time is no proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.hermes_stub import row_of
from tests.support.reconcile_rules import INTENT_S, LATER, ReadOnlyEndpoint, after, line

TEXT = "What is verified?"
BEHIND = INTENT_S - 300
SUMMARY = line("assistant", "[CONTEXT COMPACTION] it was about facts", at=BEHIND)
TURN = [line("user", TEXT, at=BEHIND + 1), line("assistant", "masked", at=BEHIND + 2)]
CONTINUED = "20301231_235959_abcdef"


@pytest.mark.requirement("reconcile:rules:clocks")
@pytest.mark.parametrize("lines", [[SUMMARY, *TURN], [SUMMARY, line("user", "Another", at=BEHIND + 1), TURN[1]]])
async def test_after_a_compaction_in_place_nothing_is_missing_by_a_slow_clock(
    lines: Sequence[Mapping[str, Any]],
) -> None:
    now = ReadOnlyEndpoint([row_of("s1", message_count=len(lines))], messages={"s1": ("s1", lines)})
    verdict = await after("session_chat", now, before=row_of("s1", message_count=2))
    assert (verdict.outcome, verdict.reason, verdict.opens) == ("indeterminate", "compacted", None)


@pytest.mark.requirement("reconcile:rules:clocks")
async def test_in_a_continuation_nothing_is_missing_by_a_slow_clock() -> None:
    ended = row_of("s1", message_count=3, end_reason="compression", ended_at=BEHIND)
    rows = [ended, row_of(CONTINUED, parent_session_id="s1")]
    verdict = await after("session_chat", ReadOnlyEndpoint(rows, messages={"s1": (CONTINUED, [SUMMARY, *TURN])}))
    assert (verdict.outcome, verdict.reason) == ("indeterminate", "compacted")


@pytest.mark.requirement("reconcile:rules:clocks")
async def test_a_summary_of_long_ago_leaves_the_places_as_they_were() -> None:
    old = line("assistant", "[CONTEXT COMPACTION] long ago", at=INTENT_S - 86_400)
    lines = [old, line("user", "Another"), line("assistant", "Yes")]
    now = ReadOnlyEndpoint([row_of("s1", message_count=3)], messages={"s1": ("s1", lines)})
    verdict = await after("session_chat", now, before=row_of("s1", message_count=1), seconds=LATER)
    assert (verdict.outcome, verdict.reason) == ("not_applied", "message_missing")


@pytest.mark.requirement("reconcile:rules:clocks")
@pytest.mark.parametrize("shown", [2, 3])
async def test_of_a_transcript_that_is_not_shown_in_full_nothing_is_missing(shown: int) -> None:
    lines = [line("user", "Before", at=INTENT_S - 9), line("assistant", "Yes", at=INTENT_S - 8), line("user", "Next")]
    now = ReadOnlyEndpoint([row_of("s1", message_count=6)], messages={"s1": ("s1", lines[:shown])})
    verdict = await after("session_chat", now)
    assert (verdict.outcome, verdict.reason) == ("indeterminate", "compacted")


@pytest.mark.requirement("reconcile:rivals")
@pytest.mark.parametrize(("others", "outcome"), [([], "applied"), ([True], "indeterminate")])
async def test_another_turn_may_have_said_the_same_in_the_continuation(others: Sequence[bool], outcome: str) -> None:
    fresh = [line("user", TEXT), line("assistant", "masked", at=INTENT_S + 2)]
    ended = row_of("s1", message_count=3, end_reason="compression", ended_at=INTENT_S + 1)
    rows = [ended, row_of(CONTINUED, parent_session_id="s1")]
    now = ReadOnlyEndpoint(rows, messages={"s1": (CONTINUED, [SUMMARY, *fresh])})
    verdict = await after("session_chat", now, said_again=others, said_in=CONTINUED)
    assert verdict.outcome == outcome


@pytest.mark.requirement("reconcile:rules:rows")
async def test_a_child_under_the_id_of_a_create_is_somebody_elses() -> None:
    now = ReadOnlyEndpoint([row_of("new-1", started_at=INTENT_S + 1, parent_session_id="s1")])
    verdict = await after("session_create", now, values={"body": {"id": "new-1"}})
    assert (verdict.outcome, verdict.reason) == ("indeterminate", "another_row")
