"""What completions, responses and runs are asked: the turn, what came before it, and the session that takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from aip_hermes.embedded.api.answers import Refusal, header_refusal
from aip_hermes.embedded.api.message_input import Content, check_parts, content_of, stored_text
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.hermes_api import MAX_SESSION_ID_CHARS, HermesCode, refused_new_id

__all__ = [
    "Exchange",
    "asked_model",
    "completion_input",
    "flag",
    "given_session_id",
    "opening_session_id",
    "response_input",
    "run_session_id",
]

_ROLES: Final = ("user", "assistant")
_TRUNCATED: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A turn and what it follows. history: as sent; None where none was. system: joined system text, or None."""

    content: Content
    stored_text: str
    history: list[dict[str, Any]] | None
    system: str | None
    previous_id: str | None = None
    conversation: str | None = None
    store: bool = True
    truncate: bool = False

    def cut(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the history, its last 100 messages only where the request says so."""
        return history[-_TRUNCATED:] if self.truncate else history


def completion_input(body: Mapping[str, Any]) -> Exchange:
    """Read `messages`: system texts joined, the last message is the turn. Refused with 400."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise header_refusal("Missing or invalid 'messages' field")
    system: list[str] = []
    said: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise Refusal(400, f"messages[{index}] must be an object", param=f"messages[{index}]")
        content = _content(message.get("content"), param=f"messages[{index}].content")
        if message.get("role") == "system":
            system += [stored_text(content)] if content else []
        elif message.get("role") in _ROLES:
            said.append({"role": message["role"], "content": content or ""})
    if not said or not said[-1]["content"]:
        raise header_refusal("No user message found in messages")
    *history, turn = said
    return Exchange(
        content=turn["content"],
        stored_text=stored_text(turn["content"]),
        history=history,
        system="\n".join(system) or None,
    )


def response_input(body: Mapping[str, Any]) -> Exchange:
    """Read the body of a response or a run. Refused with 400."""
    given = body.get("input")
    if given is None:
        raise Refusal(400, "Missing 'input' field")
    if not isinstance(given, str | list):
        raise Refusal(400, "'input' must be a string or array")
    entries = [given] if isinstance(given, str) else given
    said = [_entry(entry, index) for index, entry in enumerate(entries)]
    if not said or not said[-1]["content"]:
        raise Refusal(400, "No user message found in input")
    *before, turn = said
    history = _history(body.get("conversation_history"))
    previous_id, conversation = _text(body, "previous_response_id"), _text(body, "conversation")
    if previous_id and conversation:
        raise Refusal(400, "Cannot use both 'conversation' and 'previous_response_id'")
    return Exchange(
        content=turn["content"],
        stored_text=stored_text(turn["content"]),
        history=history if history is not None else before or None,
        system=_text(body, "instructions"),
        previous_id=previous_id,
        conversation=conversation,
        store=flag(body.get("store"), default=True),
        truncate=body.get("truncation") == "auto",
    )


def run_session_id(body: Mapping[str, Any]) -> str | None:
    """Return the session that a run names. Refused with 400 where it could not be the id of a new one."""
    value = _text(body, "session_id")
    if value is None:
        return None
    if problem := refused_new_id(value.strip()):
        raise Refusal(400, f"Invalid session ID: {problem}", code=HermesCode.INVALID_SESSION_ID)
    return value.strip()


def given_session_id(request: Request) -> str | None:
    """Return the session of the header, None where it is absent or blank. Refused with 400."""
    value = request.headers.get("x-hermes-session-id", "").strip().encode("latin-1").decode("utf-8", "replace")
    if not value:
        return None
    if len(value) > MAX_SESSION_ID_CHARS:
        raise header_refusal("Session ID too long")
    if refused_new_id(value):
        raise header_refusal("Invalid session ID")
    return value


def opening_session_id(exchange: Exchange) -> str:
    """Return the session of a conversation that names none: the same opening gives the same one."""
    first = next((m["content"] for m in exchange.history or [] if m["role"] == "user"), exchange.content)
    opening = f"{exchange.system or ''}\n{stored_text(first)}"
    return "api-" + hashlib.sha256(opening.encode()).hexdigest()[:16]


def asked_model(body: Mapping[str, Any], default: str) -> str:
    """Return the model name that the answer repeats. It chooses nothing."""
    model = body.get("model")
    return model if isinstance(model, str) and model else default


def flag(value: object, *, default: bool = False) -> bool:
    """Return a switch that may come as a boolean or as text."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "0", "false", "no", "off")
    return default if value is None else bool(value)


def _content(value: object, *, param: str) -> Content | None:
    check_parts(value, param=param)
    return content_of(value, param=param)


def _entry(entry: object, index: int) -> dict[str, Any]:
    param = f"input[{index}]"
    if isinstance(entry, str):
        return {"role": "user", "content": _content(entry, param=param)}
    if not isinstance(entry, Mapping):
        raise Refusal(400, f"{param} must be a string or an object", param=param)
    role = entry.get("role") if entry.get("role") in _ROLES else "user"
    return {"role": role, "content": _content(entry.get("content"), param=f"{param}.content")}


def _history(value: object) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise Refusal(400, "'conversation_history' must be an array of message objects")
    history: list[dict[str, Any]] = []
    for index, entry in enumerate(value):
        if not isinstance(entry, Mapping) or "role" not in entry or "content" not in entry:
            raise Refusal(400, f"conversation_history[{index}] must have 'role' and 'content' fields")
        content = _content(entry["content"], param=f"conversation_history[{index}].content")
        if entry["role"] in _ROLES:
            history.append({"role": entry["role"], "content": content or ""})
    return history


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise Refusal(400, f"'{name}' must be a string")
    return scrubbed(value) if value and value.strip() else None
