"""What a transcript holds for the machinery alone, and a model or a person must not read back.

Stored rows stay as they are; this cleans the messages that are made of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["cleaned", "cleaned_text", "without_replays"]

_RECALLED: Final = re.compile(r"<\s*memory-context\s*>.*?</\s*memory-context\s*>", re.IGNORECASE | re.DOTALL)
_NOTE: Final = re.compile(
    r"\[System note:\s*The following is recalled memory context,\s*NOT new user input\.[^\]]*\]\s*", re.IGNORECASE
)
_FENCE: Final = re.compile(r"</?\s*memory-context\s*>", re.IGNORECASE)
_FENCE_NAME, _NOTE_NAME = "memory-context", "recalled memory context"
_NAME_ONLY: Final = re.compile(r"\[[^\[\]\n]+\]")
_REVIEWS: Final = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
_CLEANED: Final = frozenset({"user", "assistant"})
_INSTRUCTING: Final = frozenset({"user", "system"})


def cleaned_text(text: str) -> str:
    """Return `text` without recalled memory and its fences, trimmed."""
    # Asked of every message of every transcript, and hardly one holds a bracket: looking for one costs nothing.
    if "<" in text or "[" in text:
        folded = text.lower()
        if _FENCE_NAME in folded or _NOTE_NAME in folded:
            text = _FENCE.sub("", _NOTE.sub("", _RECALLED.sub("", text)))
    return text.strip()


def cleaned(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clean messages in the form that a model reads, in their place; returns those that stay.

    Recalled memory leaves user and assistant texts. An instruction of a background review goes, with the assistant's
    answer right after it. A text that only names the tool that is called becomes empty.
    """
    kept: list[dict[str, Any]] = []
    reviewed = False
    for message in messages:
        role = message["role"]
        answers_review, reviewed = reviewed and role == "assistant", False
        if type(content := message["content"]) is str:
            if role in _CLEANED:
                content = message["content"] = cleaned_text(content)
            if role in _INSTRUCTING and content.lstrip().startswith(_REVIEWS):
                reviewed = True
                continue
            if content[:1] == "[" and role == "assistant" and "tool_calls" in message and _NAME_ONLY.fullmatch(content):
                message["content"] = ""
        if not answers_review:
            kept.append(message)
    return kept


def without_replays(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without a user's text that only says again what the user said last, unanswered."""
    kept: list[dict[str, Any]] = []
    unanswered: object = None
    for message in messages:
        if message["role"] == "user":
            if unanswered is not None and message["content"] == unanswered:
                continue
            unanswered = message["content"]
        elif message["role"] == "assistant" and (_says_something(message["content"]) or message.get("tool_calls")):
            unanswered = None
        kept.append(message)
    return kept


def _says_something(content: object) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)
