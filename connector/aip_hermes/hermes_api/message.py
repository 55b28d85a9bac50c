"""Hermes' message object: one row of a transcript as the messages route shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["MAX_MESSAGE_CHARS", "MAX_MESSAGE_PARTS", "MESSAGE_FIELDS", "SCREENSHOT", "message_object"]

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

MAX_MESSAGE_CHARS: Final = 65_536
"""An endpoint silently cuts the text of a turn here, in code points."""

MAX_MESSAGE_PARTS: Final = 1_000
"""An endpoint silently drops the parts of a turn beyond these."""

SCREENSHOT: Final = "[screenshot]"
"""What stands in the stored text for each image of a turn."""


def message_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the 12 members for a stored row."""
    return {name: row[name] for name in MESSAGE_FIELDS}
