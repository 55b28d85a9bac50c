"""The message of a turn: text, or a list of text and image parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.embedded.api.answers import Refusal
from aip_hermes.embedded.session_db.columns import scrubbed, text_of
from aip_hermes.hermes_api import (
    IMAGE_PARTS,
    MAX_MESSAGE_CHARS,
    MAX_MESSAGE_PARTS,
    TEXT_PARTS,
    HermesCode,
    part_kind,
    part_text,
    says_something,
)

__all__ = ["Content", "TurnInput", "check_parts", "content_of", "stored_text", "turn_input"]

_FILE: Final = frozenset({"file", "input_file"})

Content = str | list[dict[str, Any]]
"""What a model reads: text, or OpenAI content parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnInput:
    """content: what the model reads. stored_text: what the user row holds, images as a placeholder."""

    content: Content
    stored_text: str
    system_message: str | None


def turn_input(body: Mapping[str, Any]) -> TurnInput:
    """Read `message` (else `input`) and `system_message` (else `instructions`) of a turn.

    Falsy values count as absent. Refused with 400: no message, one that says nothing (no image and no text part with
    text), then a part that is neither text nor image, a system message that is no text.
    Text is cut at 65,536 characters, a list at 1,000 parts, as Hermes does.
    """
    content = content_of(body.get("message") or body.get("input"), param="message")
    if content is None:
        raise Refusal(400, "Missing 'message' field", code=HermesCode.MISSING_MESSAGE)
    return TurnInput(content=content, stored_text=stored_text(content), system_message=_system_message(body))


def content_of(message: object, *, param: str) -> Content | None:
    """Return the content of a message; None where it says nothing. param: what a refusal of a part names."""
    if isinstance(message, str) and message.strip():
        return _cut(message)
    if isinstance(message, list) and says_something(message):
        parts = [part for given in message[:MAX_MESSAGE_PARTS] if (part := _part(given, param)) is not None]
        if all(part["type"] == "text" for part in parts):
            return "\n".join(part["text"] for part in parts)
        return parts
    return None


def check_parts(message: object, *, param: str) -> None:
    """Refuse a part of a kind that is not taken here, also in a message that says nothing."""
    for part in message if isinstance(message, list) else ():
        _part(part, param)


def stored_text(content: Content) -> str:
    """Return what the row of a message holds: its text, images as a placeholder."""
    return text_of(content)


def _part(part: object, param: str) -> dict[str, Any] | None:
    """Return one part for a model; None for an empty text and for a bare number, which say nothing."""
    if not isinstance(part, Mapping):
        return {"type": "text", "text": _cut(part)} if isinstance(part, str) and part else None
    kind = part_kind(part)
    if kind in TEXT_PARTS:
        text = part_text(part)
        return {"type": "text", "text": scrubbed(text)} if text else None
    if kind in IMAGE_PARTS:
        return {"type": "image_url", "image_url": _image(part, param)}
    what = "Files are not supported here" if kind in _FILE else "Only text and image parts are supported"
    raise Refusal(400, what, code=HermesCode.UNSUPPORTED_CONTENT_TYPE, param=param)


def _image(part: Mapping[str, Any], param: str) -> dict[str, Any]:
    image, detail = part.get("image_url"), part.get("detail")
    if isinstance(image, Mapping):
        detail = image.get("detail", detail)
    url = {"url": _image_url(image, param)}
    if detail is None:
        return url
    if not isinstance(detail, str) or not detail.strip():
        what = "The detail of an image is a text that is not blank"
        raise Refusal(400, what, code=HermesCode.INVALID_CONTENT_PART, param=param)
    return url | {"detail": scrubbed(detail.strip())}


def _image_url(image: object, param: str) -> str:
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url.strip():
        raise Refusal(400, "An image part needs an image URL", code=HermesCode.INVALID_IMAGE_URL, param=param)
    url = scrubbed(url.strip())
    if url.lower().startswith(("http://", "https://")) or (url.lower().startswith("data:image/") and "," in url):
        return url
    if url.lower().startswith("data:"):
        what = "Only image data URLs are supported"
        raise Refusal(400, what, code=HermesCode.UNSUPPORTED_CONTENT_TYPE, param=param)
    what = "An image is an http(s) URL or a data:image/… URL"
    raise Refusal(400, what, code=HermesCode.INVALID_IMAGE_URL, param=param)


def _system_message(body: Mapping[str, Any]) -> str | None:
    value = body.get("system_message") or body.get("instructions")
    if value and not isinstance(value, str):
        raise Refusal(400, "system_message must be a string", code=HermesCode.INVALID_SYSTEM_MESSAGE)
    return scrubbed(value) if isinstance(value, str) and value.strip() else None


def _cut(text: str) -> str:
    return scrubbed(text[:MAX_MESSAGE_CHARS])
