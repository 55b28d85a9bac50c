"""What an answer of a Hermes endpoint proved to a client that speaks to it directly: by the connector's own rule."""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.client.failures import ClientFailure, HttpFailed, Undecodable
from aip_hermes.client.http import HttpAnswer
from aip_hermes.client.reply import JsonObject, parsed
from aip_hermes.hermes_api import judge_status, looks_like_markup
from aip_hermes.ids import HermesSessionId
from aip_hermes.redact import redact_text

__all__ = ["HermesRefused", "about_session", "object_of"]

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
    _, uncertain, retryable = judge_status(
        answer.status,
        code,
        changes=changes,
        forks=forks,
        markup=looks_like_markup(answer.headers.get("content-type", ""), answer.content),
    )
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


def _retry_after_ms(answer: HttpAnswer) -> int | None:
    text = answer.headers.get("retry-after", "").strip()
    return min(int(text[:10]), _MAX_RETRY_AFTER_S) * 1000 if text.isascii() and text.isdigit() else None
