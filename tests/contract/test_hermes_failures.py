"""Every published operation against every way in which an endpoint can fail, over a real connection."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from tests.support.hermes_calls import INPUTS, FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import KEY, Arrived, Reply, StubEndpoint, reply_error, reply_json, row_of
from tests.support.skipping_loop import run_skipping

_PLACE = re.compile(r"\{([a-z_]+)\}")
_CODE = "connector.hermes_agent."
_AGAIN = "send the same action again"
"""Advice that is only right where the failure does not bind the Action ID: else the stored failure answers."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """reply: what the endpoint does. code: of the failure. uncertain: for a mutation. free: whether a mutation's key is
    free again. again: whether a read is worth another send."""

    reply: Reply
    code: str
    uncertain: bool
    free: bool = False
    again: bool = False
    status: int | None = None

    def code_of(self, operation: Operation) -> str:
        """A success that is no answer is no stream either: that is seen before its body is read. Who follows a run says
        whether that was started."""
        if operation.follow != "none":
            rejected = not self.uncertain and self.code == "remote_rejected"
            return (
                "operator_outcome_unknown" if self.uncertain else "operator_start_rejected" if rejected else self.code
            )
        unread = operation.stream != "none" and self.status == 200
        return "not_a_stream" if unread else self.code

    def sends_of(self, operation: Operation) -> int:
        """What reading consumes is read once."""
        return 3 if self.again and operation.stream == "none" else 1

    def reads_of(self, operation: Operation) -> int:
        """Reads beside a mutation: what an approval shows, what is looked at before the one request, and, where
        something may have begun, one row after a turn and both sides of a fork."""
        shown = operation.approval is not None and operation.target is not None
        before = (
            operation.prepare != "none" and "session_id" in INPUTS[operation.name]
        ) or operation.target is not None
        after = {"none": 0, "row": int(self.uncertain), "fork": 0 if self.free else 2}[operation.confirm]
        return shown + before + after


def _text(status: int, body: str, kind: str = "text/plain") -> Reply:
    return Reply(status=status, body=body.encode(), headers={"content-type": kind})


_PAGE = "<html><head><title>Bad gateway</title></head><body>nginx</body></html>"

CASES: Mapping[str, Case] = {
    "401": Case(
        reply=reply_error(401, "invalid_api_key"), code="authentication", uncertain=False, free=True, status=401
    ),
    "403": Case(reply=Reply(status=403), code="authentication", uncertain=False, free=True, status=403),
    "404": Case(reply=reply_error(404, "session_not_found"), code="remote_rejected", uncertain=False, status=404),
    "409": Case(reply=reply_error(409, "session_exists"), code="remote_rejected", uncertain=False, status=409),
    "413": Case(reply=reply_error(413, "body_too_large"), code="remote_rejected", uncertain=False, status=413),
    "404 HTML": Case(reply=_text(404, _PAGE, "text/html"), code="remote_rejected", uncertain=True, status=404),
    "429": Case(
        reply=reply_error(429, "rate_limit_exceeded", retry_after="1"),
        code="remote_temporary",
        uncertain=False,
        free=True,
        again=True,
        status=429,
    ),
    "500 text": Case(
        reply=_text(500, "500 Internal Server Error\n\nServer got itself in trouble"),
        code="remote_temporary",
        uncertain=True,
        again=True,
        status=500,
    ),
    "502 HTML": Case(
        reply=_text(502, _PAGE, "text/html"), code="remote_temporary", uncertain=True, again=True, status=502
    ),
    "503 without code": Case(
        reply=_text(503, "busy"), code="remote_temporary", uncertain=True, again=True, status=503
    ),
    "503 draining": Case(
        reply=reply_error(503, "gateway_draining", retry_after="1"),
        code="remote_temporary",
        uncertain=False,
        free=True,
        again=True,
        status=503,
    ),
    "503 no store": Case(
        reply=reply_error(503, "session_db_unavailable"),
        code="remote_temporary",
        uncertain=False,
        free=True,
        again=True,
        status=503,
    ),
    "504": Case(reply=_text(504, "gateway timeout"), code="remote_temporary", uncertain=True, again=True, status=504),
    "redirect": Case(
        reply=Reply(status=307, headers={"location": "/elsewhere"}), code="remote_rejected", uncertain=False, status=307
    ),
    "reset before headers": Case(reply=Reply(behaviour="reset"), code="transport", uncertain=True, again=True),
    "reset in the body": Case(
        reply=Reply(body=b'{"object": "hermes.session"}', behaviour="cut"),
        code="transport",
        uncertain=True,
        again=True,
        status=200,
    ),
    "invalid JSON": Case(reply=_text(200, '{"object": '), code="invalid_response", uncertain=True, status=200),
    "HTML success": Case(reply=_text(200, _PAGE, "text/html"), code="invalid_response", uncertain=True, status=200),
    "empty success": Case(reply=Reply(status=200), code="invalid_response", uncertain=True, status=200),
    "list success": Case(reply=_text(200, "[]"), code="invalid_response", uncertain=True, status=200),
    "no answer in time": Case(reply=Reply(behaviour="stall"), code="transport", uncertain=True, again=True),
}  # fmt: skip

_OPERATIONS = load_operations()


def _fails(stub: StubEndpoint, operation: Operation, reply: Reply) -> None:
    stub.on(operation.method, _PLACE.sub(lambda place: INPUTS[operation.name][place[1]], operation.path), reply)


@pytest.mark.requirement("hermes:errors:again-only-where-free")
@pytest.mark.parametrize("asked", [False, True], ids=["before it was asked", "during the exchange"])
@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=list(_OPERATIONS))
def test_a_missed_deadline_does_not_advise_what_would_answer_the_stored_failure(
    operation: Operation, asked: bool
) -> None:
    async def late() -> Answer | ActionFailed:
        async with StubEndpoint([row_of("s1")]) as stub:
            _fails(stub, operation, Reply(behaviour="stall"))
            clock = FakeClock()
            call = call_of(operation.name, deadline_ms=clock.now_ms() + (3_000 if asked else -1))
            async with connector_of(endpoint_of(stub.base_url), clock=clock) as connector:
                return await attempt(handler_of(connector, operation.name), call)

    outcome = run_skipping(late())
    assert isinstance(outcome, ActionFailed)
    unknown = operation.follow != "none" and asked
    assert outcome.code == _CODE + ("operator_outcome_unknown" if unknown else "deadline_exceeded")
    assert (outcome.frees_key, _AGAIN in outcome.message) == (not outcome.uncertain, not outcome.uncertain)
    assert outcome.uncertain or "new Action ID" in outcome.message


@pytest.mark.requirement(
    "hermes:send:one-mutating-send",
    "hermes:send:reads-of-a-mutation-once",
    "hermes:errors:again-only-where-free",
    "hermes:send:safe-reads-repeat",
    "hermes:answer:certain-is-proven",
    "hermes:errors:name-the-cause",
)
@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=list(_OPERATIONS))
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_failure_is_sent_once_and_called_what_it_proves(operation: Operation, case: Case) -> None:
    async def failing() -> tuple[Answer | ActionFailed, StubEndpoint]:
        async with StubEndpoint([row_of("s1")]) as stub:
            _fails(stub, operation, case.reply)
            connecting = connector_of(
                endpoint_of(stub.base_url), clock=FakeClock(), operations={operation.name: operation}
            )
            async with connecting as connector:
                handler, call = handler_of(connector, operation.name), call_of(operation.name)
                shown = None if operation.approval is None else await handler.describe(call)
                return await attempt(handler, call, described=None if shown is None else shown.snapshot), stub

    outcome, stub = run_skipping(failing())
    assert isinstance(outcome, ActionFailed)
    assert outcome.code == _CODE + case.code_of(operation)
    assert outcome.details["remote_status"] == case.status
    assert outcome.details["uncertain_outcome"] is outcome.uncertain
    _names_the_cause(operation, case, outcome, stub.port)
    if operation.read_only:
        assert stub.mutations == []
        assert not outcome.uncertain
        assert outcome.retryable is (case.again and case.code_of(operation) == case.code)
        assert len(stub.reads) == case.sends_of(operation)
    else:
        assert len(stub.mutations) == 1
        assert len(stub.reads) == case.reads_of(operation)
        assert outcome.uncertain is case.uncertain
        assert outcome.frees_key is case.free
        assert not (outcome.uncertain and outcome.retryable)


def _names_the_cause(operation: Operation, case: Case, outcome: ActionFailed, port: int) -> None:
    assert "primary" in outcome.message
    assert all(f"`{INPUTS[operation.name][name]}`" in outcome.message for name in _PLACE.findall(operation.path))
    assert all(outcome.details[name] == INPUTS[operation.name][name] for name in _PLACE.findall(operation.path))
    assert "session_id" not in INPUTS[operation.name] or "`s1`" in outcome.message
    assert ("endpoint key" in outcome.message) is (case.code == "authentication")
    assert str(port) not in outcome.message
    assert KEY not in outcome.message + repr(outcome.details)
    assert len(outcome.message) < 600
    assert outcome.frees_key or _AGAIN not in outcome.message


@pytest.mark.requirement("hermes:answer:certain-is-proven")
@pytest.mark.parametrize("operation", _OPERATIONS.values(), ids=list(_OPERATIONS))
async def test_a_refused_connection_is_certain_and_the_same_submission_may_be_sent_again(operation: Operation) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        endpoint = endpoint_of(f"http://127.0.0.1:{unused.getsockname()[1]}/")
        async with connector_of(endpoint, operations={operation.name: operation}) as connector:
            outcome = await attempt(handler_of(connector, operation.name), call_of(operation.name))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain, outcome.retryable) == (_CODE + "transport", False, True)
    assert outcome.details["reason"] == "refused"
    assert outcome.details["sent"] is False


@pytest.mark.requirement("hermes:answer:certain-is-proven")
async def test_a_host_name_without_an_address_is_certain() -> None:
    async with connector_of(endpoint_of("http://no-such-host.invalid/")) as connector:
        outcome = await attempt(handler_of(connector, "session_create"), call_of("session_create"))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == (_CODE + "transport", False)
    assert outcome.details["reason"] in ("unresolved", "unreachable")


@pytest.mark.requirement("hermes:answer:fork-is-not-atomic")
@pytest.mark.parametrize(("code", "uncertain"), [("invalid_title", True), (None, True), ("invalid_session_id", False)])
async def test_a_fork_400_is_certain_only_before_its_first_step(code: str | None, uncertain: bool) -> None:
    def half_done(_request: Arrived) -> Reply:
        stub.rows["s1"] |= {"ended_at": 1796072008.5, "end_reason": "branched"}
        stub.rows["f1"] = row_of("f1", parent_session_id="s1")
        return reply_error(400, code, "Title 'Fork one' is already in use by session other")

    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("POST", "/fork", half_done)
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, "session_fork"), call_of("session_fork"))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == (_CODE + "remote_rejected", uncertain)
    fork = outcome.details["reconciliation"]["fork"]
    assert fork["state"] == "partial"
    assert (fork["source"]["end_reason"], fork["child"]["parent_session_id"]) == ("branched", "s1")
    assert fork["child"]["title_as_wanted"] is False
    assert outcome.details["provider"]["message"] == "Title 'Fork one' is already in use by session other"
    if uncertain:
        assert "`s1`" in outcome.message
        assert "`f1`" in outcome.message
        assert "new idempotency key" in outcome.message


@pytest.mark.requirement("hermes:prepare:reads-are-certain", "hermes:send:reads-of-a-mutation-once")
@pytest.mark.parametrize("name", [name for name, row in _OPERATIONS.items() if row.prepare not in ("none", "named")])
async def test_a_failed_read_before_sending_is_certain_and_sends_nothing(name: str) -> None:
    reads: list[tuple[Reply, str]] = [
        (reply_error(404, "session_not_found"), "remote_rejected"),
        (reply_error(401, "invalid_api_key"), "authentication"),
        (Reply(behaviour="reset"), "transport"),
        (_text(500, "boom"), "remote_temporary"),
        (reply_error(503, "session_db_unavailable", retry_after="1"), "remote_temporary"),
        (_text(200, '{"sessions": []}'), "invalid_response"),
    ]
    for reply, code in reads:
        async with StubEndpoint([row_of("s1")]) as stub:
            target = _OPERATIONS[name].target
            if code == "invalid_response" and target in ("run", "waiting_run", "response"):
                continue  # any object is one
            stub.on("GET", next(str(value) for key, value in INPUTS[name].items() if key.endswith("_id")), reply)
            async with connector_of(endpoint_of(stub.base_url)) as connector:
                outcome = await attempt(handler_of(connector, name), call_of(name))
            assert isinstance(outcome, ActionFailed)
            assert (outcome.code, outcome.uncertain) == (_CODE + code, False)
            assert stub.mutations == []
            assert len(stub.reads) == 1
            assert name in outcome.message


@pytest.mark.requirement("hermes:prepare:named")
@pytest.mark.parametrize("name", ["chat", "run_start"])
async def test_a_named_session_that_is_not_there_yet_is_made_by_the_call(name: str) -> None:
    async with StubEndpoint() as stub:
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, name), call_of(name))
        assert isinstance(outcome, Answer)
        assert [request.target for request in stub.reads][:1] == ["/api/sessions/s1"]
        assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:prepare:named")
@pytest.mark.parametrize("name", ["chat", "run_start"])
@pytest.mark.parametrize("reply", [reply_error(401, "invalid_api_key"), _text(500, "boom")])
async def test_a_named_session_that_can_not_be_read_gets_no_turn(name: str, reply: Reply) -> None:
    async with StubEndpoint([row_of("s1")]) as stub:
        stub.on("GET", "/s1", reply)
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, name), call_of(name))
        assert isinstance(outcome, ActionFailed)
        assert not outcome.uncertain
        assert (len(stub.reads), stub.mutations) == (1, [])


@pytest.mark.requirement("hermes:answer:text-errors", "hermes:answer:certain-is-proven")
@pytest.mark.parametrize(
    ("name", "status", "text", "code", "uncertain"),
    [
        ("job_create", 400, "Blocked: prompt matches threat pattern", "remote_rejected", False),
        ("job_create", 500, "Invalid schedule 'whenever'. Use:\n  - Duration", "remote_temporary", True),
        ("job_update", 500, "Invalid schedule 'nope'.", "remote_temporary", True),
        ("job_run", 404, "Job not found", "remote_rejected", False),
        ("job_delete", 501, "Cron module not available", "remote_temporary", True),
        ("job_get", 404, "Job not found", "remote_rejected", False),
        ("responses", 404, "Previous response not found: resp_none", "remote_rejected", False),
        ("jobs_list", 501, "Cron module not available", "remote_temporary", False),
    ],
)
async def test_an_error_that_is_a_text_is_told_and_judged_by_its_status(
    name: str, status: int, text: str, code: str, uncertain: bool
) -> None:
    async with StubEndpoint() as stub:
        _fails(stub, _OPERATIONS[name], reply_json({"error": text}, status=status))
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, name), call_of(name))
    assert isinstance(outcome, ActionFailed)
    assert (outcome.code, outcome.uncertain) == (_CODE + code, uncertain)
    assert outcome.details["provider"]["message"] == " ".join(text.split())
    assert outcome.details["provider"]["code"] is None
    if status == 404:
        assert ("no such job" if name.startswith("job") else "does not have what") in outcome.message


SECRETS: Mapping[str, Callable[[str], Reply]] = {
    "text": lambda text: _text(500, text),
    "nested JSON": lambda text: reply_error(400, "invalid_title", text),
    "code": lambda text: reply_error(400, text, "x"),
    "HTML": lambda text: _text(502, f"<html><body>{text}</body></html>", "text/html"),
    "error as text": lambda text: _text(500, f'{{"error": "{text}"}}', "application/json"),
}


@pytest.mark.requirement("hermes:errors:no-credentials")
@pytest.mark.parametrize("make", SECRETS.values(), ids=list(SECRETS))
@pytest.mark.parametrize("name", ["session_create", "models"])
async def test_a_credential_in_a_provider_error_goes_no_further(make: Callable[[str], Reply], name: str) -> None:
    planted = f"Authorization: Bearer {KEY} and sk-live-0123456789abcdef and scope family-scope"
    operation = _OPERATIONS[name]
    async with StubEndpoint() as stub:
        stub.on(operation.method, operation.path, make(planted))
        call = call_of(name)
        if name == "session_create":
            call = replace(call, input={"body": {"id": "x"}, "session_key": "family-scope"})
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            outcome = await attempt(handler_of(connector, name), call)
    assert isinstance(outcome, ActionFailed)
    shown = outcome.message + repr(outcome.details) + repr(outcome) + str(outcome.__cause__)
    assert KEY not in shown
    assert "sk-live" not in shown
    assert name == "models" or "family-scope" not in shown
