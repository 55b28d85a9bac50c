"""When absence proves something: not while the endpoint may still be working on what was sent.

A lost turn runs on, and a write that waits for a lock waits 16 s. So a read proves that something did not happen only a
quiet time after the action ended as uncertain, or when the endpoint itself said that it was done with the request.
Source: design §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["QuietTimes", "Timing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuietTimes:
    """In seconds. rows_s: after a change of rows. turns_s: after a turn; None for the endpoint's turn timeout. slack_s:
    how far the endpoint's clock may be behind ours."""

    rows_s: float = 60.0
    turns_s: float | None = None
    slack_s: float = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """The moments of one reconciliation; Unix milliseconds. at_ms: before its first read. answered: the endpoint
    refused the request in its own words, so that nothing of it is under way."""

    intent_at_ms: int
    settled_at_ms: int
    at_ms: int
    quiet_ms: int
    slack_s: float
    answered: bool = False

    @property
    def quiet(self) -> bool:
        """Whether absence proves something."""
        return self.answered or self.at_ms >= self.settled_at_ms + self.quiet_ms

    @property
    def retry_after_ms(self) -> int:
        """How long it is to the end of the quiet time; at least 1."""
        return max(self.settled_at_ms + self.quiet_ms - self.at_ms, 1)

    @property
    def since_s(self) -> float:
        """The earliest time, Unix seconds by the endpoint's clock, of anything that the request did."""
        return self.intent_at_ms / 1000 - self.slack_s


def refused_in_its_words(details: Mapping[str, Any]) -> bool:
    """Whether an uncertain end was an answer of Hermes itself: it had stopped working then, whatever it did before."""
    provider = details.get("provider")
    if not isinstance(provider, Mapping):
        return False
    status = provider.get("status")
    return isinstance(status, int) and 400 <= status < 500 and isinstance(provider.get("code"), str)
