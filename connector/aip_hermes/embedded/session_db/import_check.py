"""What an import may contain. Everything is looked at before anything is written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.hermes_api import clean_title, title_problem

__all__ = ["COUNTS", "FLAGS", "NUMBERS", "TEXTS", "ImportLimits", "problem_of", "problems"]

_MIB: Final = 1024 * 1024
_LARGEST: Final = 2**63 - 1

TEXTS: Final = (
    "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json", "model",
    "end_reason", "cwd", "git_branch", "git_repo_root", "billing_provider", "billing_base_url", "billing_mode",
    "cost_status", "cost_source", "pricing_version", "last_activity_description", "last_activity_provenance",
    "handoff_state", "handoff_platform", "handoff_error", "compression_failure_error", "profile_name",
)  # fmt: skip
"""Members of a session that are texts or absent and become columns as they are."""

NUMBERS: Final = (
    "started_at", "ended_at", "estimated_cost_usd", "actual_cost_usd", "last_activity_at",
    "compression_failure_cooldown_until", "last_read_at",
)  # fmt: skip
"""Numbers or absent."""

COUNTS: Final = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "api_call_count",
    "compression_fallback_streak", "compression_ineffective_count", "rewind_count",
)  # fmt: skip
"""Whole numbers, 0 where absent."""

FLAGS: Final = ("expiry_finalized", "archived", "pinned", "hidden")
"""0 or 1."""

_OTHER_TEXTS: Final = ("title", "title_source", "parent_session_id", "system_prompt")
_OTHER_COUNTS: Final = ("message_count", "tool_call_count")
_MESSAGE_TEXTS: Final = (
    "tool_call_id", "tool_name", "effect_disposition", "finish_reason", "reasoning", "reasoning_content",
    "platform_message_id", "api_content", "display_kind",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportLimits:
    """How much one import may hold. Bytes are those of the JSON text in UTF-8."""

    sessions: int = 500
    messages_per_session: int = 10_000
    messages: int = 50_000
    session_bytes: int = 5 * _MIB
    bytes: int = 25 * _MIB


def problems(sessions: Sequence[object], *, limits: ImportLimits) -> list[dict[str, Any]]:
    """Return `{index, error[, session_id]}` of each session that can't be imported; none where all can."""
    return list(_problems(sessions, limits))


def problem_of(session: object) -> str | None:
    """Return what is wrong with one session, whatever its size; None where nothing is."""
    if not isinstance(session, Mapping):
        return "session must be an object"
    session_id = session.get("id")
    if not isinstance(session_id, str):
        return "session id is required"
    return _problem_of_row(session) or _problem_of_messages(session.get("messages"))


def _problems(sessions: Sequence[object], limits: ImportLimits) -> Iterator[dict[str, Any]]:
    if len(sessions) > limits.sessions:
        yield {"index": limits.sessions, "error": f"import exceeds {limits.sessions} sessions"}
        return
    known: set[str] = set()
    messages = size = 0
    for index, session in enumerate(sessions):
        found = problem_of(session)
        told: dict[str, Any] = {}
        if isinstance(session, Mapping) and isinstance(session.get("id"), str):
            told["session_id"] = session["id"]
        if found is None and isinstance(session, Mapping):
            if session["id"] in known:
                found = "duplicate session id"
            known.add(session["id"])
            number, length = len(session.get("messages") or ()), _json_bytes(session)
            messages, size = messages + number, size + length
            found = found or _beyond(number, length, limits) or _beyond_all(messages, size, limits)
        if found is not None:
            yield {"index": index, "error": found, **told}
        if messages > limits.messages or size > limits.bytes:
            return


def _beyond(messages: int, size: int, limits: ImportLimits) -> str | None:
    if messages > limits.messages_per_session:
        return f"session exceeds {limits.messages_per_session} messages"
    return f"session exceeds {limits.session_bytes} bytes" if size > limits.session_bytes else None


def _beyond_all(messages: int, size: int, limits: ImportLimits) -> str | None:
    if messages > limits.messages:
        return f"import exceeds {limits.messages} messages"
    return f"import exceeds {limits.bytes} bytes" if size > limits.bytes else None


def _problem_of_row(session: Mapping[str, Any]) -> str | None:
    for name in (*TEXTS, *_OTHER_TEXTS):
        if not isinstance(session.get(name), str | None):
            return f"{name} must be a string"
    if not isinstance(session.get("model_config"), str | Mapping | None):
        return "model_config must be a string"
    for name in NUMBERS:
        if session.get(name) is not None and not _is_number(session[name]):
            return f"{name} must be a number"
    for name in (*COUNTS, *_OTHER_COUNTS):
        if session.get(name) is not None and not _is_count(session[name]):
            return f"{name} must be a whole number"
    for name in FLAGS:
        if session.get(name) not in (None, 0, 1):
            return f"{name} must be 0 or 1"
    return title_problem(clean_title(session.get("title")))


def _problem_of_messages(messages: object) -> str | None:
    if messages is None:
        return None
    if not isinstance(messages, list | tuple):
        return "messages must be a list"
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            return "messages must contain only objects"
        if problem := _problem_of_message(message):
            return f"messages[{number}].{problem}"
    return None


def _problem_of_message(message: Mapping[str, Any]) -> str | None:
    role = message.get("role")
    if not isinstance(role, str) or not role:
        return "role must be a non-empty string"
    for name in _MESSAGE_TEXTS:
        if not isinstance(message.get(name), str | None):
            return f"{name} must be a string"
    tokens, content = message.get("token_count"), message.get("content")
    if tokens is not None and not _is_count(tokens):
        return "token_count must be a whole number"
    if isinstance(content, int) and not -_LARGEST <= content <= _LARGEST:
        return "content must be a number that 64 bits hold"
    return None


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= _LARGEST


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _json_bytes(session: Mapping[str, Any]) -> int:
    return len(json.dumps(session, ensure_ascii=False, default=str).encode("utf-8", "replace"))
