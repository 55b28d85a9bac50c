"""From an uncertain action to a verdict: the rule that the row names, at one endpoint, with reads only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aip_hermes.contract.operation import Operation, ReconcileRule
from aip_hermes.contract.reconciliation import Uncertain, Verdict
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.forks import session_fork
from aip_hermes.hermes.reconcile.listings import job_listing, text_listing
from aip_hermes.hermes.reconcile.quiet import QuietTimes, Timing, refused_in_its_words
from aip_hermes.hermes.reconcile.reading import Reading, Unread
from aip_hermes.hermes.reconcile.rows import session_gone, session_patch, session_row
from aip_hermes.hermes.reconcile.targets import job_change, job_due, run_answer, target_gone, target_state
from aip_hermes.hermes.reconcile.turns import run_start, session_turn
from aip_hermes.hermes.session_rows import Rows
from aip_hermes.ports import Clock

__all__ = ["RULES", "Reconciler"]

Rule = Callable[[Case], Awaitable[Verdict]]

UNREAD_RETRY_MS: Final = 5_000
"""When an endpoint that could not be read is worth another try (runtime behaviour §12)."""


async def _nothing(case: Case) -> Verdict:
    return case.proven(
        "not_applied", "read_only", f"{case.operation.name} only reads, so that nothing can be left of it"
    )


RULES: Final[Mapping[ReconcileRule, Rule]] = {
    "none": _nothing,
    "session_row": session_row,
    "session_patch": session_patch,
    "session_gone": session_gone,
    "session_fork": session_fork,
    "session_turn": session_turn,
    "text_listing": text_listing,
    "run_start": run_start,
    "run_answer": run_answer,
    "target_gone": target_gone,
    "target_state": target_state,
    "job_listing": job_listing,
    "job_change": job_change,
    "job_due": job_due,
}


class Reconciler:
    """Gives verdicts about one operation at one endpoint."""

    def __init__(
        self, operation: Operation, *, endpoint: Endpoint, attempts: Attempts, clock: Clock, quiet: QuietTimes
    ) -> None:
        self._operation = operation
        self._endpoint = endpoint
        self._attempts = attempts
        self._clock = clock
        self._quiet = quiet
        self._rule = RULES[operation.reconcile]

    async def verdict(self, action: Uncertain) -> Verdict:
        """Read and judge. Sends nothing that may change anything, and raises nothing: what can't be read is said."""
        if self._endpoint.tenant_id is not None and action.tenant_id != self._endpoint.tenant_id:
            return Verdict(
                outcome="indeterminate",
                reason="endpoint_of_another_tenant",
                explanation=f"Hermes endpoint {self._endpoint.id} is bound to another tenant now; nothing was read",
            )
        if "wanted" not in action.facts:
            return Verdict(
                outcome="indeterminate",
                reason="nothing_kept",
                explanation="what the action wanted was not kept, so that nothing can be compared",
            )
        case = self._case(action)
        try:
            return await self._rule(case)
        except Unread as unread:
            return Verdict(
                outcome="indeterminate",
                reason="endpoint_not_read",
                explanation=f"{unread.cause}, so that nothing is proven",
                evidence=tuple(case.reading.evidence),
                retry_after_ms=unread.retry_after_ms or UNREAD_RETRY_MS,
            )

    def _case(self, action: Uncertain) -> Case:
        rows = Rows(
            self._attempts,
            endpoint=self._endpoint,
            doing=f"the reconciliation of {self._operation.name}",
            action_id=action.action_id,
            deadline_ms=None,
            first=False,
        )
        return Case(
            operation=self._operation,
            endpoint=self._endpoint,
            action=action,
            timing=Timing(
                intent_at_ms=action.intent_at_ms,
                settled_at_ms=action.settled_at_ms,
                at_ms=self._clock.now_ms(),
                quiet_ms=round(self._quiet_s * 1000),
                slack_s=self._quiet.slack_s,
                answered=refused_in_its_words(action.details),
            ),
            reading=Reading(rows, endpoint=self._endpoint, clock=self._clock),
        )

    @property
    def _quiet_s(self) -> float:
        row = self._operation
        if not (row.turn or row.serial in ("turn", "run") or row.follow == "run"):
            return self._quiet.rows_s
        return self._endpoint.turn_timeout_s if self._quiet.turns_s is None else self._quiet.turns_s
