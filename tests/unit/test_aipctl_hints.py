"""Sentences for a person."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.cli.aipctl import hints
from aip_hermes.client import outcome_of
from tests.support import client_answers as answers

URL = "http://127.0.0.1:8080"


def _about(body: dict[str, Any], sent_input: Any = None) -> str:
    result = body["action_result"]
    lines = hints.about_result(
        result, url=URL, action_id=answers.ACTION_ID, sent_input=sent_input, outcome=outcome_of(result)
    )
    return "\n".join(lines)


@pytest.mark.requirement("aipctl:hint:pending")
def test_a_pending_answer_says_who_until_when_and_what_next() -> None:
    text = _about(answers.pending())
    assert f"action {answers.ACTION_ID} waits for a decision on {answers.APPROVAL_ID}" in text
    assert "who may decide: whom the tenant's policy names; not the requester" in text
    assert "expires: 2030-01-01T00:16:00Z" in text
    assert f"aipctl approval show {URL} {answers.APPROVAL_ID}" in text
    assert f"aipctl approval approve {URL} {answers.APPROVAL_ID} --reason" in text


@pytest.mark.requirement("aipctl:hint:pending")
@pytest.mark.parametrize(
    ("request_part", "text"),
    [
        ({"approver_selector": {"type": "role", "name": "reviewer"}}, "role reviewer; not the requester"),
        ({"approver_selector": {"type": "principal", "id": "human:bob"}}, "principal human:bob; not the requester"),
        (
            {
                "approver_selector": {"type": "tenant_policy"},
                "policy_snapshot": {
                    "rule": {
                        "operator": "all",
                        "rules": [
                            {"operator": "group", "name": "operations"},
                            {
                                "operator": "quorum",
                                "required": 1,
                                "rules": [{"operator": "principal", "id": "human:bob"}],
                            },
                        ],
                    },
                    "minimum_distinct_principals": 2,
                    "separation_of_duties": {"allow_self_approval": True},
                },
            },
            "(group operations and 1 of (principal human:bob)); 2 different principals",
        ),
        ({}, "unknown; not the requester"),
    ],
)
def test_approvers_are_described(request_part: dict[str, Any], text: str) -> None:
    assert hints.who_may_decide(request_part) == text


@pytest.mark.requirement("aipctl:hint:failure")
def test_an_unknown_outcome_says_look_first() -> None:
    text = _about(answers.failed("connector.hermes_agent.remote_temporary", uncertain=True))
    assert "the outcome is unknown. connector.hermes_agent.remote_temporary" in text
    assert f"aipctl action status {URL} {answers.ACTION_ID}" in text
    assert "do not send it again" in text


@pytest.mark.requirement("aipctl:hint:failure")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (answers.failed("idempotency.required"), "--idempotency-key KEY"),
        (answers.failed("connector.hermes_agent.authentication", category="auth"), "not your token"),
        (answers.failed("connector.hermes_agent.missing_credential", category="auth"), "the endpoint's key_file"),
        (answers.failed("connector.hermes_agent.tenant_mismatch", category="auth"), "use the token of a principal"),
        (answers.failed("connector.hermes_agent.busy", retryable=True), "same Action ID and the same key"),
        (
            answers.failed("action.input_schema_invalid", details={"violations": ["/body/titel: unknown", "/x: no"]}),
            "    /body/titel: unknown\n    /x: no",
        ),
    ],
)
def test_a_failure_says_what_to_do(body: dict[str, Any], expected: str) -> None:
    text = _about(body)
    assert f"action {answers.ACTION_ID} failed. {body['action_result']['error']['code']}" in text
    assert expected in text


@pytest.mark.requirement("aipctl:hint:failure")
def test_listed_ids_are_shown_up_to_sixteen() -> None:
    lines = hints.about_details({"did_you_mean": [f"cap:{n}" for n in range(20)]})
    assert lines[0] == "  did you mean:"
    assert lines[1:17] == [f"    cap:{n}" for n in range(16)]
    assert lines[17:] == ["    … and 4 more"]


@pytest.mark.requirement("aipctl:hint:failure")
@pytest.mark.parametrize(
    ("details", "lines"),
    [
        ({"code": "approval.requester_must_differ"}, ["  rule: approval.requester_must_differ"]),
        (
            {"authenticated": {"id": "human:a", "kind": "human"}},
            ['  authenticated: {"id": "human:a", "kind": "human"}'],
        ),
        ({"remote_status": 409, "provider_request_id": None, "uncertain_outcome": True}, ["  remote status: 409"]),
        ({"provider": {"message": "x" * 500}}, ['  provider: {"message": "' + "x" * 227 + "…"]),
        ({"empty": []}, ["  empty: []"]),
        ({}, []),
    ],
)
def test_details_are_shown_bounded(details: dict[str, Any], lines: list[str]) -> None:
    assert hints.about_details(details) == lines


def _patched(end_reason: Any, title: str = "t") -> dict[str, Any]:
    return answers.completed({"object": "hermes.session", "session": {"end_reason": end_reason, "title": title}})


def _ours(**members: Any) -> dict[str, Any]:
    return answers.completed({"_aip": members})


@pytest.mark.requirement("aipctl:hint:success-that-is-none")
@pytest.mark.parametrize(
    ("body", "sent_input", "expected"),
    [
        (_patched("one"), {"session_id": "s", "body": {"end_reason": "two"}}, "unchanged: already closed as one"),
        (_patched("one"), {"session_id": "s", "end_reason": "two"}, "unchanged: already closed as one"),
        (_patched(None, "old"), {"body": {"title": "new"}}, "the title is not as asked, it reads: old"),
        (
            answers.completed({"message": {"role": "assistant", "content": " \n"}}),
            {"message": "hi"},
            "the assistant's answer is empty",
        ),
        (answers.completed({"message": {"role": "assistant", "content": None}}), {}, "the assistant's answer is empty"),
        (_ours(turn={"persisted": "no"}), {}, "stored nothing of this turn"),
        (_ours(turn={"persisted": "user_only"}), {}, "stored only the user's message"),
        (
            _ours(session={"requested": "a", "effective": "b", "reason": "compression"}),
            {},
            "session a was answered by session b (reason: compression)",
        ),
        (
            answers.completed({"idempotent_replay": True, "_aip": {"replay": {"original_action_id": "act_first"}}}),
            {},
            "the stored result of action act_first; nothing was sent",
        ),
        (
            answers.completed({"idempotent_replay": True, "_aip": {"replay": {"input_differs": True}}}),
            {},
            "the input differs",
        ),
    ],
)
def test_a_success_that_is_none_is_said(body: dict[str, Any], sent_input: Any, expected: str) -> None:
    assert expected in _about(body, sent_input)


@pytest.mark.requirement("aipctl:hint:success-that-is-none")
@pytest.mark.parametrize(
    ("body", "sent_input"),
    [
        (_patched("one", "new"), {"body": {"end_reason": "one", "title": "new"}}),
        (_patched(None), {"body": {}}),
        (_patched("one"), None),
        (_ours(turn={"persisted": "yes"}, session={"requested": "a", "effective": "a", "reason": "none"}), {}),
        (answers.completed({"message": {"role": "assistant", "content": "hello"}}), {}),
        (answers.completed([1]), [2]),
        (answers.completed(None), "x"),
    ],
)
def test_a_plain_success_is_silent(body: dict[str, Any], sent_input: Any) -> None:
    assert _about(body, sent_input) == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"state": "unknown"}, ["the server never received action act_1, or it belongs to another tenant"]),
        (
            {"state": "pending_approval", "approval_id": "appr_1"},
            [f"next, with a reviewer's token: aipctl approval show {URL} appr_1"],
        ),
        ({"state": "completed"}, [f"next: aipctl action result {URL} act_1"]),
        ({"state": "completed", "result": {}}, []),
        ({"state": "running"}, ["action act_1 is running", *hints.while_it_runs(URL, "act_1")]),
        (None, []),
    ],
)
def test_a_state_says_what_to_do_next(status: Any, expected: list[str]) -> None:
    assert hints.about_status(status, url=URL, action_id="act_1") == expected
