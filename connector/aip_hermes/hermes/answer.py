"""What an exchange proved: success, certain failure, or an effect that may have happened.

Certain means provable, see hermes_api.judgement. A broken connection proves nothing about a mutation once something was
sent; no connection proves that nothing was done. Source: design D10, D11; connector contract §13.1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.contract.operation import ConfirmRule
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import ExchangeFailed, Received
from aip_hermes.hermes.failures import (
    Authentication,
    HermesFailed,
    InvalidResponse,
    RemoteRejected,
    RemoteTemporary,
    SessionBusy,
    TransportFailed,
)
from aip_hermes.hermes.wording import Subject, step_after
from aip_hermes.hermes_api import judge_status, looks_like_markup
from aip_hermes.redact import redact_text

__all__ = ["Asked", "clean_text", "failure_of", "output_of"]

_KINDS: Final[Mapping[str, type[HermesFailed]]] = {
    "authentication": Authentication,
    "not_started": RemoteTemporary,
    "busy": SessionBusy,
    "temporary": RemoteTemporary,
    "rejected": RemoteRejected,
}

_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TAG: Final = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_MAX_MESSAGE_CHARS: Final = 300
_MAX_EXCERPT_BYTES: Final = 8_192
_MAX_RETRY_AFTER_MS: Final = 86_400_000
_MAX_DEPTH: Final = 100  # an AIP message holds 128, and an output stands some levels inside
_MAX_DIGITS: Final = 308
_HALF_PAIR: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALF: Final = re.compile("[\ud800-\udfff]")
_LONG_NUMBER: Final = re.compile(rf"[0-9]{{{_MAX_DIGITS}}}")

_BROKEN: Final[Mapping[str, str]] = {
    "refused": "refused the connection",
    "unreachable": "could not be reached",
    "unresolved": "has a host name that could not be resolved",
    "connect_timeout": "did not accept a connection in time",
    "tls": "could not agree on TLS",
    "proxy": "could not be reached through the configured proxy",
    "timeout": "did not answer in time",
    "idle": "sent nothing any more, not even a sign of life",
    "broken": "broke the connection off before its answer was complete",
    "too_large": "answered with more than the connector accepts",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What was sent, as far as an answer is judged by it.

    mutation: whether the request may change anything. confirm: of its row. hidden: texts of the caller that a provider
    message must not repeat, beside the endpoint's key.
    """

    endpoint: Endpoint
    subject: Subject
    mutation: bool
    confirm: ConfirmRule = "none"
    hidden: tuple[str, ...] = ()


def output_of(asked: Asked, received: Received, *, now_ms: int) -> JsonObject:
    """Return the JSON object of a success.

    Raises: HermesFailed for everything else. now_ms: what a `Retry-After` date is counted from.
    """
    if not 200 <= received.status < 300:
        raise _refusal(asked, received, now_ms)
    value = _json(received.body)
    if isinstance(value, dict):
        return value
    what = "an empty body" if not received.body.strip() else "something that is no JSON object"
    raise InvalidResponse(
        f"{asked.subject.said} answered HTTP {received.status} with {what}."
        f" {step_after(asked.subject, uncertain=asked.mutation, mutation=asked.mutation)}",
        endpoint_id=asked.endpoint.id,
        session_id=asked.subject.session_id,
        details=asked.subject.ids,
        provider={"status": received.status, "code": None, "message": None, "retry_after_ms": None},
        uncertain=asked.mutation,
    )


def failure_of(asked: Asked, failed: ExchangeFailed) -> HermesFailed:
    """Return the failure of an exchange that brought no whole answer. Its text is fixed and holds no address."""
    uncertain = asked.mutation and failed.sent
    kind: type[HermesFailed] = InvalidResponse if failed.reason == "too_large" else TransportFailed
    sentence = f"{asked.subject.said} {_BROKEN[failed.reason]}."
    if failed.reason == "too_large" and not asked.mutation:
        step = "Ask for less, or read the session at the endpoint itself."
    else:
        step = step_after(
            asked.subject,
            uncertain=uncertain,
            mutation=asked.mutation,
            sent=failed.sent,
            retryable=kind is TransportFailed and not uncertain,
            reason=failed.reason,
        )
    return kind(
        f"{sentence} {step}",
        endpoint_id=asked.endpoint.id,
        session_id=asked.subject.session_id,
        provider=None
        if failed.status is None
        else {"status": failed.status, "code": None, "message": None, "retry_after_ms": None},
        details={**asked.subject.ids, "reason": failed.reason, "sent": failed.sent},
        retryable=kind is TransportFailed and not uncertain,
        uncertain=uncertain,
    )


