"""The message of a turn: text, or a list of text and image parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.embedded.api.answers import Refusal
from aip_hermes.embedded.session_db.columns import scrubbed, text_of
from aip_hermes.hermes_api import MAX_MESSAGE_CHARS, MAX_MESSAGE_PARTS, HermesCode

__all__ = ["Content", "TurnInput", "check_parts", "content_of", "stored_text", "turn_input"]

_TEXT: Final = frozenset({"text", "input_text", "output_text"})
_IMAGE: Final = frozenset({"image_url", "input_image"})
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
    if isinstance(message, list) and any(_says_something(part) for part in message):
        parts = [_part(part, param) for part in message[:MAX_MESSAGE_PARTS]]
        if all(part["type"] == "text" for part in parts):
            return _cut("\n".join(part["text"] for part in parts))
        return parts
    return None


def check_parts(message: object, *, param: str) -> None:
    """Refuse a part of a kind that is not taken here, also in a message that says nothing."""
    for part in message if isinstance(message, list) else ():
        _part(part, param)


def stored_text(content: Content) -> str:
    """Return what the row of a message holds: its text, images as a placeholder."""
    return text_of(content)


def _says_something(part: object) -> bool:
    if not isinstance(part, Mapping):
        return False
    return _kind(part) in _IMAGE or (_kind(part) in _TEXT and bool(_text(part).strip()))


def _kind(part: Mapping[str, Any]) -> str:
    return str(part.get("type")).lower()


def _text(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    return "" if text is None else str(text)


def _part(part: object, param: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": _cut(part)}
    if not isinstance(part, Mapping):
        raise Refusal(400, "A content part is a text or an object", code=HermesCode.INVALID_CONTENT_PART, param=param)
    kind = _kind(part)
    if kind in _TEXT:
        return {"type": "text", "text": _cut(_text(part))}
    if kind in _IMAGE:
        return {"type": "image_url", "image_url": {"url": _image_url(part.get("image_url"), param)}}
    what = "Files are not supported here" if kind in _FILE else "Only text and image parts are supported"
    raise Refusal(400, what, code=HermesCode.UNSUPPORTED_CONTENT_TYPE, param=param)


def _image_url(image: object, param: str) -> str:
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url.strip():
        raise Refusal(400, "An image part needs an image URL", code=HermesCode.INVALID_IMAGE_URL, param=param)
    url = scrubbed(url.strip())
    if url.lower().startswith(("http://", "https://", "data:image/")):
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
