"""The connection over a transport in memory: what is sent, how often, and what a failure means."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.client import (
    AipConnection,
    ClientFailure,
    ConnectionRefused,
    ConnectTimedOut,
    HttpFailed,
    NameNotResolved,
    NoAnswer,
    NotReachable,
    PeerError,
    TlsFailed,
    TooLarge,
    principal_of,
)
from aip_hermes.ids import ActionId, ApprovalId, CapabilityId, IdempotencyKey, PrincipalId
from aip_hermes.secret import Secret
from tests.support import client_answers as answers

URL = "http://aip.example.test/prefix/is/replaced"
TOKEN = "a-token-of-the-test"


class Server:
    """Answers by a function and counts."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answer(request)

    def connection(self, **arguments: Any) -> AipConnection:
        counter = iter(range(1, 1000))
        return AipConnection(
            base_url=URL,
            token=Secret(TOKEN),
            transport=httpx.MockTransport(self),
            new_id=lambda prefix: f"{prefix}{next(counter)}",
            **arguments,
        )


def _json(body: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def _raise(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    return answer


async def _call(connection: AipConnection) -> Any:
    async with connection:
        return await connection.call(CapabilityId("cap:x"), {}, action_id=ActionId("act_1"))


async def test_a_call_sends_exactly_what_was_given() -> None:
    server = Server(lambda _: _json(answers.envelope(answers.completed({}))))
    async with server.connection(principal_id=PrincipalId("human:alice")) as connection:
        reply = await connection.call(
            CapabilityId(answers.DELETE),
            {"session_id": "票据", "nothing": None},
            action_id=ActionId("act_1"),
            idempotency_key=IdempotencyKey("key-1"),
            mode="sync",
        )
    [request] = server.requests
    sent = json.loads(request.content)
    assert (request.method, str(request.url)) == ("POST", "http://aip.example.test/aip/v1/messages")
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"
    assert sent == {
        "aip_version": "1.0",
        "message_type": "aip.core.v1.action",
        "message_id": "msg_1",
        "sent_at": sent["sent_at"],
        "body": {
            "action": {
                "id": "act_1",
                "capability_id": answers.DELETE,
                "input": {"session_id": "票据", "nothing": None},
                "mode": "sync",
                "idempotency_key": "key-1",
            }
        },
        "from": {"id": "human:alice", "kind": "human"},
    }
    assert wire.envelope_violations(sent) == []
    assert reply.outcome == "completed"


async def test_members_that_were_not_given_are_not_sent() -> None:
    server = Server(lambda _: _json(answers.envelope(answers.completed({}))))
    async with server.connection() as connection:
        await connection.call(CapabilityId("cap:x"), [1], action_id=ActionId("act_1"), mode=None)
    action = json.loads(server.requests[0].content)["body"]["action"]
    assert action == {"id": "act_1", "capability_id": "cap:x", "input": [1]}


@pytest.mark.parametrize(
    ("principal_id", "kind"),
    [
        ("human:alice", "human"),
        ("service:x", "service"),
        ("system:x", "system"),
        ("tenant:x", "tenant"),
        ("customer:x", "customer"),
        ("contact:x", "contact"),
        ("agent:getaip:cli", "agent"),
        ("user:bob", "agent"),
        ("human", "human"),
        ("plain", "agent"),
    ],
)
def test_the_kind_of_a_principal_follows_from_its_first_segment(principal_id: str, kind: str) -> None:
    assert principal_of(PrincipalId(principal_id)).wire() == {"id": principal_id, "kind": kind}


@pytest.mark.requirement("client:send:once", "client:send:no-redirect")
@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (lambda _: _json(answers.envelope(answers.error_body("storage.unavailable", "temporary")), 503), PeerError),
        (lambda _: httpx.Response(500, text="broken"), HttpFailed),
        (lambda _: httpx.Response(429, headers={"Retry-After": "0"}), HttpFailed),
        (lambda _: httpx.Response(307, headers={"Location": "http://other.example.test/"}), HttpFailed),
        (_raise(httpx.ReadError("reset")), NoAnswer),
        (_raise(httpx.ReadTimeout("late")), NoAnswer),
        (_raise(httpx.RemoteProtocolError("cut")), NoAnswer),
        (_raise(httpx.ConnectError("no")), NotReachable),
    ],
)
async def test_a_message_leaves_once_whatever_comes_back(
    answer: Callable[[httpx.Request], httpx.Response], failure: type[ClientFailure]
) -> None:
    server = Server(answer)
    with pytest.raises(failure) as caught:
        await _call(server.connection())
    assert len(server.requests) == 1
    assert TOKEN not in f"{caught.value!r} {caught.value.details}"


