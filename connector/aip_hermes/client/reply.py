"""Reading answers: first the error, then the outcome of the action, never the HTTP status alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aip_hermes.client.failures import HttpFailed, PeerError, Undecodable
from aip_hermes.client.http import HttpAnswer

__all__ = ["JsonObject", "Outcome", "Reply", "outcome_of", "parsed", "protocol_error", "read_body", "read_envelope"]

JsonObject = dict[str, Any]

Outcome = Literal["completed", "pending", "cancelled", "failed", "connector_failed", "uncertain"]
"""How an action stands, for somebody who must decide what to do next.

pending: waits for an approval, for input, or in a queue. connector_failed: the provider failed or refused, certainly.
failed: every other certain failure. uncertain: the provider's effect may have happened, whatever the status says.
"""

_SHOWN_CHARS = 2_000
_MAX_DEPTH = 256
"""Twice what a message may nest: an output is wrapped, and its text can still be written with indents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An envelope that is no error.

    envelope: as it was received, unknown members included. body: the value of its one body key.
    """

    http_status: int
    envelope: JsonObject
    body_key: str
    body: JsonObject

    @property
    def result(self) -> JsonObject | None:
        """The `action_result`, or None where something else was answered (an `ack`, events)."""
        return self.body if self.body_key == "action_result" else None

    @property
    def outcome(self) -> Outcome:
        """See Outcome; `completed` for anything that reports no action."""
        if self.body_key == "ack":
            return "failed" if self.body.get("status") == "rejected" else "pending"
        return "completed" if self.result is None else outcome_of(self.result)


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """Judge an `action_result`. A status that nobody knows is no success."""
    error = result.get("error")
    error = error if isinstance(error, Mapping) else {}
    details = error.get("details")
    if isinstance(details, Mapping) and details.get("uncertain_outcome") is True:
        return "uncertain"
    match result.get("status"):
        case "completed":
            return "completed"
        case "pending_approval" | "requires_human":
            return "pending"
        case "cancelled":
            return "cancelled"
        case _:
            return "connector_failed" if str(error.get("code", "")).startswith("connector.") else "failed"


def read_envelope(answer: HttpAnswer, *, message_id: str) -> Reply:
    """Read the answer to a post of the message `message_id`.

    Raises: PeerError for an error body; HttpFailed for an error status without one; Undecodable for anything that is no
    envelope or answers another message. The last two are uncertain unless the status proves that nothing was done.
    """
    raw = parsed(answer.content)
    error = protocol_error(raw)
    if error is not None:
        raise PeerError(error, http_status=answer.status)
    if not 200 <= answer.status < 300:
        raise HttpFailed(
            f"AIP request failed with HTTP {answer.status} without a protocol error",
            http_status=answer.status,
            uncertain=answer.status >= 500,
        )
    problem = _envelope_problem(raw, message_id=message_id)
    if problem:
        raise Undecodable(
            f"AIP response is not a valid envelope: {problem}; HTTP {answer.status}; body={_shown(answer)}",
            http_status=answer.status,
            uncertain=True,
        )
    body_key, body = next(iter(raw["body"].items()))
    return Reply(http_status=answer.status, envelope=raw, body_key=body_key, body=body)


def read_body(answer: HttpAnswer, *, expected: str, what: str = "AIP HTTP GET", changes: bool = False) -> JsonObject:
    """Read an answer that is no envelope: an object with the member `expected`, returned whole.

    what: begins the message. changes: whether the request could change something; without it every failure is certain.
    Raises: PeerError, HttpFailed, Undecodable.
    """
    raw = parsed(answer.content)
    failed = f"{what} failed with HTTP {answer.status}: {_shown(answer)}"
    error = protocol_error(raw)
    if error is not None:
        raise PeerError(error, http_status=answer.status, report=failed)
    if not 200 <= answer.status < 300:
        raise HttpFailed(failed, http_status=answer.status, uncertain=changes and answer.status >= 500)
    if not isinstance(raw, dict) or expected not in raw:
        raise Undecodable(
            f"AIP response has no `{expected}`; HTTP {answer.status}; body={_shown(answer)}",
            http_status=answer.status,
            uncertain=changes,
        )
    return raw


def parsed(content: bytes) -> Any:
    """Return the value of the content, or None where it is no UTF-8 JSON that means one thing and can be printed again.

    A lone surrogate is read: an endpoint may have stored one, and escaped it is legal JSON.
    """
    try:
        text = content.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return None if _deeper_than(value, _MAX_DEPTH) else value


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a member is repeated: two readers could understand two things")
    return value


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        if not level:
            return False
        level = [inner for outer in level for inner in _children(outer)]
    return bool(level)


def _children(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is out of range")
    return value


def protocol_error(raw: Any) -> Mapping[str, Any] | None:
    """Find the error of an envelope (`body.error.error`), or of a stream or the catalogue (`error`)."""
    if not isinstance(raw, dict):
        return None
    body = raw.get("body")
    holder = body.get("error") if isinstance(body, dict) else raw
    error = holder.get("error") if isinstance(holder, dict) else None
    return error if isinstance(error, dict) and isinstance(error.get("code"), str) else None


def _envelope_problem(raw: Any, *, message_id: str) -> str | None:
    if not isinstance(raw, dict):
        return "no JSON object"
    body = raw.get("body")
    if not isinstance(body, dict) or len(body) != 1:
        return "`body` has not exactly one member"
    [(key, value)] = body.items()
    if not isinstance(value, dict):
        return "the member of `body` is no object"
    if key == "action_result" and not isinstance(value.get("status"), str):
        return "the result has no status"
    if raw.get("in_response_to") not in (None, message_id):
        return "it answers another message"
    return None


def _shown(answer: HttpAnswer) -> str:
    text = answer.content.decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}… ({len(text)} characters)"
