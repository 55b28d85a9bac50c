"""One action under reconciliation, and the words in which a rule gives its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.contract.operation import Operation
from aip_hermes.contract.reconciliation import Beside, Uncertain, Verdict, VerdictOutcome
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.reconcile.quiet import Timing
from aip_hermes.hermes.reconcile.reading import Reading
from aip_hermes.hermes.session_rows import SessionRow
from aip_hermes.hermes.traces import name_of

__all__ = ["Case"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What a rule works with."""

    operation: Operation
    endpoint: Endpoint
    action: Uncertain
    timing: Timing
    reading: Reading

    @property
    def wanted(self) -> Mapping[str, Any]:
        """What was asked for, as `prepare` wrote it down."""
        return _object(self.action.facts.get("wanted"))

    @property
    def before(self) -> Mapping[str, Any]:
        """What was read before it was sent; empty where nothing was."""
        return _object(self.action.facts.get("before"))

    def identity(self, name: str) -> str | None:
        """Return an id that the action addressed."""
        found = self.before.get(name, self.wanted.get(name))
        return found if isinstance(found, str) and found else None

    def rivals(self, session_id: str | None, text_sha256: str, *, nameless: bool = False) -> tuple[int, int]:
        """Return how many other turns said the same since in the same session: those that took effect, open ones.

        session_id: None for any session. nameless: those that named no session may have been there too.
        """
        said = [
            other.certain
            for other in self._others("text_sha256", text_sha256)
            if not (other.certain and other.earlier)  # its rows were there before
            and (session_id is None or session_id in (where := _sessions_of(other)) or (nameless and not where))
        ]
        return sum(said), len(said) - sum(said)

    def shared(self, name: str) -> bool:
        """Whether another action wanted the same value: what has it now may be that action's work."""
        return bool(self._others(name, self.wanted.get(name)))

    def renamed(self, session_id: str, title_sha256: str | None) -> bool:
        """Whether another action was to give a session this title since."""
        return any(
            session_id in _sessions_of(other) and not (other.certain and other.earlier)
            for other in self._others("title_sha256", title_sha256)
        )

    def _others(self, name: str, value: object) -> list[Beside]:
        return [
            other
            for other in self.action.beside
            if other.facts.get("endpoint_id", self.endpoint.id) == self.endpoint.id
            and name in (wanted := _object(other.facts.get("wanted")))
            and wanted[name] == value
        ]

    def same_row(self, row: SessionRow) -> bool:
        """Whether a row is the one that was read before, by the time at which it was started."""
        started = self.before.get("started_at")
        return started is None or row.started_at is None or row.started_at == started

    def proven(
        self,
        outcome: VerdictOutcome,
        reason: str,
        explanation: str,
        *,
        over: str | None = None,
        erases: frozenset[str] = frozenset(),
    ) -> Verdict:
        """Return a verdict that stands now. over: the session in which the action's work is seen to be over."""
        return Verdict(
            outcome=outcome,
            reason=reason,
            explanation=explanation,
            evidence=tuple(self.reading.evidence),
            opens=None if over is None else name_of(self.endpoint.id, over),
            erases=erases,
        )

    def after_quiet(
        self, outcome: VerdictOutcome, reason: str, explanation: str, *, over: str | None = None
    ) -> Verdict:
        """Return a verdict that rests on something that is missing: proven only when nothing can be under way."""
        if self.timing.quiet:
            return self.proven(outcome, reason, explanation, over=over)
        return Verdict(
            outcome="indeterminate",
            reason="may_be_under_way",
            explanation=f"{explanation}; the endpoint may still be working on it",
            evidence=tuple(self.reading.evidence),
            retry_after_ms=self.timing.retry_after_ms,
        )

    def undecided(self, reason: str, explanation: str) -> Verdict:
        """Return that nothing is proven and that no time changes this; what is missing now may still come."""
        return Verdict(
            outcome="indeterminate",
            reason=reason,
            explanation=explanation,
            evidence=tuple(self.reading.evidence),
            retry_after_ms=None if self.timing.quiet else self.timing.retry_after_ms,
        )


def _sessions_of(other: Beside) -> set[str]:
    """Return the id of the session that another action addressed, if it named one."""
    named = (_object(other.facts.get(part)).get("session_id") for part in ("before", "wanted"))
    return {each for each in named if isinstance(each, str)}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
