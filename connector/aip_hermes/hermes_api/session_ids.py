"""Which ids a new session may have, and which forms Hermes gives to ids of its own."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "MAX_SESSION_ID_CHARS",
    "MAX_SESSION_KEY_CHARS",
    "generated_session_id",
    "is_continuation_id",
    "new_session_id_problem",
    "refused_new_id",
]

MAX_SESSION_ID_CHARS: Final = 256
MAX_SESSION_KEY_CHARS: Final = 256

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTINUATION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")


def refused_new_id(value: str) -> str | None:
    """Say why an endpoint refuses `value`, already trimmed, as the id of a new session; None when it takes it.

    The rules of create at an endpoint: 1–256 characters; no CR, LF or NUL, no `..`, `/` or `\\`, no letter followed by
    a colon at the start. Tab, ESC and other control characters pass there. Lone surrogates, at which 0.19.0 fails
    with a 500, are refused.
    """
    if not value.strip():
        return "a session id is not blank"
    if len(value) > MAX_SESSION_ID_CHARS:
        return f"a session id has at most {MAX_SESSION_ID_CHARS} characters"
    if any(c in value for c in "\r\n\0"):
        return "a session id has no CR, LF or NUL"
    if ".." in value:
        return "a session id has no `..`"
    if "/" in value or "\\" in value:
        return "a session id has no slash or backslash"
    if _DRIVE.match(value):
        return "a session id does not start with a drive prefix such as `C:`"
    if _SURROGATE.search(value):
        return "a session id has no lone surrogate"
    return None


def new_session_id_problem(value: str) -> str | None:
    """Say which rule for ids of new sessions (create, fork child) `value` breaks, without repeating it; None when fine.

    The rules that a caller keeps before anything is sent: those of the endpoint after trimming, and no control
    character anywhere. Source: design D12.
    """
    if _CONTROL.search(value):
        return "a session id has no control characters"
    return refused_new_id(value.strip())


def generated_session_id(*, now_ms: int, random_hex: str) -> str:
    """Return the id that create and fork give when none is asked for: `api_<unix seconds>_<8 hex>`.

    random_hex: at least 8 hex digits; the last eight are taken.
    """
    return f"api_{now_ms // 1000}_{random_hex[-8:]}"


def is_continuation_id(value: str) -> bool:
    """Tell whether `value` has the form of the ids that Hermes gives to continuations and subagents."""
    return _CONTINUATION.fullmatch(value) is not None
