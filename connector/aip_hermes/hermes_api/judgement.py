"""What an error status of an endpoint proves: whoever asked it, the rule is one.

401, 403, 429 and a 503 whose code says that nothing was started prove that nothing was done; another 3xx or 4xx of the
endpoint is its refusal. An answer that somebody in between may have given (HTML, 502, 504, a 503 without a known code),
a 408 and any other 5xx prove nothing about a change. A read has no effect, so its failures are always certain.
Source: design D11; connector contract §13.1.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from aip_hermes.hermes_api.errors import HermesCode

__all__ = ["Judgement", "judge_status", "looks_like_markup"]

_NOT_STARTED: Final = frozenset({HermesCode.GATEWAY_DRAINING, HermesCode.SESSION_DB_UNAVAILABLE})
_BUSY: Final = frozenset({HermesCode.TURN_IN_PROGRESS})
_BEFORE_ANY_CHANGE: Final = frozenset({HermesCode.INVALID_SESSION_ID})
"""Codes of a fork's 400 that are raised before its first step; the others may come after the source was ended."""


class Judgement(NamedTuple):
    """uncertain: a change may have happened. retryable: the same request may be sent again."""

    kind: Literal["authentication", "not_started", "busy", "temporary", "rejected"]
    uncertain: bool
    retryable: bool


def judge_status(status: int, code: str | None, *, changes: bool, forks: bool, markup: bool) -> Judgement:
    """Judge an answer that is no success. code: its `error.code`. changes: whether the request may change something.
    forks: whether it is a fork, which fails half done. markup: see looks_like_markup."""
    if status in (401, 403):
        return Judgement("authentication", False, False)
    if status == 429 or (status == 503 and code in _NOT_STARTED):
        return Judgement("not_started", False, True)
    if status == 409 and code in _BUSY:
        return Judgement("busy", False, True)
    if status >= 500 or status == 408:
        return Judgement("temporary", changes, not changes)
    half_done = forks and status == 400 and code not in _BEFORE_ANY_CHANGE
    return Judgement("rejected", changes and (half_done or (markup and status >= 400)), False)


def looks_like_markup(content_type: str, body: bytes) -> bool:
    """Whether a body is HTML or the like: Hermes never answers so, somebody in between did."""
    return "html" in content_type.lower() or body.lstrip()[:1] == b"<"
