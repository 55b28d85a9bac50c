"""Reading answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aip_hermes.client import AlreadyDecided, HttpFailed, PeerError, Undecodable, decision_on, outcome_of
from aip_hermes.client.http import HttpAnswer
from aip_hermes.client.reply import read_body, read_envelope
from aip_hermes.ids import ApprovalId
from tests.support import client_answers as answers

MESSAGE = "msg_1"


def _answer(body: Any, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status=status, content=body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.requirement("client:reply:outcome")
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (answers.completed({}), "completed"),
        (answers.pending(), "pending"),
        (answers.action_result("requires_human"), "pending"),
        (answers.action_result("cancelled"), "cancelled"),
        (answers.failed("idempotency.required"), "failed"),
        (answers.failed("connector.hermes_agent.not_found"), "connector_failed"),
        (answers.failed("connector.hermes_agent.remote_temporary", uncertain=True), "uncertain"),
        (answers.failed("action.output_schema_invalid", uncertain=True), "uncertain"),
        (answers.failed("sla.timeout_exceeded", status="cancelled", uncertain=True), "uncertain"),
        (answers.action_result("failed"), "failed"),
        (answers.action_result("a status of tomorrow"), "failed"),
    ],
)
def test_every_result_has_one_outcome(body: dict[str, Any], outcome: str) -> None:
    assert outcome_of(body["action_result"]) == outcome


@pytest.mark.requirement("client:reply:outcome")
@pytest.mark.parametrize(
    ("status", "outcome"), [("queued", "pending"), ("accepted", "pending"), ("rejected", "failed")]
)
def test_an_ack_is_pending_unless_it_rejects(status: str, outcome: str) -> None:
    body = answers.envelope({"ack": {"action_id": answers.ACTION_ID, "status": status}})
    assert read_envelope(_answer(body), message_id=MESSAGE).outcome == outcome


@pytest.mark.requirement("client:reply:error-before-status")
@pytest.mark.parametrize("status", [200, 400, 502])
def test_an_error_body_is_an_error_under_any_status(status: int) -> None:
    body = answers.envelope(answers.error_body("resource.not_found", "permanent", details={"near": ["a"]}))
    with pytest.raises(PeerError) as caught:
        read_envelope(_answer(body, status), message_id=MESSAGE)
    error = caught.value
    assert (error.code, error.category, error.retryable, error.uncertain) == (
        "resource.not_found",
        "permanent",
        False,
        False,
    )
    assert error.details == {"near": ["a"]}
    assert error.report == f"AIP peer error resource.not_found: as the test wants (HTTP {status})"


@pytest.mark.requirement("client:reply:error-before-status")
def test_an_error_body_carries_uncertainty_and_delay() -> None:
    error = answers.error_body("storage.unavailable", "temporary", retryable=True, retry_after_ms=1000)
    error["error"]["error"]["details"] = {"uncertain_outcome": True}
    with pytest.raises(PeerError) as caught:
        read_envelope(_answer(answers.envelope(error), 503), message_id=MESSAGE)
    assert (caught.value.retryable, caught.value.retry_after_ms, caught.value.uncertain) == (True, 1000, True)


@pytest.mark.requirement("client:reply:error-before-status")
@pytest.mark.parametrize(
    ("status", "category"), [(401, "auth"), (403, "policy"), (400, "permanent"), (503, "temporary")]
)
def test_the_catalogues_own_error_shape_gets_its_category_from_the_status(status: int, category: str) -> None:
    with pytest.raises(PeerError) as caught:
        read_body(_answer({"error": {"code": "connector_catalog.x"}}, status), expected="capabilities")
    assert (caught.value.code, caught.value.category) == ("connector_catalog.x", category)


@pytest.mark.requirement("client:reply:no-impostor", "client:failure:lost-answer-uncertain")
@pytest.mark.parametrize(
    "content",
    [
        b"<html>log in</html>",
        b"",
        b"[]",
        b'{"body": {}}',
        b'{"body": {"action_result": {}, "ack": {}}}',
        b'{"body": {"action_result": []}}',
        b'{"body": {"action_result": {"status": "completed", "output": NaN}}}',
        b'{"body": {"action_result": {"status": "completed", "output": 1e999}}}',
        b"[" * 100_000,
        json.dumps(answers.envelope(answers.completed({}), in_response_to="msg_other")).encode(),
    ],
)
def test_a_success_without_an_envelope_is_uncertain_for_a_post(content: bytes) -> None:
    with pytest.raises(Undecodable) as caught:
        read_envelope(_answer(content), message_id=MESSAGE)
    assert caught.value.uncertain


@pytest.mark.requirement("client:reply:no-impostor")
@pytest.mark.parametrize("content", [b"<html>", b"{}", b"[]", b'{"action_status": NaN}'])
def test_a_success_without_the_expected_member_is_a_certain_failure_of_a_read(content: bytes) -> None:
    with pytest.raises(Undecodable) as caught:
        read_body(_answer(content), expected="action_status")
    assert not caught.value.uncertain


@pytest.mark.requirement("client:send:no-redirect", "client:failure:lost-answer-uncertain")
@pytest.mark.parametrize(("status", "uncertain"), [(302, False), (404, False), (413, False), (500, True), (502, True)])
def test_an_error_status_without_a_protocol_error_is_uncertain_when_something_may_have_run(
    status: int, uncertain: bool
) -> None:
    with pytest.raises(HttpFailed) as caught:
        read_envelope(_answer(b"<html>", status), message_id=MESSAGE)
    assert (caught.value.http_status, caught.value.uncertain) == (status, uncertain)


def test_a_reply_keeps_unknown_members_and_their_order() -> None:
    body = {**answers.envelope(answers.completed({"b": 1, "a": 2})), "tomorrow": {"x": 1}}
    reply = read_envelope(_answer(body), message_id=MESSAGE)
    assert json.dumps(reply.envelope) == json.dumps(body)
    assert reply.result == body["body"]["action_result"]


@pytest.mark.requirement("client:decision:binds-what-was-read")
def test_a_decision_copies_the_hash_of_the_record() -> None:
    record = answers.approval_record()["approval_record_view"]
    assert decision_on(
        record,
        approval_id=ApprovalId(answers.APPROVAL_ID),
        decision="denied",
        reason="kept for the audit",
        approver={**answers.REVIEWER, "auth_context": {"scopes": ["x"]}},
        decision_id="decision_1",
        decided_at_ms=1_893_456_120_500,
    ) == {
        "approval_id": answers.APPROVAL_ID,
        "decision": "denied",
        "approver": answers.REVIEWER,
        "decided_at": "2030-01-01T00:02:00.5Z",
        "reason": "kept for the audit",
        "decision_id": "decision_1",
        "policy_hash": record["request"]["policy_hash"],
    }


@pytest.mark.requirement("client:decision:binds-what-was-read")
@pytest.mark.parametrize("status", ["approved", "denied", "expired", "revoked"])
def test_a_record_that_is_not_pending_is_not_decided(status: str) -> None:
    with pytest.raises(AlreadyDecided):
        decision_on(
            answers.approval_record(status)["approval_record_view"],
            approval_id=ApprovalId(answers.APPROVAL_ID),
            decision="approved",
            reason="x",
            approver=answers.REVIEWER,
            decision_id="decision_1",
            decided_at_ms=0,
        )


_RESULT = '{"body": {"action_result": {"action_id": "act_1", "status": "completed", "output": %s}}}'


@pytest.mark.requirement("client:reply:one-meaning")
@pytest.mark.parametrize(
    "content",
    [
        (_RESULT % '{}, "status": "failed"').encode(),
        (_RESULT % '{"a": 1, "\\u0061": 2}').encode(),
        (_RESULT % "NaN").encode(),
        (_RESULT % "1e999").encode(),
        (_RESULT % "{}").encode("utf-16"),
        (_RESULT % "{}").encode("utf-8-sig"),
        (_RESULT % '"\xe9"').encode("latin-1"),
        (_RESULT % ("[" * 300 + "]" * 300)).encode(),
        (_RESULT % ("[" * 900 + "]" * 900)).encode(),
        (_RESULT % ("[" * 100_000 + "]" * 100_000)).encode(),
        (_RESULT % "{}").replace('"completed"', '{"a": 1}').encode(),
    ],
    ids=[
        "status-twice",
        "member-twice",
        "nan",
        "infinity",
        "utf-16",
        "bom",
        "latin-1",
        "deep",
        "deeper",
        "deepest",
        "no-status",
    ],
)
def test_an_answer_with_two_meanings_or_none_is_uncertain(content: bytes) -> None:
    with pytest.raises(Undecodable) as caught:
        read_envelope(_answer(content), message_id=MESSAGE)
    assert caught.value.uncertain


@pytest.mark.requirement("client:reply:one-meaning")
@pytest.mark.parametrize("output", ['"\\ud800"', "[" * 200 + "]" * 200, "9" * 300, "1.0"])
def test_what_an_endpoint_may_have_stored_is_read(output: str) -> None:
    reply = read_envelope(_answer((_RESULT % output).encode()), message_id=MESSAGE)
    assert reply.body["output"] == json.loads(output)
