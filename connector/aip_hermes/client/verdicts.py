"""What a server found out about an action whose effect nobody knew. Source: design §5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aip_hermes.client.failures import Undecodable
from aip_hermes.client.members import a_count, a_list, a_text, an_object, text_or_none
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ActionId

__all__ = ["Reconciliation", "reconciliation_of"]

Verdict = Literal["applied", "not_applied", "partially_applied", "indeterminate"]

_VERDICTS: Final[Sequence[Verdict]] = ("applied", "not_applied", "partially_applied", "indeterminate")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reconciliation:
    """One verdict.

    reason: a code. next_step: what is safe to do now, one sentence. retry_after_ms: when a further look may prove more.
    number: of the look; 0 where none was needed. evidence: what was read, `{read, ids, read_at, found, facts}` each,
    without text.
    """

    action_id: ActionId
    verdict: Verdict
    reason: str
    explanation: str
    next_step: str
    evidence: tuple[JsonObject, ...]
    retry_after_ms: int | None
    number: int
    reconciled_at: str | None
    raw: JsonObject = field(repr=False)

    @property
    def proven(self) -> bool:
        """Whether it is known what happened; what was proven once is not taken back."""
        return self.verdict != "indeterminate"

    @property
    def settled(self) -> bool:
        """False for an action that has not ended: nothing was looked into yet."""
        return self.reason != "not_settled"


def reconciliation_of(raw: JsonObject) -> Reconciliation:
    """Read `{"reconciliation": …}`. Raises: Undecodable, also for a verdict that nobody knows."""
    found = an_object(raw, "reconciliation", "the answer")
    said = a_text(found, "verdict", "reconciliation")
    verdict = next((known for known in _VERDICTS if known == said), None)
    if verdict is None:
        raise Undecodable(f"AIP response: the reconciliation has a `verdict` that is none: {said[:64]!r}")
    return Reconciliation(
        action_id=ActionId(a_text(found, "action_id", "reconciliation")),
        verdict=verdict,
        reason=a_text(found, "reason", "reconciliation"),
        explanation=text_or_none(found.get("explanation")) or "",
        next_step=a_text(found, "next_step", "reconciliation"),
        evidence=tuple(_evidence(found)),
        retry_after_ms=a_count(found.get("retry_after_ms")),
        number=a_count(found.get("number")) or 0,
        reconciled_at=text_or_none(found.get("reconciled_at")),
        raw=found,
    )


def _evidence(found: JsonObject) -> list[Any]:
    return [each for each in a_list(found, "evidence", "reconciliation") if isinstance(each, dict)]