def _refusal(asked: Asked, received: Received, now_ms: int) -> HermesFailed:
    provider = _provider(asked, received, now_ms)
    said, uncertain, retryable = judge_status(
        received.status,
        provider["code"],
        changes=asked.mutation,
        forks=asked.confirm == "fork",
        markup=_markup(received),
    )
    wait_ms = provider["retry_after_ms"]
    code = f" `{provider['code']}`" if provider["code"] else ""
    step = step_after(
        asked.subject,
        uncertain=uncertain,
        mutation=asked.mutation,
        status=received.status,
        code=provider["code"],
        known=isinstance(told := _json(received.body), dict) and "error" in told,
        retryable=retryable,
        retry_after_ms=wait_ms,
    )
    return _KINDS[said](
        f"{asked.subject.said} answered HTTP {received.status}{code}. {step}",
        endpoint_id=asked.endpoint.id,
        session_id=asked.subject.session_id,
        details=asked.subject.ids,
        provider=provider,
        retryable=retryable,
        retry_after_ms=wait_ms if retryable else None,
        uncertain=uncertain,
    )


def _provider(asked: Asked, received: Received, now_ms: int) -> JsonObject:
    """Return what is kept of the answer: status, code, a bounded text without credentials, and the asked wait (D10)."""
    code: object = None
    message: object = None
    value = _json(received.body)
    if isinstance(value, dict):
        error = value.get("error")
        if isinstance(error, dict):
            code, message = error.get("code"), error.get("message")
        else:
            message = error
    elif value is None:
        message = _excerpt(received)
    return {
        "status": received.status,
        "code": _clean_code(asked, code),
        "message": clean_text(asked, message) if isinstance(message, str) and message.strip() else None,
        "retry_after_ms": _retry_after_ms(received.headers.get("retry-after"), now_ms),
    }


def clean_text(asked: Asked, text: str) -> str:
    """Return a provider's text without credentials and addresses, on one line, bounded."""
    for hidden in asked.hidden:
        text = text.replace(hidden, "[redacted]")
    text = redact_text(text, secrets=(asked.endpoint.key,))
    for address in (asked.endpoint.base_url.rstrip("/"), asked.endpoint.authority):
        text = text.replace(address, "[endpoint]")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[: _MAX_MESSAGE_CHARS - 1] + "…"


def _clean_code(asked: Asked, code: object) -> str | None:
    if not isinstance(code, str) or not _CODE.fullmatch(code) or clean_text(asked, code) != code:
        return None
    return code


def _excerpt(received: Received) -> str:
    text = received.body[:_MAX_EXCERPT_BYTES].decode("utf-8", "replace")
    return _TAG.sub(" ", text) if _markup(received) else text


def _markup(received: Received) -> bool:
    return looks_like_markup(received.headers.get("content-type", ""), received.body)


def _retry_after_ms(value: str | None, now_ms: int) -> int | None:
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:10]) * 1000, _MAX_RETRY_AFTER_MS)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at_ms = int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    return min(max(at_ms - now_ms, 0), _MAX_RETRY_AFTER_MS)


def _json(body: bytes) -> Any:
    """Parse strict JSON; None for anything else (a bare `null` is nothing that we accept either).

    Refused too is what can be read and not written again: a number beyond the range of a float, endless nesting. It
    would fail later, where a result is stored, and the result of a mutation with it.
    """
    try:
        text = body.decode("utf-8")
        parse_int = _bounded_int if _LONG_NUMBER.search(text) else None
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=parse_int)
    except (ValueError, RecursionError):
        return None
    if text.count("[") + text.count("{") > _MAX_DEPTH and _deeper_than(_MAX_DEPTH, value):
        return None
    return _named(value) if _HALF_PAIR.search(text) else value


def _named(value: Any) -> Any:
    """Return the value with U+FFFD for half a surrogate pair in a member's name: no object that is sent can hold it."""
    if isinstance(value, list):
        return [_named(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_HALF.sub("\ufffd", name): _named(member) for name, member in value.items()}


def _deeper_than(limit: int, value: object) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond the range of a float")
    return number


def _bounded_int(text: str) -> int:
    if len(text.removeprefix("-")) > _MAX_DIGITS:
        raise ValueError("a number beyond the range of a float")
    return int(text)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
