"""Redaction by field class, and of what looks like a credential."""

from __future__ import annotations

from typing import Any

import pytest

from aip_hermes.redact import FieldClass, field_class, redact, redact_text
from aip_hermes.secret import Secret

_MARK = {"redacted": True}


@pytest.mark.requirement("hermes:redact:field-classes")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Authorization", "credential"),
        ("api_key", "credential"),
        ("X-API-Key", "credential"),
        ("set-cookie", "credential"),
        ("token", "credential"),
        ("session_key", "memory_scope"),
        ("X-Hermes-Session-Key", "memory_scope"),
        ("content", "transcript"),
        ("system_prompt", "transcript"),
        ("reasoning_content", "reasoning"),
        ("tool_calls", "tool_payload"),
        ("input_tokens", None),
        ("token_count", None),
        ("idempotency_key", None),
        ("session_id", None),
        ("has_system_prompt", None),
        ("monkey", None),
        ("title", None),
    ],
)
def test_a_field_has_the_class_of_its_whole_name(name: str, kind: str | None) -> None:
    assert field_class(name) == kind


@pytest.mark.requirement("hermes:redact:field-classes")
def test_a_value_is_redacted_at_every_depth_and_counts_survive() -> None:
    credentials: tuple[FieldClass, ...] = ("credential",)
    value: dict[str, Any] = {
        "usage": {"input_tokens": 12, "token_count": 3},
        "message": {"role": "assistant", "content": "a private answer", "reasoning": None},
        "headers": [{"Authorization": "Bearer abc"}],
        "session_key": "family",
        "prompt": "",
        "tool_calls": [],
    }
    assert redact(value) == {
        "usage": {"input_tokens": 12, "token_count": 3},
        "message": {"role": "assistant", "content": _MARK, "reasoning": None},
        "headers": [{"Authorization": _MARK}],
        "session_key": _MARK,
        "prompt": "",
        "tool_calls": [],
    }
    assert redact(value, classes=credentials)["message"]["content"] == "a private answer"


@pytest.mark.requirement("hermes:redact:credentials-in-text")
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ('{"authorization": "Bearer abcdefgh"}', "abcdefgh"),
        ("bearer\tABCDEFGH", "ABCDEFGH"),
        ("Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("key sk-live-0123456789abcdef failed", "sk-live"),
        ("ghp_0123456789abcdefghij", "0123456789"),
        ("xoxb-123456-abcdef", "123456"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJzdWI"),
        ("api_key=abcd1234", "abcd1234"),
        ("'password': 'hunter2!'", "hunter2"),
        ("token: 9f8e7d6c", "9f8e7d6c"),
        ("https://user:pw@host/path", "user:pw"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "MIIE"),
        ("it is planted-key-0123456789 itself", "planted-key"),
    ],
)
def test_what_looks_like_a_credential_leaves_a_text(text: str, secret: str) -> None:
    cleaned = redact_text(text, secrets=[Secret("planted-key-0123456789"), None])
    assert secret not in cleaned
    assert "[redacted]" in cleaned
    assert redact({"note": text}, secrets=[Secret("planted-key-0123456789")])["note"] == cleaned


@pytest.mark.requirement("hermes:redact:credentials-in-text")
@pytest.mark.parametrize(
    "text",
    [
        "Title 'Case one, alternative' is already in use by session case-1-alt",
        "Gateway is draining existing work; retry shortly.",
        "3 tokens left, task sk is done",
        "Session not found: api_1796069436_fa077b4a",
        "Unsupported session fields: model",
    ],
)
def test_ordinary_sentences_stay_as_they_are(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.requirement("hermes:redact:credentials-in-text")
def test_a_text_is_cut_after_redaction() -> None:
    assert "abc" not in redact_text("x" * 20 + " Bearer abcdefghijkl", max_chars=32)
    assert len(redact_text("x" * 400, max_chars=300)) == 300
