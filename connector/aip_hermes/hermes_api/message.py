"""Hermes' message object: one row of a transcript as the messages route shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MESSAGE_FIELDS", "message_object"]

MESSAGE_FIELDS: Final = (
    "id",
    "session_id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
)
"""The 12 members of a message object, always all; ordered by `id`, which grows over the whole store and has gaps."""


def message_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the 12 members for a stored row. A content of bytes, which JSON has not, is read as UTF-8."""
    shown = {name: row[name] for name in MESSAGE_FIELDS}
    if isinstance(shown["content"], bytes):
        shown["content"] = shown["content"].decode("utf-8", "replace")
    return shown
