"""What is told about the work as it goes on: counts, times, spans. Names and ids only, never a payload.

Who works tells a `Meter` and opens `Spans`; both are arguments, with a default that does nothing. Neither blocks nor
raises: work never fails because somebody watches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

__all__ = ["FENCE_HITS", "STEPS", "About", "FenceHit", "Meter", "NoMeter", "NoSpans", "Span", "Spans", "Step"]

Step = Literal["prepare", "send", "confirm", "settle"]
STEPS: Final[tuple[Step, ...]] = ("prepare", "send", "confirm", "settle")

FenceHit = Literal["replayed", "waited", "refused"]
FENCE_HITS: Final[tuple[FenceHit, ...]] = ("replayed", "waited", "refused")
"""replayed: answered from the store. waited: an equal submission was running. refused: another one holds the name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """Which attempt is meant. trace_id: the caller's, as `X-AIP-Trace-Id` carries it; None where there is none."""

    tenant: str
    action_id: str
    capability_id: str
    attempt: int
    trace_id: str | None = None

    @property
    def operation(self) -> str:
        """The operation that the capability publishes: the last part of its id."""
        return self.capability_id.rpartition(":")[2]


class Meter(Protocol):
    """Counts. tenant: empty for none. operation: as a caller wrote it; it is for the meter to keep its set closed."""

    def ended(self, *, tenant: str, operation: str, status: str, uncertain: bool) -> None:
        """An action was settled, and that is committed."""

    def fence_hit(self, *, tenant: str, operation: str, kind: FenceHit) -> None:
        """A submission met its own Action ID or key."""

    def reconciled(self, *, tenant: str, operation: str, outcome: str) -> None:
        """Somebody looked what became of an uncertain action, and the verdict is committed. outcome: see
        `contract.reconciliation.VerdictOutcome`."""

    def provider_took(self, *, tenant: str, operation: str, seconds: float) -> None:
        """A request to a provider was answered, or given up, after `seconds`."""


class NoMeter:
    """Counts nothing."""

    def ended(self, *, tenant: str, operation: str, status: str, uncertain: bool) -> None:
        return

    def fence_hit(self, *, tenant: str, operation: str, kind: FenceHit) -> None:
        return

    def reconciled(self, *, tenant: str, operation: str, outcome: str) -> None:
        return

    def provider_took(self, *, tenant: str, operation: str, seconds: float) -> None:
        return


class Span(Protocol):
    """One span of time that somebody may look at later."""

    def outcome(self, stored: Mapping[str, object] | None) -> None:
        """Note status and error code of a result; None: the action waits for another try."""


class Spans(Protocol):
    """Opens spans. Inside `attempt`, in the same task and in those that it starts, `step` is its child."""

    def attempt(self, about: About) -> AbstractContextManager[Span]: ...

    def step(self, step: Step) -> AbstractContextManager[None]: ...


class NoSpans:
    """Opens nothing."""

    @contextmanager
    def attempt(self, about: About) -> Iterator[Span]:
        yield _NOBODY

    @contextmanager
    def step(self, step: Step) -> Iterator[None]:
        yield


class _Nobody:
    def outcome(self, stored: Mapping[str, object] | None) -> None:
        return


_NOBODY: Final = _Nobody()
