"""What of a JSON value, or of a text by somebody else, may be kept or shown.

By field class, not by substring: `input_tokens` is a count and survives, a bearer never does. Text that comes from
outside (a provider's error message) is searched for what looks like a credential, and for the credentials we hold.
Source: design D19.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from aip_hermes.secret import Secret

__all__ = ["CLASSES", "FieldClass", "field_class", "redact", "redact_text"]

FieldClass = Literal["credential", "memory_scope", "transcript", "reasoning", "tool_payload"]

CLASSES: Final[frozenset[FieldClass]] = frozenset(
    ("credential", "memory_scope", "transcript", "reasoning", "tool_payload")
)

_FIELDS: Final[Mapping[FieldClass, tuple[str, ...]]] = {
    "credential": (
        "access_token", "api_key", "apikey", "auth", "authorization", "bearer", "client_secret", "cookie", "credential",
        "id_token", "password", "private_key", "proxy_authorization", "refresh_token", "secret", "set_cookie",
        "signing_seed", "token", "x_api_key",
    ),
    "memory_scope": ("session_key", "x_hermes_session_key"),
    "transcript": (
        "content", "conversation_history", "delta", "instructions", "message_text", "messages", "preview", "prompt",
        "query_text", "raw_payload", "system_message", "system_prompt", "text", "transcript", "user_message",
    ),
    "reasoning": ("reasoning", "reasoning_content", "thought", "thoughts"),
    "tool_payload": ("args", "arguments", "tool_calls", "tool_input", "tool_output", "tool_result"),
}  # fmt: skip

_CLASS_OF: Final[Mapping[str, FieldClass]] = {name: kind for kind, names in _FIELDS.items() for name in names}

_MARK: Final = "[redacted]"

# What is in every text that a pattern finds, the pattern, and what takes the place of its find.
_CREDENTIALS: Final = (
    ("", re.compile(r"(?i)\b(bearer|basic|digest|negotiate)[ \t:=]+[^\s\"'<>,;]+"), rf"\1 {_MARK}"),
    (
        "",
        re.compile(
            r"(?i)([\"']?\b(?:authorization|proxy-authorization|x-api-key|api[_-]?key|access[_-]?token|refresh[_-]?token"
            r"|client[_-]?secret|password|passwd|secret|token|cookie|set-cookie)\b[\"']?\s*[:=]\s*)"
            r"(?!\s*(?:bearer|basic|digest|negotiate)\b)[\"']?[^\s\"'<>,;}\]]+[\"']?"
        ),
        rf"\1{_MARK}",
    ),
    # Issued keys that name their issuer; a hyphen or underscore must follow the prefix, so that words stay words.
    (
        "",
        re.compile(
            r"\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abposr]|hf|gsk|AKIA|AIza|whsec)[-_A-Z0-9]"
            r"[A-Za-z0-9_.\-]{6,}"
        ),
        _MARK,
    ),
    ("eyJ", re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"), _MARK),
    ("://", re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@]+@"), rf"\1{_MARK}@"),
    (
        "-----BEGIN",
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        _MARK,
    ),
)


def field_class(name: str) -> FieldClass | None:
    """Return the class of the field `name`, whatever its case and whether words are joined by `-` or `_`."""
    return _CLASS_OF.get(name.lower().replace("-", "_"))


def redact(value: Any, *, classes: Collection[FieldClass] = CLASSES, secrets: Iterable[Secret | None] = ()) -> Any:
    """Return a copy of a JSON value in which fields of `classes` are `{"redacted": true}`.

    Empty values (null, "", [], {}) stay: that there was nothing is no secret. Other strings pass through redact_text.
    """
    known = tuple(secrets)
    if isinstance(value, Mapping):
        return {
            str(name): {"redacted": True}
            if member not in (None, "", [], {}) and field_class(str(name)) in classes
            else redact(member, classes=classes, secrets=known)
            for name, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(member, classes=classes, secrets=known) for member in value]
    return redact_text(value, secrets=known) if isinstance(value, str) else value


def redact_text(text: str, *, secrets: Iterable[Secret | None] = (), max_chars: int | None = None) -> str:
    """Return `text` without credentials: those given, and whatever has the form of one.

    max_chars: cut, with an ellipsis, after redaction: a cut credential would no longer be recognised.
    """
    for secret in secrets:
        if secret is not None:
            text = text.replace(secret.reveal(), _MARK)
    for sign, pattern, substitute in _CREDENTIALS:
        if sign in text:
            text = pattern.sub(substitute, text)
    if max_chars is not None and len(text) > max_chars:
        text = text[: max_chars - 1] + "…"
    return text
