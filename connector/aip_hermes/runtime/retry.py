"""Whether a failed try of a queued action is repeated, and when.

Only the queue repeats actions, and only what its capability declares repeatable. A try whose effect may have happened
is never repeated, whatever is declared. Source: runtime behaviour §11; design D2, D4, D22.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aip_hermes import wire
from aip_hermes.errors import ActionFailed

__all__ = ["FIRST_MS", "LONGEST_MS", "Jitter", "RetryPolicy", "delay_ms", "no_jitter"]

FIRST_MS: Final = 1_000
LONGEST_MS: Final = 30_000
_FACTOR: Final = 2
_REPEATABLE: Final = frozenset({"safe", "safe_with_idempotency_key"})

Jitter = Callable[[int], int]
"""Given a delay in milliseconds, returns how much longer to wait."""


def no_jitter(_: int) -> int:
    """Wait exactly as long as the policy says."""
    return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """max_tries: in one stay in the queue, the first one included. needs_key: repeats only under an idempotency key."""

    max_tries: int = 1
    needs_key: bool = False

    @classmethod
    def of(cls, contract: wire.CapabilityContract, *, tries: int) -> RetryPolicy:
        """Read a contract. tries: how many the runtime makes of what may be repeated."""
        execution = contract.execution
        if not execution.supports_retry or execution.retry_safety not in _REPEATABLE:
            return cls()
        return cls(max_tries=tries, needs_key=execution.retry_safety == "safe_with_idempotency_key")

    def repeats(self, failure: ActionFailed, *, tries: int, has_key: bool) -> bool:
        """Whether another try follows the failure of number `tries`, counted from 1."""
        if failure.uncertain or not failure.retryable:
            return False
        return tries < self.max_tries and (has_key or not self.needs_key)


def delay_ms(failure: ActionFailed, *, tries: int, jitter: Jitter = no_jitter) -> int:
    """Return how long to wait after the failure of number `tries`: what the provider asks, else 1, 2, 4, … seconds.

    At most LONGEST_MS before jitter, at least a millisecond.
    """
    asked = failure.retry_after_ms
    delay = asked if asked else FIRST_MS * _FACTOR ** min(tries - 1, 16)
    delay = min(delay, LONGEST_MS)
    return max(delay + max(jitter(delay), 0), 1)
