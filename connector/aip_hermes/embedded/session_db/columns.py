"""Rows and dictionaries: which keys callers see, and how values are stored.

Text is stored as it came, NUL and the empty string included; only lone surrogates, which no encoding can hold, become
U+FFFD. Lists and objects as content are stored as JSON behind a private mark and come back as lists and objects.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import structlog

from aip_hermes.embedded.session_db.json_text import json_text, json_value, shown
from aip_hermes.hermes_api import SCREENSHOT

__all__ = [
    "BYTES_MARK",
    "JSON_MARK",
    "MESSAGE_COLUMNS",
    "SESSION_COLUMNS",
    "SKILL_MARK",
    "as_command",
    "decoded_columns",
    "decoded_content",
    "decoded_tool_calls",
    "encoded_content",
    "message_parameters",
    "message_row",
    "preview_of",
    "scrubbed",
    "session_row",
    "text_of",
    "timestamp_of",
]

log = structlog.get_logger(__name__)

SESSION_COLUMNS: Final = (
    "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json",
    "expiry_finalized", "model", "model_config", "system_prompt", "system_prompt_hash", "parent_session_id",
    "started_at", "ended_at", "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cwd", "git_branch", "git_repo_root",
    "billing_provider", "billing_base_url", "billing_mode", "estimated_cost_usd", "actual_cost_usd",
    "cost_status", "cost_source", "pricing_version", "title", "title_source", "last_activity_at",
    "last_activity_description", "last_activity_provenance", "api_call_count", "handoff_state",
    "handoff_platform", "handoff_error", "compression_failure_cooldown_until", "compression_failure_error",
    "compression_fallback_streak", "compression_ineffective_count", "profile_name", "rewind_count", "archived",
    "pinned", "hidden", "last_read_at",
)  # fmt: skip
"""Keys of a session dictionary."""

MESSAGE_COLUMNS: Final = (
    "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "effect_disposition",
    "timestamp", "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
    "codex_reasoning_items", "codex_message_items", "platform_message_id", "observed", "active", "compacted",
    "api_content", "display_kind", "display_metadata",
)  # fmt: skip
"""Keys of a message dictionary."""

JSON_MARK: Final = "\0json:"
BYTES_MARK: Final = "\0bytes:"
"""Before bytes as base64, in a column that takes texts alone."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LARGEST = 2**63 - 1
_PREVIEW_CHARS = 60
SKILL_MARK: Final = "[IMPORTANT: The user has invoked the "
"""How the text of an invoked skill begins."""

_SKILL = re.compile(re.escape(SKILL_MARK) + r'"(?P<name>[^"\n]+)" skill')
_SKILL_INSTRUCTION = re.compile(
    r"(?:alongside the skill invocation: |\nUser instruction: )\s*(?P<text>\S.*?)\s*(?:\n\n\[|\Z)", re.DOTALL
)
_REASONING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items")


