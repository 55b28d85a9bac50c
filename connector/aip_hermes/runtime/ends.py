"""Ends that the runtime itself gives an attempt: busy, cancelled, out of time, an output that breaks its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.contract.handler import Answer, Connector, FailureKind, JsonObject
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.cancellation import Cancelled, RunningAction
from aip_hermes.runtime.failures import HandlerBroken, OutcomeLost, OutputInvalid, TimeoutExceeded
from aip_hermes.runtime.submission import Submission

__all__ = [
    "Ended",
    "Outcome",
    "cancelled_end",
    "checked_output",
    "connector_failure",
    "not_kept",
    "outcome_lost",
    "overrun",
]

Outcome = Answer | ActionFailed
Ended = Answer | ActionFailed | Cancelled


def connector_failure(
    submission: Submission,
    kind: FailureKind,
    message: str,
    *,
    details: Mapping[str, Any],
    uncertain: bool = False,
    retry_after_ms: int | None = None,
) -> ActionFailed:
    """Return an error in the namespace of the action's connector."""
    assert submission.connector is not None  # noqa: S101 - the capability check comes first
    failure = submission.connector.failure(kind, message, details=details, uncertain=uncertain)
    if failure.retry_after_ms is None:
        failure.retry_after_ms = retry_after_ms
    return failure


def cancelled_end(submission: Submission, running: RunningAction, evidence: JsonObject | None) -> Cancelled:
    sent = running.phase == "sending" or submission.interrupted
    uncertain = sent and not submission.read_only
    if uncertain:
        message = "the action was cancelled after it was sent; read the target before sending anything like it again"
    else:
        message = "the action was cancelled" if sent else "the action was cancelled before anything was sent"
    failure = connector_failure(
        submission, "cancelled", message, details={"action_id": submission.action.id, "sent": sent}, uncertain=uncertain
    )
    return Cancelled(failure=failure, reason=running.reason, evidence=evidence)


def outcome_lost(connector: Connector | None, *, action_id: str, capability_id: str) -> ActionFailed:
    """Return what is said of an action that a process left after its intent (design D4). connector: None where it is no
    longer installed."""
    message = (
        "the server stopped after recording that it was about to send; whether the request took effect is unknown: "
        "read the target before sending again"
    )
    details = {"action_id": action_id, "capability_id": capability_id}
    if connector is None:
        return OutcomeLost(message, details=details, uncertain=True)
    return connector.failure("outcome_unknown", message, details=details, uncertain=True)


def overrun(submission: Submission, *, uncertain: bool) -> TimeoutExceeded:
    return TimeoutExceeded(
        "the connector did not answer within the action's timeout",
        details={
            "action_id": submission.action.id,
            "capability_id": submission.action.capability_id,
            "timeout_ms": submission.timeout_ms,
        },
        retryable=not uncertain,
        uncertain=uncertain,
    )


def not_kept(submission: Submission, *, uncertain: bool) -> HandlerBroken:
    """Return the end without its details, of an action whose own the store does not take. uncertain: the other end."""
    action, uncertain = submission.action, uncertain and not submission.read_only
    if uncertain:
        then = "it may have taken effect: reconcile the action, or read the target, before sending anything again"
    else:
        then = "nothing was changed: send it again as a new action"
    return HandlerBroken(
        f"action {action.id} ended, and what it ended with can't be kept; the server's log says why; {then}",
        details={"action_id": action.id, "capability_id": action.capability_id},
        uncertain=uncertain,
    )


def checked_output(submission: Submission, outcome: Outcome) -> Outcome:
    if isinstance(outcome, ActionFailed) or outcome.cancelled or submission.published is None:
        return outcome
    violations = submission.published.output_violations(outcome.output)
    if not violations:
        return outcome
    return OutputInvalid(
        "the provider's answer does not match the capability's output schema",
        details={"capability_id": submission.action.capability_id, "violations": violations},
        uncertain=not submission.read_only,
    )
