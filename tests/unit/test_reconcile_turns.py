"""The rule about turns: row first, then the messages, compressions and hidden transcripts included."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.hermes_stub import row_of
from tests.support.reconcile_rules import INTENT_S, LATER, SOON, ReadOnlyEndpoint, after, line

TEXT = "What is verified?"
OLD = [line("user", "Before", at=INTENT_S - 100), line("assistant", "Yes", at=INTENT_S - 99)]
SUMMARY = line("assistant", "[CONTEXT COMPACTION] it was about facts", at=INTENT_S + 1)
USER, REPLY = line("user", TEXT), line("assistant", "masked", at=INTENT_S + 3)
WORKED = {"api_call_count": 1, "input_tokens": 10, "output_tokens": 3}
CONTINUED = "20301231_235959_abcdef"


@pytest.mark.requirement("reconcile:rules:turns", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("lines", "seconds", "outcome", "reason"),
    [
        ([*OLD, USER, REPLY], SOON, "applied", "reply_stored"),
        (
            [*OLD, USER, line("assistant", "", finish="tool_calls"), line("tool", "x"), REPLY],
            SOON,
            "applied",
            "reply_stored",
        ),
        ([*OLD, USER], SOON, "indeterminate", "may_be_under_way"),
        ([*OLD, USER], 899.0, "indeterminate", "may_be_under_way"),
        ([*OLD, USER], LATER, "partially_applied", "reply_missing"),
        ([*OLD, USER, line("assistant", "Half", finish="interrupted")], LATER, "partially_applied", "reply_missing"),
        ([*OLD, USER, line("assistant", "(empty)", finish=None)], LATER, "partially_applied", "reply_missing"),
        ([*OLD, USER, line("user", "Next"), REPLY], LATER, "partially_applied", "reply_missing"),
        ([*OLD, line("user", "Somebody else's"), REPLY], SOON, "indeterminate", "may_be_under_way"),
        ([*OLD, line("user", "Somebody else's"), REPLY], LATER, "not_applied", "message_missing"),
        (
            [line("user", TEXT, at=INTENT_S - 2), REPLY, line("user", "x"), REPLY],
            LATER,
            "not_applied",
            "message_missing",
        ),
        ([SUMMARY, USER, REPLY], SOON, "applied", "reply_stored"),  # compacted in place, not longer than before
        ([SUMMARY], LATER, "indeterminate", "compacted"),
        ([SUMMARY, line("user", TEXT, at=INTENT_S - 60), REPLY], LATER, "indeterminate", "compacted"),
    ],
)
async def test_a_turn_by_its_messages(
    lines: Sequence[Mapping[str, Any]], seconds: float, outcome: str, reason: str
) -> None:
    now = ReadOnlyEndpoint([row_of("s1", message_count=len(lines))], messages={"s1": ("s1", lines)})
    verdict = await after("session_chat", now, seconds=seconds)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.opens == (None if outcome == "indeterminate" else "hermes_agent:primary:s1")


@pytest.mark.requirement("reconcile:rules:turns")
@pytest.mark.parametrize(("seconds", "outcome"), [(SOON, "indeterminate"), (LATER, "not_applied")])
async def test_messages_are_not_read_where_the_row_shows_that_nothing_moved(seconds: float, outcome: str) -> None:
    row = row_of("s1", **WORKED)
    now = ReadOnlyEndpoint([row])
    verdict = await after("session_chat", now, before=row, seconds=seconds)
    assert verdict.outcome == outcome
    assert [path for _, path in now.asked] == ["/api/sessions/s1"]


@pytest.mark.requirement("reconcile:rules:turns")
async def test_an_equal_count_after_work_is_looked_into() -> None:
    lines = [SUMMARY, USER, REPLY]
    now = ReadOnlyEndpoint(
        [row_of("s1", message_count=2, api_call_count=2, input_tokens=20, output_tokens=6)],
        messages={"s1": ("s1", lines)},
    )
    assert (await after("session_chat", now, before=row_of("s1", **WORKED))).outcome == "applied"


@pytest.mark.requirement("reconcile:rules:turns")
@pytest.mark.parametrize(
    ("parent", "outcome", "reason"),
    [("s1", "applied", "reply_stored"), ("s2", "indeterminate", "transcript_hidden")],
)
async def test_a_turn_that_rotated_its_session_is_looked_for_in_the_proven_continuation(
    parent: str, outcome: str, reason: str
) -> None:
    ended = row_of("s1", message_count=3, end_reason="compression", ended_at=INTENT_S + 2)
    lines = [SUMMARY, USER, REPLY]
    now = ReadOnlyEndpoint([ended, row_of(CONTINUED, parent_session_id=parent)], messages={"s1": (CONTINUED, lines)})
    verdict = await after("session_chat", now)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.requirement("reconcile:rules:turns")
async def test_a_source_whose_fork_answers_for_it_shows_nothing() -> None:
    rows = [row_of("s1", message_count=4, end_reason="branched", ended_at=INTENT_S + 9), row_of("f1")]
    now = ReadOnlyEndpoint(rows, messages={"s1": ("f1", [*OLD, USER, REPLY])})
    verdict = await after("session_chat", now)
    assert (verdict.outcome, verdict.reason) == ("indeterminate", "transcript_hidden")


@pytest.mark.requirement("reconcile:rules:turns")
@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("x" * 70_000, "x" * 65_536),
        (
            [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}],
            "See\n[screenshot]",
        ),
    ],
)
async def test_a_message_is_compared_as_hermes_stores_it(message: object, stored: str) -> None:
    now = ReadOnlyEndpoint(
        [row_of("s1", message_count=4)], messages={"s1": ("s1", [*OLD, line("user", stored), REPLY])}
    )
    verdict = await after("session_chat", now, values={"session_id": "s1", "message": message})
    assert verdict.outcome == "applied"


@pytest.mark.requirement("reconcile:rules:turns")
async def test_no_evidence_has_text_of_a_transcript() -> None:
    secret = "Something personal"
    row = row_of("s1", message_count=4, title="A title of somebody")
    now = ReadOnlyEndpoint([row], messages={"s1": ("s1", [*OLD, line("user", secret), line("assistant", secret)])})
    verdict = await after("session_chat", now, values={"session_id": "s1", "message": secret})
    told = json.dumps([[each.read, dict(each.ids), dict(each.facts)] for each in verdict.evidence])
    assert verdict.outcome == "applied"
    assert [text for text in (secret, "A title of somebody", "Before") if text in told + verdict.explanation] == []


@pytest.mark.requirement("reconcile:rules:turns")
@pytest.mark.parametrize(
    ("rows", "reason"), [([], "row_gone"), ([row_of("s1", started_at=INTENT_S + 50)], "another_row")]
)
async def test_a_session_that_is_gone_or_another_one_takes_the_proof_with_it(
    rows: list[dict[str, Any]], reason: str
) -> None:
    verdict = await after("session_chat", ReadOnlyEndpoint(rows))
    assert (verdict.outcome, verdict.reason) == ("indeterminate", reason)


TWICE = [*OLD, USER, REPLY, USER, REPLY]


@pytest.mark.requirement("reconcile:turns:said-again", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("lines", "others", "outcome", "reason"),
    [
        ([*OLD, USER, REPLY], [True], "indeterminate", "several_may_be_it"),
        ([*OLD, USER, REPLY], [False], "indeterminate", "several_may_be_it"),
        ([*OLD, USER], [False], "indeterminate", "several_may_be_it"),
        (TWICE, [True], "applied", "reply_stored"),
        (TWICE, [False], "applied", "reply_stored"),
        (TWICE, [True, False], "indeterminate", "several_may_be_it"),
        ([*OLD, USER, USER, REPLY], [True], "partially_applied", "reply_missing"),
        ([*OLD, line("user", "x"), REPLY], [True], "not_applied", "message_missing"),
    ],
)
async def test_the_row_of_another_turn_that_said_the_same_is_not_taken_for_this_one(
    lines: Sequence[Mapping[str, Any]], others: Sequence[bool], outcome: str, reason: str
) -> None:
    now = ReadOnlyEndpoint([row_of("s1", message_count=len(lines))], messages={"s1": ("s1", lines)})
    verdict = await after("session_chat", now, said_again=others)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