def scrubbed(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def session_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session dictionary; `system_prompt` is None where the query left it out."""
    return {name: record.get(name) for name in SESSION_COLUMNS}


def message_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message dictionary: content and tool calls decoded, display metadata as an object."""
    return decoded_columns({name: record[name] for name in MESSAGE_COLUMNS})


def decoded_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Decode content, tool calls and display metadata of a stored row in their place; returns `row`."""
    row["content"] = decoded_content(row["content"])
    if row["tool_calls"] is not None:
        row["tool_calls"] = decoded_tool_calls(row["tool_calls"])
    if row["display_metadata"] is not None:
        row["display_metadata"] = _metadata(row["display_metadata"])
    return row


def message_parameters(
    session_id: str, message: Mapping[str, Any], *, default_timestamp: float, batch: bool = False
) -> dict[str, Any]:
    """Return the parameters of an insert for one message, given by column names.

    batch: `message_id` stands for `platform_message_id`, and reasoning is taken from assistant messages only.
    """
    role = str(message.get("role") or "unknown")
    calls = decoded_tool_calls(message.get("tool_calls"))
    values: dict[str, Any] = {
        "session_id": session_id,
        "role": scrubbed(role),
        "content": encoded_content(message.get("content")),
        "tool_calls": None if calls is None else _dumped(calls),
        "tool_call_total": 0 if calls is None else len(calls),
        "timestamp": timestamp_of(message.get("timestamp"), default=default_timestamp),
        "token_count": _count(message.get("token_count")),
        "observed": int(bool(message.get("observed"))),
        "active": int(message.get("active", 1) not in (0, False)),
        "compacted": int(bool(message.get("compacted"))),
        "display_metadata": _metadata_text(message.get("display_metadata")),
    }
    for name in ("tool_call_id", "tool_name", "effect_disposition", "finish_reason", "api_content", "display_kind"):
        values[name] = _text(message.get(name))
    for name in ("reasoning", "reasoning_content"):
        values[name] = _text(message.get(name))
    for name in ("reasoning_details", "codex_reasoning_items", "codex_message_items"):
        values[name] = _json_text(message.get(name))
    platform_id = message.get("platform_message_id")
    values["platform_message_id"] = _text(message.get("message_id") if batch and platform_id is None else platform_id)
    if batch and role != "assistant":
        values.update(dict.fromkeys(_REASONING))
    return values


def decoded_tool_calls(value: object) -> list[Any] | None:
    """Return the calls as a list; a JSON text is decoded first, an undecodable one is an empty list."""
    if value is None:
        return None
    if isinstance(value, str):
        value = json_value(value)
    return list(value) if isinstance(value, list | tuple) else []


def text_of(content: object) -> str:
    """Return what a person would read of a content: text parts joined by newlines, images as a placeholder."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    lines: list[str] = []
    for part in content:
        if isinstance(part, str):
            lines.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            lines.append(part["text"])
        elif isinstance(part, Mapping) and "image" in str(part.get("type", "")):
            lines.append(SCREENSHOT)
    return "\n".join(lines)


def preview_of(content: object) -> str:
    """Return the first 60 characters on one line, `...` where something was cut; a skill as its command."""
    text = as_command(scrubbed(text_of(content))).replace("\r\n", " ").replace("\n", " ").replace("\r", " ").strip()
    return text if len(text) <= _PREVIEW_CHARS else text[:_PREVIEW_CHARS] + "..."


def as_command(text: str) -> str:
    """Return `/name — instruction` for the text of an invoked skill; any other text as it is."""
    skill = _SKILL.match(text)
    if skill is None:
        return text
    instruction = _SKILL_INSTRUCTION.search(text)
    return f"/{skill['name']}" + (f" — {instruction['text']}" if instruction else "")


def timestamp_of(value: object, *, default: float) -> float:
    """Return Unix seconds for a number or an object with `.timestamp()`; anything else is the default."""
    if value is None or isinstance(value, bool):
        return default
    try:
        method = getattr(value, "timestamp", None)
        seconds = float(method()) if callable(method) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return default
    return seconds if math.isfinite(seconds) else default


def encoded_content(value: object) -> object:
    """Return what is stored for a content: text and numbers as they are, lists and objects as marked JSON."""
    if value is None or isinstance(value, bytes) or _is_number(value):
        return value
    if isinstance(value, str):
        text = scrubbed(value)
        return JSON_MARK + json.dumps(text) if text.startswith((JSON_MARK, BYTES_MARK)) else text
    if isinstance(value, list | tuple | Mapping):
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            return scrubbed(shown(value))
        except RecursionError:
            pass  # its deeper part becomes a text
        return JSON_MARK + _dumped(value)
    return scrubbed(shown(value))


def decoded_content(value: object) -> object:
    """Return a stored content as it was given: what stands behind a mark is decoded."""
    if not isinstance(value, str) or not value.startswith("\0"):
        return value
    if value.startswith(JSON_MARK):
        text = value[len(JSON_MARK) :]
        return json_value(text, default=text)
    if value.startswith(BYTES_MARK):
        return base64.b64decode(value[len(BYTES_MARK) :])
    return value


def _dumped(value: object) -> str:
    # Characters as they are: a lone surrogate can't hide in an escape.
    return scrubbed(json_text(value))


def _text(value: object) -> str | None:
    return None if value is None else scrubbed(value if isinstance(value, str) else shown(value))


def _is_number(value: object) -> bool:
    """Whether an engine can keep it as a number."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and -_LARGEST <= value <= _LARGEST


def _count(value: object) -> int | None:
    """Return a whole number of tokens; None for what is no possible one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        return None
    return int(value)


def _json_text(value: object) -> str | None:
    if value is None:
        return None
    return scrubbed(value) if isinstance(value, str) else _dumped(value)


def _metadata(value: object) -> dict[str, Any] | None:
    for _ in range(2):
        if isinstance(value, str):
            value = json_value(value)
    return dict(value) if isinstance(value, Mapping) else None


def _metadata_text(value: object) -> str | None:
    if value is None:
        return None
    metadata = _metadata(value)
    if metadata is None:
        log.warning("session_db.display_metadata_dropped", kind=type(value).__name__)
        return None
    return _dumped(metadata)
