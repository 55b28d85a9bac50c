"""The message routes against a scripted runtime: order of checks, addressing, dispatch, refusals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.runtime.failures import ActionIdConflict, CapabilityUnknown, NotAuthorized
from tests.support.server_site import Site, action_message, make_site, message

ROUTES = ("/aip/v1/messages", "/aip/v1/actions")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = make_site(tmp_path)
    async with made.client:
        yield made


def refused(response: httpx.Response, *, status: int, code: str) -> dict[str, Any]:
    """Assert an error envelope and return the error."""
    assert response.headers["content-type"] == "application/json"
    envelope = response.json()
    assert wire.envelope_violations(envelope) == []
    assert envelope["message_type"] == "aip.core.v1.error"
    error: dict[str, Any] = envelope["body"]["error"]["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert "in_response_to" not in envelope
    return error


def answered(response: httpx.Response, key: str) -> Any:
    """Assert a successful envelope and return the value of its body."""
    assert response.status_code == 200
    envelope = response.json()
    assert wire.envelope_violations(envelope) == []
    assert list(envelope["body"]) == [key]
    return envelope["body"][key]


DEEP = b'{"a":' * 129 + b"1" + b"}" * 129
BROKEN: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "envelope.decode.invalid"),
    "half an object": (b'{"aip_version":', 400, "envelope.decode.invalid"),
    "trailing comma": (b'{"a":1,}', 400, "envelope.decode.invalid"),
    "two values": (b"{} {}", 400, "envelope.decode.invalid"),
    "repeated name": (b'{"a":1,"a":2}', 400, "envelope.decode.invalid"),
    "repeated inner name": (b'{"body":{"action":{"id":"a","id":"b"}}}', 400, "envelope.decode.invalid"),
    "NaN": (b'{"a":NaN}', 400, "envelope.decode.invalid"),
    "infinity by exponent": (b'{"a":1e999}', 400, "envelope.decode.invalid"),
    "million digits": (b'{"a":' + b"7" * 1_000_000 + b"}", 400, "envelope.decode.invalid"),
    "129 levels": (DEEP, 400, "envelope.decode.invalid"),
    "500,000 brackets": (b"[" * 500_000, 400, "envelope.decode.invalid"),
    "invalid UTF-8": (b'{"a":"\xff"}', 400, "envelope.decode.invalid"),
    "UTF-16": ("{}".encode("utf-16"), 400, "envelope.decode.invalid"),
    "byte order mark": (b"\xef\xbb\xbf{}", 400, "envelope.decode.invalid"),
    "lone surrogate": (b'{"a":"\\ud800"}', 400, "envelope.decode.invalid"),
    "control character": (b'{"a":"\n"}', 400, "envelope.decode.invalid"),
    "a list": (b"[]", 400, "schema.envelope.invalid"),
    "a string": (b'"x"', 400, "schema.envelope.invalid"),
    "null": (b"null", 400, "schema.envelope.invalid"),
    "empty object": (b"{}", 400, "schema.envelope.invalid"),
    "too large": (b'{"a":"' + b"x" * 1_048_576 + b'"}', 413, "envelope.too_large"),
}


@pytest.mark.requirement("server:body:one-meaning", "server:body:size")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", BROKEN)
async def test_broken_bytes_are_answered_by_an_error_envelope(site: Site, route: str, name: str) -> None:
    data, status, code = BROKEN[name]
    headers = {"content-type": "application/json", **site.bearer()}
    refused(await site.client.post(route, content=data, headers=headers), status=status, code=code)
    assert site.runtime.asked == []


@pytest.mark.requirement("server:body:size")
async def test_a_chunked_body_is_counted_while_it_arrives(site: Site) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 65_536

    headers = {"content-type": "application/json", **site.bearer()}
    response = await site.client.post("/aip/v1/messages", content=chunks(), headers=headers)
    error = refused(response, status=413, code="envelope.too_large")
    assert error["details"] == {"max_request_bytes": 1_048_576}


@pytest.mark.requirement("server:body:size")
async def test_a_body_of_exactly_the_advertised_size_is_read(site: Site) -> None:
    text = json.dumps(action_message())
    data = (text + " " * (1_048_576 - len(text))).encode()
    headers = {"content-type": "application/json", **site.bearer()}
    answered(await site.client.post("/aip/v1/messages", content=data, headers=headers), "action_result")


@pytest.mark.requirement("server:body:one-meaning")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
    ids=["none", "text", "form", "compressed"],
)
async def test_another_content_type_is_415(site: Site, headers: dict[str, str]) -> None:
    content = json.dumps(action_message()).encode()
    response = await site.client.post("/aip/v1/messages", content=content, headers={**headers, **site.bearer()})
    refused(response, status=415, code="envelope.content_type.unsupported")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "application/aip+json", "Application/JSON"])
async def test_json_content_types_are_read(site: Site, kind: str) -> None:
    content = json.dumps(action_message()).encode()
    headers = {"content-type": kind, **site.bearer()}
    answered(await site.client.post("/aip/v1/messages", content=content, headers=headers), "action_result")


def without(envelope: dict[str, Any], member: str) -> dict[str, Any]:
    return {name: value for name, value in envelope.items() if name != member}


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "unknown member": ({**action_message(), "extra": 1}, "schema.envelope.invalid"),
    "unknown inner member": (message({"action": {"id": "act_1", "extra": 1}}), "schema.envelope.invalid"),
    "no message id": (without(action_message(), "message_id"), "schema.envelope.invalid"),
    "two bodies": (
        {**action_message(), "body": {**action_message()["body"], "manifest_request": {}}},
        "schema.envelope.invalid",
    ),
    "no time": ({**action_message(), "sent_at": "yesterday"}, "envelope.decode.invalid"),
    "foreign session id": (action_message(session_id="chat_1"), "envelope.decode.invalid"),
    "type of another body": (
        {**action_message(), "message_type": "aip.core.v1.cancel"},
        "action.invalid_input",
    ),
}


@pytest.mark.requirement("server:message:checks-in-order", "server:wire:schemas")
@pytest.mark.parametrize("name", INVALID)
async def test_an_invalid_envelope_is_refused_before_the_bearer_is_asked(site: Site, name: str) -> None:
    envelope, code = INVALID[name]
    error = refused(await site.post(envelope, who=None), status=400, code=code)
    assert error["message"]
    if code == "schema.envelope.invalid":
        assert error["details"] == {"schema": "envelope.schema.json"}
    assert site.runtime.asked == []


@pytest.mark.requirement("server:message:checks-in-order", "server:auth:bearer-rules")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("header", "message_start"),
    [
        (None, "missing bearer token"),
        ("Basic dXNlcjpwYXNz", "missing bearer token"),
        ("bearer token-of-requester-0123456789", "missing bearer token"),
        ("Bearer ", "missing bearer token"),
        ("Bearer    ", "missing bearer token"),
        ("Bearer token-of-nobody-0123456789", "invalid bearer token"),
        ("Bearer " + "x" * 16_385, "invalid bearer token"),
        ("Bearer t\u00f6ken".encode("latin-1"), "invalid authorization header: "),
    ],
)
async def test_a_request_without_a_known_token_is_401(
    site: Site, route: str, header: str | bytes | None, message_start: str
) -> None:
    raw = header.encode() if isinstance(header, str) else header
    headers = {} if raw is None else {b"authorization": raw}
    error = refused(
        await site.client.post(route, json=action_message(), headers=headers),
        status=401,
        code="auth.native_http_unauthorized",
    )
    assert error["message"].startswith(message_start)
    assert error["category"] == "auth"
    assert error["retryable"] is False
    assert site.runtime.asked == []


@pytest.mark.requirement("server:auth:bearer-rules")
async def test_two_authorization_headers_are_refused(site: Site) -> None:
    token = site.bearer()["authorization"]
    response = await site.client.get("/aip/v1/me", headers=[("authorization", token), ("authorization", token)])
    refused(response, status=401, code="auth.native_http_unauthorized")
    assert "www-authenticate" not in response.headers


@pytest.mark.requirement("server:message:checks-in-order")
async def test_a_message_id_is_taken_once(site: Site) -> None:
    answered(await site.post(action_message()), "action_result")
    refused(await site.post(action_message()), status=401, code="replay.message_id")
    assert [name for name, _ in site.runtime.asked] == ["claim", "submit", "claim"]
    assert site.runtime.asked[0][1]["sent_at_ms"] == site.clock.ms


@pytest.mark.requirement("server:message:reply-addressing", "server:wire:schemas")
@pytest.mark.parametrize("route", ROUTES)
async def test_a_reply_is_addressed_to_the_sender_as_sent(site: Site, route: str) -> None:
    sender = {"id": "agent:getaip:cli", "kind": "agent", "display_name": "CLI"}
    sent = {**action_message(session_id="sess_9", correlation_id="corr_7"), "from": sender}
    response = await site.post(sent, path=route)
    assert response.json() == {
        "aip_version": "1.0",
        "message_type": "aip.core.v1.action_result",
        "message_id": f"msg_{1:032x}",
        "sent_at": "2030-01-01T00:00:00Z",
        "body": {
            "action_result": {"action_id": "act_1", "status": "completed", "output": {"echo": {"session_id": "s"}}}
        },
        "session_id": "sess_9",
        "correlation_id": "corr_7",
        "in_response_to": "msg_1",
        "from": {"id": "service:aip-hermes:server", "kind": "service", "display_name": "AIP Hermes connector"},
        "to": sender,
    }
    asked = dict(site.runtime.asked)["submit"]
    # The token, not the sender's claim, says who acts.
    assert asked["caller"].principal.id == "agent:a:requester"
    assert asked["caller"].tenant_id == "tenant-a"
    assert (asked["context"].aip_session_id, asked["context"].correlation_id) == ("sess_9", "corr_7")


async def test_a_reply_to_a_nameless_sender_has_no_receiver(site: Site) -> None:
    envelope = (await site.post(action_message())).json()
    assert "to" not in envelope
    assert "session_id" not in envelope
    manifest = (await site.get("/aip/v1/manifest")).json()
    assert envelope["from"] == manifest["agent"]


DECISION = {
    "approval_id": "appr_1",
    "decision": "denied",
    "approver": {"id": "human:a:reviewer", "kind": "human"},
    "decided_at": "2030-01-01T00:00:00Z",
}
SERVED: dict[str, tuple[dict[str, Any], str, str]] = {
    "action": (action_message(), "action_result", "submit"),
    "decision": (message({"approval_decision": DECISION}), "event_stream", "decide"),
    "status": (message({"action_status_request": {"action_id": "act_1"}}), "action_status", "status"),
    "result": (message({"action_result_request": {"action_id": "act_1"}}), "action_result", "result"),
    "approvals": (message({"approval_list_request": {"limit": 5000}}), "approval_list", "approvals"),
    "approval": (
        message({"approval_query_request": {"approval_id": "appr_1"}}),
        "approval_record_view",
        "approval",
    ),
}


@pytest.mark.requirement("server:message:dispatch", "server:wire:schemas")
@pytest.mark.parametrize("name", SERVED)
async def test_each_kind_of_message_gets_its_answer(site: Site, name: str) -> None:
    envelope, key, call = SERVED[name]
    answered(await site.post(envelope), key)
    assert [asked for asked, _ in site.runtime.asked] == ["claim", call]


@pytest.mark.requirement("server:message:dispatch")
async def test_a_manifest_is_answered_in_an_envelope_too(site: Site) -> None:
    body = {"manifest_request": {"filter": {"risk": ["high"]}}}
    manifest = answered(await site.post(message(body)), "manifest")
    ids = [capability["id"] for capability in manifest["capabilities"]]
    assert "cap:hermes_agent:primary:session_delete" in ids
    assert not [found for found in ids if ":other:" in found]
    assert {capability["risk"] for capability in manifest["capabilities"]} == {"high"}


@pytest.mark.requirement("server:message:dispatch")
@pytest.mark.parametrize(
    "body",
    [
        {"cancel": {"target": {"session": "sess_1"}}},
        {"action_result": {"action_id": "act_1", "status": "completed"}},
        {"error": {"error": {"code": "a.b", "message": "m", "category": "permanent"}}},
    ],
    ids=lambda body: next(iter(body)),
)
async def test_a_known_kind_that_is_not_served_says_so(site: Site, body: dict[str, Any]) -> None:
    response = await site.post(message(body))
    refused(response, status=400, code="capability.unsupported")


@pytest.mark.requirement("server:message:failed-read-is-200", "server:tenancy:own-tenant")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"action_result_request": {"action_id": "act_1"}}, "action.not_found"),
        ({"approval_query_request": {"approval_id": "appr_1"}}, "approval.not_found"),
        ({"approval_query_request": {"approval_id": "nonsense"}}, "envelope.decode.invalid"),
        ({"action_status_request": {"action_id": "act_1", "tenant_id": "tenant-a"}}, "auth.tenant_mismatch"),
        ({"approval_list_request": {"tenant_id": "tenant-a"}}, "auth.tenant_mismatch"),
    ],
)
async def test_a_failed_read_in_an_envelope_is_a_reply(site: Site, body: dict[str, Any], code: str) -> None:
    sender = {"id": "agent:b:requester", "kind": "agent"}
    response = await site.post({**message(body), "from": sender}, who="stranger")
    assert answered(response, "error")["error"]["code"] == code
    assert (response.json()["in_response_to"], response.json()["to"]) == ("msg_1", sender)


@pytest.mark.requirement("server:message:failed-read-is-200", "server:errors:one-table")
@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (CapabilityUnknown("no such capability"), 400),
        (ActionIdConflict("bound to other content"), 400),
        (NotAuthorized("not yours", details={"code": "x"}), 401),
    ],
    ids=lambda value: getattr(value, "code", str(value)),
)
async def test_a_refused_command_has_the_status_of_its_category(site: Site, failure: Any, status: int) -> None:
    site.runtime.failure = failure
    error = refused(await site.post(action_message()), status=status, code=failure.code)
    assert error["message"] == failure.message
