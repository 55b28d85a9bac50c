"""What a provider's answer says: its text, the ids it names, whether it calls itself a failure, its output's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.contract.handler import JsonObject
from aip_hermes.contract.operation import SessionRule
from aip_hermes.hermes.exchange import Received
from aip_hermes.hermes.failures import RemoteTemporary

__all__ = ["answered_session", "failed_by_its_word", "health_output", "row_id", "text_of"]

_SESSION_HEADER = "x-hermes-session-id"


def answered_session(rule: SessionRule, output: Mapping[str, Any], received: Received) -> str | None:
    """Return the session that an answer is about, where its row says that it names one."""
    found: object = None
    if rule == "requested":
        found = row_id(output)
    elif rule == "answered":
        found = output.get("session_id")
    elif rule == "header":
        found = received.headers.get(_SESSION_HEADER)
    return found if isinstance(found, str) and found else None


def row_id(output: Mapping[str, Any]) -> str | None:
    """Return the id of the answered row, else of the answer itself."""
    session = output.get("session")
    found = session.get("id") if isinstance(session, Mapping) else output.get("id")
    return found if isinstance(found, str) and found else None


def text_of(output: Mapping[str, Any]) -> str | None:
    """Return the assistant's text of an answer: what a person reads first. None where it has none that is visible."""
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    holder = output if first is None else first
    message = holder.get("message") if isinstance(holder, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if content is None and output.get("object") == "response":
        content = "".join(_output_texts(output.get("output")))
    return content if isinstance(content, str) and content.strip() else None


def _output_texts(items: object) -> list[str]:
    """Return the texts of a response's messages, in order."""
    parts = [
        part
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, Mapping) and item.get("type") == "message" and isinstance(item.get("content"), list)
        for part in item["content"]
    ]
    return [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


def failed_by_its_word(output: Mapping[str, Any]) -> bool:
    """Whether a 2xx of a turn says of itself that the turn did not complete (design D20)."""
    hermes = output.get("hermes")
    if isinstance(hermes, Mapping) and (hermes.get("completed") is False or hermes.get("failed") is True):
        return True
    return output.get("object") == "response" and output.get("status") in ("failed", "incomplete", "cancelled")


def health_output(raw: JsonObject, received: Received, *, endpoint_id: str) -> JsonObject:
    """Return the output of a health check.

    Raises: RemoteTemporary when the endpoint does not say that it is well.
    """
    status = raw.get("status")
    status = status if isinstance(status, str) else "unknown"
    if status != "ok":
        raise RemoteTemporary(
            f"Hermes endpoint {endpoint_id} answers, but does not say that it is well. Ask again later.",
            endpoint_id=endpoint_id,
            provider={"status": received.status, "code": None, "message": None, "retry_after_ms": None},
            retryable=True,
        )
    known = {name: raw[name] for name in ("platform", "version") if isinstance(raw.get(name), str)}
    return {"endpoint_id": endpoint_id, "status": status, "http_status": received.status, "raw": raw} | known
