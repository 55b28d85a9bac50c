"""What is kept of a provider's answer, and what it proves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from aip_hermes.hermes.answer import Asked, output_of
from aip_hermes.hermes.exchange import Received
from aip_hermes.hermes.failures import HermesFailed
from aip_hermes.hermes.wording import Subject
from tests.support.hermes_calls import endpoint_of

_NOW_MS = 1_796_071_500_000  # 2026-11-30T20:45:00Z


def _asked(*, mutation: bool = True, hidden: tuple[str, ...] = ()) -> Asked:
    endpoint = endpoint_of()
    subject = Subject(endpoint_id=endpoint.id, doing="session_patch", session_id="s1")
    return Asked(endpoint=endpoint, subject=subject, mutation=mutation, hidden=hidden)


def _failed(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, mutation: bool = True, hidden: str = ""
) -> HermesFailed:
    with pytest.raises(HermesFailed) as caught:
        output_of(
            _asked(mutation=mutation, hidden=(hidden,) if hidden else ()),
            Received(status=status, headers=headers or {}, body=body),
            now_ms=_NOW_MS,
        )
    return caught.value


@pytest.mark.requirement("hermes:answer:provider-details")
@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('{"error": {"message": "In use", "code": "invalid_title"}}', "invalid_title", "In use"),
        ('{"error": {"message": "Bad", "type": "x"}}', None, "Bad"),
        ('{"error": "Job not found"}', None, "Job not found"),
        ('{"error": {"message": 5, "code": 7}}', None, None),
        ('{"error": {"message": "x", "code": "Not A Code"}}', None, "x"),
        ('{"detail": "x"}', None, None),
        ('["x"]', None, None),
        ("", None, None),
        ("500 Server Error\n\nServer got itself in trouble", None, "500 Server Error Server got itself in trouble"),
        ("<html><style>p{}</style><h1>Bad</h1> gateway</html>", None, "Bad gateway"),
        ("not { json", None, "not { json"),
        ('{"error": {"message": "a\\u0000b\\nc\\u001b[31m"}}', None, "a b c [31m"),
    ],
)  # fmt: skip
def test_status_code_and_a_clean_text_are_kept(body: str, code: str | None, message: str | None) -> None:
    failed = _failed(400, body.encode())
    assert failed.details["provider"] == {"status": 400, "code": code, "message": message, "retry_after_ms": None}
    assert failed.details["remote_status"] == 400


@pytest.mark.requirement("hermes:answer:provider-details")
@pytest.mark.parametrize("body", [b"x" * 100_000, json.dumps({"error": {"message": "y" * 100_000}}).encode()])
def test_a_long_text_is_bounded(body: bytes) -> None:
    message = _failed(500, body).details["provider"]["message"]
    assert len(message) == 300
    assert message.endswith("…")


@pytest.mark.requirement("hermes:errors:no-credentials", "hermes:answer:provider-details")
def test_neither_address_nor_memory_scope_is_repeated() -> None:
    text = "at http://127.0.0.1:8642/api/sessions for family scope"
    message = _failed(500, text.encode(), hidden="family scope").details["provider"]["message"]
    assert message == "at [endpoint]/api/sessions for [redacted]"


@pytest.mark.requirement("hermes:answer:retry-after")
@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("1", 1000),
        (" 30 ", 30_000),
        ("0", 0),
        ("Mon, 30 Nov 2026 20:45:10 GMT", 10_000),
        ("Mon, 30 Nov 2026 20:44:00 GMT", 0),
        ("9" * 40, 86_400_000),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
    ],
)
def test_the_wait_that_an_endpoint_asks_for_is_kept(value: str, wait_ms: int | None) -> None:
    failed = _failed(429, b"", {"retry-after": value})
    assert failed.details["provider"]["retry_after_ms"] == wait_ms
    assert failed.retry_after_ms == wait_ms
    assert _failed(500, b"", {"retry-after": value}).retry_after_ms is None


@pytest.mark.requirement("hermes:answer:certain-is-proven")
@pytest.mark.parametrize(
    ("status", "code", "uncertain", "retryable"),
    [
        (300, None, False, False),
        (400, "unsupported_session_field", False, False),
        (404, None, False, False),
        (405, None, False, False),
        (408, None, True, False),
        (409, "turn_in_progress", False, True),
        (422, None, False, False),
        (429, None, False, True),
        (500, "reply_not_stored", True, False),
        (502, "model_failed", True, False),
        (503, "platform_unavailable", True, False),
        (503, "gateway_draining", False, True),
        (500, "gateway_draining", True, False),
        (504, "gateway_draining", True, False),
        (529, None, True, False),
    ],
)
def test_certain_means_provable(status: int, code: str | None, uncertain: bool, retryable: bool) -> None:
    body = json.dumps({"error": {"message": "m", "code": code}}).encode()
    failed = _failed(status, body)
    assert (failed.uncertain, failed.retryable) == (uncertain, retryable)
    assert not _failed(status, body, mutation=False).uncertain


@pytest.mark.requirement("hermes:answer:certain-is-proven")
@pytest.mark.parametrize("status", [400, 404, 413, 422])
@pytest.mark.parametrize(
    ("body", "headers"), [(b"<!doctype html>", {}), (b"x", {"content-type": "text/HTML"}), (b" \n<?xml?>", {})]
)
def test_a_page_by_somebody_in_between_proves_nothing(status: int, body: bytes, headers: Mapping[str, str]) -> None:
    assert _failed(status, body, headers).uncertain
    assert not _failed(status, body, headers, mutation=False).uncertain
    assert not _failed(401, body, headers).uncertain
    assert not _failed(429, body, headers).uncertain


@pytest.mark.requirement("hermes:answer:a-success-is-an-object")
@pytest.mark.parametrize(
    "body", [b"", b" \n", b"null", b"[]", b"5", b'"x"', b"<html>", b'{"a": NaN}', b"{", b'{"a": "\xff"}', b"[" * 99_999]
)  # fmt: skip
def test_a_success_that_is_no_json_object_is_no_success(body: bytes) -> None:
    failed = _failed(200, body)
    assert (failed.code, failed.uncertain) == ("connector.hermes_agent.invalid_response", True)
    read = _failed(200, body, mutation=False)
    assert (read.uncertain, read.retryable) == (False, False)


@pytest.mark.requirement("hermes:answer:passed-through")
@pytest.mark.parametrize("status", [200, 201, 202, 299])
def test_an_object_with_any_success_status_is_the_output(status: int) -> None:
    value: dict[str, Any] = {"a": [1, 2.5, None, "é"], "token": "x"}
    received = Received(status=status, headers={}, body=json.dumps(value).encode())
    assert output_of(_asked(), received, now_ms=_NOW_MS) == value
