"""What a turn's message says: a text, or a list of text and image parts, read as release 0.19.0 reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = [
    "IMAGE_PARTS",
    "MAX_MESSAGE_CHARS",
    "MAX_MESSAGE_PARTS",
    "SCREENSHOT",
    "TEXT_PARTS",
    "part_kind",
    "part_text",
    "says_something",
    "stored_text",
]

MAX_MESSAGE_CHARS: Final = 65_536
"""An endpoint silently cuts a text, and each text part, here, in code points."""

MAX_MESSAGE_PARTS: Final = 1_000
"""An endpoint silently drops the parts of a turn beyond these."""

SCREENSHOT: Final = "[screenshot]"
"""What stands in the stored text for each image of a turn."""

TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
IMAGE_PARTS: Final = frozenset({"image_url", "input_image"})


def part_kind(part: Mapping[str, Any]) -> str:
    """Return the type of a part, in lower case and trimmed."""
    return str(part.get("type") or "").strip().lower()


def part_text(part: Mapping[str, Any]) -> str:
    """Return the text of a text part, cut; whatever is no text becomes one."""
    text = part.get("text")
    return "" if text is None else str(text)[:MAX_MESSAGE_CHARS]


def says_something(message: object) -> bool:
    """Tell whether an endpoint finds a message: a text that is not blank, an image, or a text part that is not blank.

    Bare texts in a list count for nothing here, although they are read where something else is said.
    """
    if isinstance(message, str):
        return bool(message.strip())
    parts = [part for part in message if isinstance(part, Mapping)] if isinstance(message, list) else []
    return any(
        part_kind(part) in IMAGE_PARTS or (part_kind(part) in TEXT_PARTS and bool(str(part.get("text") or "").strip()))
        for part in parts
    )


def stored_text(message: object) -> str | None:
    """Return a message as it is stored; None for what would not be stored.

    Of a list, texts that are not empty and a placeholder for each image are joined by newlines; other scalars vanish.
    """
    if isinstance(message, str):
        return message[:MAX_MESSAGE_CHARS]
    if not isinstance(message, list):
        return None
    lines = [_line(part) for part in message[:MAX_MESSAGE_PARTS]]
    return "\n".join(line for line in lines if line) or None


def _line(part: object) -> str:
    if isinstance(part, str):
        return part[:MAX_MESSAGE_CHARS]
    if not isinstance(part, Mapping):
        return ""
    kind = part_kind(part)
    return part_text(part) if kind in TEXT_PARTS else SCREENSHOT if kind in IMAGE_PARTS else ""
