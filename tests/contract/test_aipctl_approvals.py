"""Showing and deciding approvals: what is read first, what is sent, what a reviewer sees."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from aip_hermes import wire
from aip_hermes.cli.aipctl.decision_hints import STEPS
from tests.support import client_answers as answers
from tests.support.client_command import answering_stub, invoke_aipctl
from tests.support.client_stub_server import Answer, Request, StubServer, running_stub

ACTION = answers.ACTION_ID
APPROVAL = answers.APPROVAL_ID


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with answering_stub() as stub:
        yield stub


@pytest.mark.requirement("client:decision:binds-what-was-read", "client:decision:approver-of-token")
@pytest.mark.parametrize(("command", "decision"), [("approve", "approved"), ("deny", "denied")])
def test_approve_and_deny_read_first_and_send_one_decision(stub: StubServer, command: str, decision: str) -> None:
    done = invoke_aipctl("approval", command, stub.url, APPROVAL, "--reason", "case closed")
    assert [request.path for request in stub.requests] == [
        f"/aip/v1/approvals/{APPROVAL}",
        "/aip/v1/me",
        "/aip/v1/messages",
    ]
    [post] = stub.posts
    sent = post.json["body"]["approval_decision"]
    assert wire.envelope_violations(post.json) == []
    assert sent == {
        "approval_id": APPROVAL,
        "decision": decision,
        "approver": answers.REVIEWER,
        "decided_at": sent["decided_at"],
        "reason": "case closed",
        "decision_id": sent["decision_id"],
        "policy_hash": answers.POLICY_HASH,
    }
    assert done.exit_code == 0
    assert json.loads(done.stdout)["body"] == answers.events()
    assert done.stderr.startswith(f"decision id: {sent['decision_id']}\n")
    assert f"{answers.DELETE} for agent:example:requester" in done.stderr
    assert f"next: aipctl action result {stub.url} {ACTION}" in done.stderr


@pytest.mark.requirement("client:decision:binds-what-was-read", "client:decision:approver-of-token")
@pytest.mark.parametrize(("status", "named"), [("approved", None), ("pending", "human:somebody:else")])
def test_a_decided_record_or_a_foreign_token_sends_no_decision(status: str, named: str | None) -> None:
    def answer(request: Request) -> Answer:
        if "/approvals/" in request.path:
            return Answer(body=answers.approval_record(status))
        return answers.read_routes(request)

    with running_stub(answer) as stub:
        options = ["--native-principal-id", named] if named else []
        done = invoke_aipctl("approval", "approve", stub.url, APPROVAL, "--reason", "x", *options)
        assert (done.exit_code, done.stdout, stub.posts) == (1, "", [])
        assert "nothing was sent" in done.stderr
        if named is None:
            assert f"next: aipctl approval show {stub.url} {APPROVAL}" in done.stderr


def test_decide_sends_the_decision_as_it_is(stub: StubServer) -> None:
    decision = {
        "approval_id": APPROVAL,
        "decision": "denied",
        "approver": answers.REVIEWER,
        "decided_at": "2030-01-01T00:02:00.123456789Z",
        "reason": "no",
    }
    done = invoke_aipctl(
        "approval", "decide", stub.url, "-", "--native-principal-id", "human:r", stdin=json.dumps(decision).encode()
    )
    assert done.exit_code == 0
    assert stub.requests[0].json["body"] == {"approval_decision": decision}
    assert stub.requests[0].json["from"] == {"id": "human:r", "kind": "human"}


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_show_says_that_the_exact_input_is_withheld() -> None:
    def answer(request: Request) -> Answer:
        if "include_evidence_payload" in request.target:
            return answers.refused("auth.not_authorized", "auth", 401)
        return Answer(body=answers.approval_record(payload=False))

    with running_stub(answer) as stub:
        done = invoke_aipctl("approval", "show", stub.url, APPROVAL)
    assert done.exit_code == 0
    assert "evidence_payload" not in json.loads(done.stdout)["approval_record_view"]
    assert "the exact input is not shown" in done.stderr


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_show_as_a_table_holds_the_exact_input(stub: StubServer) -> None:
    done = invoke_aipctl("approval", "show", stub.url, APPROVAL, "--output", "table")
    assert done.exit_code == 0
    assert "support-case-1" in done.stdout
    assert answers.POLICY_HASH[:20] in done.stdout
    assert "fork-of-case-1" in done.stdout
    assert "1 of 2 different principals" in done.stdout


@pytest.mark.requirement("aipctl:approval:shows-all")
def test_show_prints_the_context_too_and_goes_on_where_a_server_has_none(stub: StubServer) -> None:
    shown = json.loads(invoke_aipctl("approval", "show", stub.url, APPROVAL).stdout)
    assert shown["approval_context"] == answers.approval_context()["approval_context"]

    def elsewhere(request: Request) -> Answer:
        if request.path.endswith("/context"):
            return Answer(status=404, body={})
        return answers.read_routes(request)

    with running_stub(elsewhere) as other:
        done = invoke_aipctl("approval", "show", other.url, APPROVAL)
    assert done.exit_code == 0
    assert "gave no context" in json.loads(done.stdout)["approval_context"]["not_available"]


@pytest.mark.requirement("aipctl:approval:revoke")
def test_revoke_names_the_approving_decision_that_it_takes_back(stub: StubServer) -> None:
    done = invoke_aipctl("approval", "revoke", stub.url, APPROVAL, "--reason", "not that one")
    [post] = stub.posts
    sent = post.json["body"]["approval_decision"]
    assert wire.envelope_violations(post.json) == []
    assert (sent["decision"], sent["target_decision_id"], sent["reason"], sent["policy_hash"]) == (
        "revoked",
        "decision_of_reviewer",
        "not that one",
        answers.POLICY_HASH,
    )
    assert done.exit_code == 0
    assert "revoked decision_of_reviewer" in done.stderr


def _given(number: int, by: str) -> dict[str, str | dict[str, str]]:
    return {"decision": "approved", "decision_id": f"d{number}", "approver": {"id": by, "kind": "human"}}


@pytest.mark.requirement("aipctl:approval:revoke")
@pytest.mark.parametrize(
    ("status", "decisions", "options", "target"),
    [
        ("pending", [], [], None),
        ("denied", [_given(1, "human:a")], [], None),
        ("pending", [_given(1, "human:a"), _given(2, "human:b")], [], None),
        ("pending", [_given(1, "human:a"), _given(2, "human:b")], ["--target", "d2"], "d2"),
        ("pending", [_given(1, "human:a"), _given(2, "human:example:reviewer")], [], "d2"),
        ("approved", [_given(1, "human:a")], [], "d1"),
    ],
)
def test_revoke_guesses_nothing(
    status: str, decisions: list[dict[str, object]], options: list[str], target: str | None
) -> None:
    def answer(request: Request) -> Answer:
        if request.path.endswith("/context"):
            return Answer(body=answers.approval_context(decisions=decisions))
        if "/approvals/" in request.path:
            return Answer(body=answers.approval_record(status))
        if request.method == "GET":
            return answers.read_routes(request)
        return answers.reply_with(answers.events(), request)

    with running_stub(answer) as stub:
        done = invoke_aipctl("approval", "revoke", stub.url, APPROVAL, "--reason", "x", *options)
        if target is None:
            assert (done.exit_code, stub.posts) == (1, [])
        else:
            [post] = stub.posts
            assert post.json["body"]["approval_decision"]["target_decision_id"] == target


@pytest.mark.requirement("aipctl:approval:counted")
def test_an_approval_that_does_not_suffice_is_said() -> None:
    told = {
        "id": "evt_1",
        "kind": "aip.approval.vote_recorded",
        "occurred_at": "2030-01-01T00:02:00Z",
        "data": {"approvals": 1, "approvals_needed": 2},
    }

    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return answers.read_routes(request)
        return answers.reply_with({"event_stream": {"events": [told]}}, request)

    with running_stub(answer) as stub:
        done = invoke_aipctl("approval", "approve", stub.url, APPROVAL, "--reason", "x")
    assert done.exit_code == 0
    assert "counted: 1 of 2 approvals" in done.stderr


@pytest.mark.requirement("aipctl:approval:list-request")
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ([], {"limit": 100}),
        (
            ["--limit", "5", "--cursor", "c", "--kind", "a", "--kind", "b"],
            {"limit": 5, "cursor": "c", "kinds": ["a", "b"]},
        ),
    ],
)
def test_list_asks_for_the_events_of_approvals(stub: StubServer, options: list[str], sent: dict[str, object]) -> None:
    done = invoke_aipctl("approval", "list", stub.url, *options)
    [post] = stub.posts
    asked = post.json["body"]["event_stream_request"]
    assert wire.envelope_violations(post.json) == []
    assert done.exit_code == 0
    assert {name: asked[name] for name in sent} == sent
    if "kinds" not in sent:
        assert asked["kinds"][0] == "aip.approval.requested"
        assert len(asked["kinds"]) == 7


@pytest.mark.requirement("aipctl:approval:list-request")
def test_request_sends_an_approval_request_as_it_is(stub: StubServer) -> None:
    request = answers.approval_request()
    done = invoke_aipctl("approval", "request", stub.url, "-", stdin=json.dumps(request).encode())
    assert done.exit_code == 0
    assert stub.posts[0].json["body"] == {"approval_request": request}
    wrong = invoke_aipctl("approval", "request", stub.url, "[]")
    assert (wrong.exit_code, len(stub.posts)) == (2, 1)


@pytest.mark.requirement("aipctl:approval:refusal-step")
@pytest.mark.parametrize("rule", STEPS)
def test_a_refused_decision_says_the_step_for_its_rule(rule: str) -> None:
    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return answers.read_routes(request)
        return answers.refused("auth.not_authorized", "auth", 401, details={"code": rule})

    with running_stub(answer) as stub:
        done = invoke_aipctl("approval", "approve", stub.url, APPROVAL, "--reason", "x")
        step = STEPS[rule].format(url=stub.url)
    assert done.exit_code == 1
    assert f"rule: {rule}" in done.stderr
    assert f"next: {step}" in done.stderr