def _chained(cause: BaseException) -> httpx.ConnectError:
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = OSError("outer")
    error.__cause__.__cause__ = ExceptionGroup("several", [cause]) if isinstance(cause, Exception) else cause
    return error


@pytest.mark.requirement("client:failure:told-apart", "client:failure:lost-answer-uncertain")
@pytest.mark.parametrize(
    ("raised", "failure", "uncertain"),
    [
        (_chained(ConnectionRefusedError()), ConnectionRefused, False),
        (_chained(socket.gaierror(-2, "unknown")), NameNotResolved, False),
        (_chained(ssl.SSLError(1, "wrong version number")), TlsFailed, False),
        (httpx.ConnectTimeout("late"), ConnectTimedOut, False),
        (httpx.ProxyError("no"), NotReachable, False),
        (httpx.PoolTimeout("busy"), NotReachable, False),
        (httpx.ReadTimeout("late"), NoAnswer, True),
        (httpx.WriteError("cut"), NoAnswer, True),
        (httpx.ReadError("cut"), NoAnswer, True),
    ],
)
async def test_failures_of_the_network_are_told_apart(
    raised: Exception, failure: type[ClientFailure], uncertain: bool
) -> None:
    with pytest.raises(ClientFailure) as caught:
        await _call(Server(_raise(raised)).connection())
    assert (type(caught.value), caught.value.uncertain) == (failure, uncertain)
    assert caught.value.next_step or caught.value.uncertain


@pytest.mark.requirement("client:failure:lost-answer-uncertain")
async def test_a_read_whose_answer_is_lost_is_certain() -> None:
    async with Server(_raise(httpx.ReadError("cut"))).connection() as connection:
        with pytest.raises(NoAnswer) as caught:
            await connection.status(ActionId("act_1"))
    assert not caught.value.uncertain


@pytest.mark.requirement("client:reply:bounded")
@pytest.mark.parametrize(("size", "accepted"), [(1000, True), (1001, False)])
async def test_an_answer_is_read_up_to_the_limit(size: int, accepted: bool) -> None:
    body = b'{"status":"ok"}'.ljust(size)
    async with Server(lambda _: httpx.Response(200, content=body)).connection(max_response_bytes=1000) as connection:
        if accepted:
            assert await connection.health() == {"status": "ok"}
            return
        with pytest.raises(TooLarge):
            await connection.health()


@pytest.mark.requirement("client:decision:binds-what-was-read", "client:decision:approver-of-token")
async def test_a_decision_reads_the_record_and_the_token_first() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return _json(answers.envelope(answers.events()))
        return _json(answers.OTHER_ANSWERS.get(request.url.path, answers.approval_record()))

    server = Server(answer)
    async with server.connection(principal_id=PrincipalId("agent:somebody")) as connection:
        await connection.decide(ApprovalId(answers.APPROVAL_ID), decision="approved", reason="done")
    assert [(request.method, request.url.path) for request in server.requests] == [
        ("GET", f"/aip/v1/approvals/{answers.APPROVAL_ID}"),
        ("GET", "/aip/v1/me"),
        ("POST", "/aip/v1/messages"),
    ]
    sent = json.loads(server.requests[-1].content)
    decision = sent["body"]["approval_decision"]
    assert wire.envelope_violations(sent) == []
    assert decision["approver"] == answers.REVIEWER
    assert decision["policy_hash"] == answers.POLICY_HASH
    assert decision["decision_id"] == "decision_1"


@pytest.mark.requirement("client:decision:approver-of-token")
@pytest.mark.parametrize("body", ["not found", ""])
async def test_the_given_principal_decides_where_the_server_can_not_tell(body: str) -> None:
    async with Server(lambda _: httpx.Response(404, text=body)).connection(
        principal_id=PrincipalId("human:example:reviewer")
    ) as connection:
        assert await connection.approver() == answers.REVIEWER


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "http://user:secret@x", ""])
def test_a_base_url_is_an_origin_without_credentials(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        AipConnection(base_url=url)


async def test_ids_are_one_path_segment() -> None:
    server = Server(lambda _: _json({"action_status": {}}))
    async with server.connection() as connection:
        await connection.status(ActionId("act_a/../b c?d#e"), include_result=True, wait_ms=0, include_chunks=False)
    assert (
        server.requests[0].url.raw_path == b"/aip/v1/actions/act_a%2F..%2Fb%20c%3Fd%23e?include_result=true&wait_ms=0"
    )
