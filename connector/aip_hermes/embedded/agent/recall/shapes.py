"""How sessions and messages look in a result: short enough for a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from aip_hermes.embedded.session_db.columns import text_of
from aip_hermes.embedded.session_db.compression import SUMMARY_MARK

__all__ = ["BOOKEND_CHARS", "Row", "is_summary", "is_visible", "link", "profile_of", "session_meta", "shown", "when"]

Row = Mapping[str, Any]

TEXT_CHARS: Final = 4_000
BOOKEND_CHARS: Final = 1_200

_OWN_PROFILE: Final = "default"


def when(seconds: float | None) -> str:
    """Return local time as `November 30, 2026 at 08:10 PM`; empty for what is no time."""
    try:
        return datetime.fromtimestamp(seconds or 0, tz=UTC).astimezone().strftime("%B %d, %Y at %I:%M %p")
    except (ValueError, OverflowError, OSError):
        return ""


def profile_of(row: Row) -> str:
    """Return the profile that a session belongs to."""
    return row.get("profile_name") or _OWN_PROFILE


def link(row: Row) -> str:
    """Return how a session is named in a conversation."""
    return f"@session:{profile_of(row)}/{row['id']}"


def session_meta(row: Row) -> dict[str, Any]:
    """Return when it was, where, with whom and under which title."""
    return {
        "when": when(row["started_at"]),
        "source": row["source"],
        "model": row["model"],
        "title": row["title"],
    }


def is_visible(message: Row) -> bool:
    """Tell whether a message was not taken back."""
    return bool(message["active"] or message["compacted"])


def is_summary(message: Row) -> bool:
    """Tell whether a message stands for others that were left out."""
    return message["display_kind"] == "hidden" or text_of(message["content"]).startswith(SUMMARY_MARK)


def shown(messages: Iterable[Row], *, anchor: int | None = None, chars: int = TEXT_CHARS) -> list[dict[str, Any]]:
    """Return `{id, role, content, timestamp}` and what else there is: tool names, `anchor`, and how much was cut."""
    return [_message(message, anchor=anchor, chars=chars) for message in messages]


def _message(message: Row, *, anchor: int | None, chars: int) -> dict[str, Any]:
    text = text_of(message["content"])
    found: dict[str, Any] = {
        "id": message["id"],
        "role": message["role"],
        "content": text[:chars],
        "timestamp": message["timestamp"],
    }
    if message["tool_name"]:
        found["tool_name"] = message["tool_name"]
    if message["tool_calls"]:
        found["tool_calls"] = [_called(call) for call in message["tool_calls"]]
    if message["id"] == anchor:
        found["anchor"] = True
    if len(text) > chars:
        found |= {"content_truncated": True, "original_content_chars": len(text)}
    return found


def _called(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""
