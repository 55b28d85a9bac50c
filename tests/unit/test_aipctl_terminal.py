"""What a terminal gets to see."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from aip_hermes.cli.aipctl.approval_view import approval_rows, print_approval
from aip_hermes.cli.aipctl.terminal import json_text, safe_text
from tests.support import client_answers as answers

NOW_MS = 1_893_456_060_000
"""2030-01-01T00:01:00Z"""
CONTEXT = answers.approval_context()["approval_context"]

HOSTILE = "\x1b[2J\x9b31m\r\n\u202etxt.exe\u2066\u200b\x7f\ud800"


def _is_plain(text: str) -> bool:
    return not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u2066\u200b\ud800" for char in text)


@pytest.mark.requirement("aipctl:output:neutralised")
def test_foreign_text_becomes_one_plain_line() -> None:
    assert safe_text(HOSTILE) == (r"\x1b[2J\x9b31m\x0d\x0a\u202etxt.exe\u2066\u200b\x7f\ud800")


@pytest.mark.parametrize("text", ["plain", "票据 é 🙂", "a\\b", ""])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


@pytest.mark.requirement("aipctl:output:neutralised", "aipctl:output:json-or-nothing")
def test_json_escapes_what_could_steer_a_terminal_and_means_the_same() -> None:
    value = {"票据 🙂": [HOSTILE, {"n": None, "f": 1.5, "i": 2**70}]}
    text = json_text(value)
    assert json.loads(text) == value
    assert "票据 🙂" in text
    assert all(_is_plain(line) for line in text.split("\n"))


def test_json_has_two_spaces_and_a_blank_after_the_colon() -> None:
    assert json_text({"status": "completed"}) == '{\n  "status": "completed"\n}'


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_an_approval_shows_everything_that_a_decision_binds() -> None:
    rows = dict(approval_rows(answers.approval_record()["approval_record_view"], CONTEXT, now_ms=NOW_MS))
    assert json.loads(rows["exact input"]) == {"session_id": "support-case-1"}
    assert rows["capability"] == answers.DELETE
    assert rows["requester"] == "agent:example:requester  agent"
    assert rows["action"] == f"{answers.ACTION_ID}  pending_approval"
    assert rows["who may decide"] == "whom the tenant's policy names; not the requester"
    assert (rows["risk"], rows["status"]) == ("high", "pending")
    assert rows["expires"] == "2030-01-01T00:16:00Z  (15 min 0 s left)"
    assert (rows["endpoint"], rows["session"]) == ("primary", "support-case-1")
    assert rows["subject"] == "agent:example:requester  agent"
    assert rows["approvals"] == "1 of 2 different principals"
    assert json.loads(rows["target snapshot"]) == {"session_id": "support-case-1", "message_count": 4}
    assert "fork-of-case-1" in rows["touches besides"]
    assert rows["touches besides"].endswith("read at 2030-01-01T00:01:31Z")
    assert rows["decision"] == "approved  human:example:reviewer  human  2030-01-01T00:01:30Z"
    assert (rows["its id"], rows["its reason"]) == ("decision_of_reviewer", "the case is closed")
    assert rows["its evidence"] == "external_ticket  ticket-7"
    assert json.loads(rows["its constraints"])[0]["operator"] == "eq"
    assert rows["reason"] == "Removes a stored transcript"
    assert (rows["policy hash"], rows["input hash"]) == (answers.POLICY_HASH, "8f3c1e5a")
    assert rows["evidence needed"] == "reason, input_snapshot, policy_decision"
    assert "8f3c" in rows["evidence: input_snapshot"]
    assert json.loads(rows["identity"]) == {"tenant": {"id": "tenant-a"}}


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_a_withheld_input_is_said_in_its_place() -> None:
    rows = dict(approval_rows(answers.approval_record(payload=False)["approval_record_view"], {}, now_ms=NOW_MS))
    assert rows["exact input"].startswith("not shown to this token")
    assert rows["touches besides"] == "not available: no reason given"


@pytest.mark.requirement("aipctl:approval:shows-all")
@pytest.mark.parametrize(
    ("expires_at", "now_ms", "shown"),
    [
        ("2030-01-01T00:16:00Z", NOW_MS + 899_000, "2030-01-01T00:16:00Z  (0 min 1 s left)"),
        ("2030-01-01T00:16:00Z", NOW_MS + 900_001, "2030-01-01T00:16:00Z  (its time is up)"),
        (None, NOW_MS, "never"),
        ("some day", NOW_MS, "some day"),
    ],
)
def test_what_is_left_of_the_time_is_said(expires_at: str | None, now_ms: int, shown: str) -> None:
    record = answers.approval_record()["approval_record_view"]
    record["request"].pop("expires_at")
    if expires_at is not None:
        record["request"]["expires_at"] = expires_at
    assert dict(approval_rows(record, CONTEXT, now_ms=now_ms))["expires"] == shown


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_a_decided_record_shows_the_decision() -> None:
    decision = {
        "decision": "denied",
        "approver": answers.REVIEWER,
        "decided_at": "2030-01-01T00:02:00Z",
        "reason": "no",
    }
    record = answers.approval_record("denied", decision=decision)["approval_record_view"]
    rows = dict(approval_rows(record, {"not_available": "ended"}, now_ms=NOW_MS))
    assert rows["decision"] == "denied  human:example:reviewer  human  2030-01-01T00:02:00Z"
    assert rows["its reason"] == "no"


@pytest.mark.requirement("aipctl:approval:shows-all", "aipctl:output:neutralised")
def test_the_table_cuts_nothing_and_passes_no_control_character() -> None:
    record = answers.approval_record()["approval_record_view"]
    record["request"]["reason"] = HOSTILE + " [bold red]markup[/]"
    record["evidence_payload"]["input"] = {"session_id": HOSTILE, "long": "x" * 300}
    hostile = answers.approval_context(
        target_snapshot={HOSTILE: HOSTILE}, touches={"ids": [HOSTILE]}, read_at=HOSTILE, approvals=HOSTILE
    )["approval_context"]
    hostile["decisions"][0] |= {"reason": HOSTILE, "decision_id": HOSTILE, "evidence": [{"kind": HOSTILE}]}
    out = io.StringIO()
    print_approval(record, hostile, now_ms=NOW_MS, file=out, width=60)
    text = out.getvalue()
    assert all(_is_plain(line) for line in text.split("\n"))
    assert text.count("x") >= 300
    assert "[bold red]" in text


@pytest.mark.parametrize("record", [{}, {"request": 1}, {"request": {"evidence": [1], "policy_snapshot": []}}])
def test_a_record_that_is_not_as_expected_is_still_shown(record: dict[str, Any]) -> None:
    for context in ({}, {"decisions": 3, "touches": []}, {"decisions": [1, {"evidence": 2}], "target_snapshot": "x"}):
        rows = dict(approval_rows(record, context, now_ms=NOW_MS))
        assert rows["exact input"].startswith("not shown")
