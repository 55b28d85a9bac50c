"""What an answer of a Hermes endpoint proved to a client that speaks to it directly.

The same judgement as the connector's (design D11): certain means provable.
"""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.client.failures import ClientFailure, HttpFailed, Undecodable
from aip_hermes.client.http import HttpAnswer
from aip_hermes.client.reply import JsonObject, parsed
from aip_hermes.hermes_api import HermesCode
from aip_hermes.ids import HermesSessionId
from aip_hermes.redact import redact_text

__all__ = ["HermesRefused", "about_session", "object_of"]

_NOT_STARTED: Final = frozenset({HermesCode.GATEWAY_DRAINING, HermesCode.SESSION_DB_UNAVAILABLE})
_BEFORE_ANY_CHANGE: Final = frozenset({HermesCode.INVALID_SESSION_ID})
_MAX_MESSAGE_CHARS: Final = 300
_MAX_RETRY_AFTER_S: Final = 86_400


class HermesRefused(HttpFailed, code="client.hermes_refused"):
    """The endpoint answered with an error status.

    hermes_code: its `error.code`, such as `session_not_found`; None where it gave none. `uncertain`: a change may have
    happened all the same.
    """

    fixed_next_step = "see `hermes_code`; nothing was changed"

    def __init__(self, message: str, *, hermes_code: str | None, **members: Any) -> None:
        super().__init__(message, **members)
        self.hermes_code = hermes_code


def object_of(answer: HttpAnswer, *, changes: bool, forks: bool = False) -> JsonObject:
    """Return the JSON object of a success. Raises: HermesRefused, Undecodable."""
    raw = parsed(answer.content)
    if 200 <= answer.status < 300:
        if isinstance(raw, dict):
            return raw
        raise Undecodable(
            f"Hermes answered HTTP {answer.status} with something that is no JSON object",
            http_status=answer.status,
            uncertain=changes,
        )
    code, message = _told(raw)
    uncertain, retryable = _judged(answer, code, changes=changes, forks=forks)
    said = f": {redact_text(message, max_chars=_MAX_MESSAGE_CHARS)}" if message else ""
    raise HermesRefused(
        f"Hermes answered HTTP {answer.status}{f' `{code}`' if code else ''}{said}",
        hermes_code=code,
        http_status=answer.status,
        retryable=retryable,
        retry_after_ms=_retry_after_ms(answer),
        uncertain=uncertain,
    )


def about_session(failure: ClientFailure, session_id: HermesSessionId | None) -> None:
    """Let a failure name its session and what is safe to do next."""
    name = "" if session_id is None else f" {session_id}"
    if session_id is not None:
        failure.details["session_id"] = str(session_id)
    if failure.uncertain:
        failure.next_step = f"read session{name} and its messages before anything is sent again: it may have changed"
    elif failure.retryable:
        failure.next_step = "nothing was changed; the same request may be sent again later"
    elif isinstance(failure, Undecodable):
        failure.next_step = "is this the URL of a Hermes API server? its path /health names the platform that answers"


def _told(raw: Any) -> tuple[str | None, str | None]:
    error = raw.get("error") if isinstance(raw, dict) else None
    if isinstance(error, str):
        return None, error
    if not isinstance(error, dict):
        return None, None
    code, message = error.get("code"), error.get("message")
    return code if isinstance(code, str) else None, message if isinstance(message, str) else None


def _judged(answer: HttpAnswer, code: str | None, *, changes: bool, forks: bool) -> tuple[bool, bool]:
    """Return whether a change may have happened, and whether the same request may be sent again."""
    status = answer.status
    if status == 429 or (status == 503 and code in _NOT_STARTED) or code == HermesCode.TURN_IN_PROGRESS:
        return False, True
    if status in (401, 403):
        return False, False
    if status >= 500 or status == 408:
        return changes, not changes
    html = "html" in answer.headers.get("content-type", "").lower() or answer.content.lstrip()[:1] == b"<"
    half_done = forks and status == 400 and code not in _BEFORE_ANY_CHANGE
    return changes and (html or half_done), False


def _retry_after_ms(answer: HttpAnswer) -> int | None:
    text = answer.headers.get("retry-after", "").strip()
    return min(int(text[:10]), _MAX_RETRY_AFTER_S) * 1000 if text.isascii() and text.isdigit() else None
