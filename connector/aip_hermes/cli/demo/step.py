"""One step of the demo, what it claims, and how a claim or an answer that did not hold is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.cli.demo.relay import Relay, Seen
from aip_hermes.client import AipConnection, ClientFailure

__all__ = ["CheckFailed", "Stage", "Step", "shortened", "told"]

_MAX_SEEN = 400


class CheckFailed(Exception):
    """A verification did not hold. The text says what was expected and what was seen instead."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who plays. requester and reviewer: two principals of one tenant. stranger: another tenant. forger: an unknown
    token. relay: counts what reaches the endpoint."""

    requester: AipConnection
    reviewer: AipConnection
    stranger: AipConnection
    forger: AipConnection
    relay: Relay
    endpoint_id: str = "primary"


@dataclass(kw_only=True)
class Step:
    """What one step did. sent: capability or route. requests: what reached the endpoint meanwhile."""

    number: str
    title: str
    sent: str = ""
    verified: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    failure: str | None = None

    def check(self, claim: str, held: bool, seen: object = None) -> None:
        """Record a claim that held. Raises CheckFailed when it did not."""
        if not held:
            raise CheckFailed(f"expected: {claim}; seen: {shortened(seen)}")
        self.verified.append(claim)


def told(error: BaseException | Mapping[str, Any]) -> str:
    """Return one sentence for a failed exchange, or for the `error` of a failed result."""
    if isinstance(error, ClientFailure):
        return f"{error}; {error.next_step}" if error.next_step else str(error)
    if isinstance(error, Mapping):
        return f"{error.get('code')}: {error.get('message')}"
    return f"the answer lacks what this step reads ({type(error).__name__}: {shortened(error)})"


def shortened(seen: object) -> str:
    """Return what was seen instead, short enough to be read."""
    text = repr(seen)
    return text if len(text) <= _MAX_SEEN else f"{text[:_MAX_SEEN]} ..."
