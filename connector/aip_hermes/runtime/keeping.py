"""What an attempt's end keeps of somebody's text, as its row and its handler say (design D23)."""

from __future__ import annotations

import structlog

from aip_hermes.contract.handler import Answer, Traces
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.erasure import Keeping
from aip_hermes.runtime.submission import Submission

__all__ = ["keeping_of", "named_by"]

log = structlog.get_logger(__name__)


def keeping_of(submission: Submission, outcome: Answer | ActionFailed | Cancelled) -> Keeping | None:
    """Return what becomes of the text of an end; None where its capability was withdrawn meanwhile."""
    if submission.published is None:
        return None
    operation = submission.handler.operation
    if operation.text == "none" and operation.method != "DELETE":
        return Keeping()
    return Keeping(
        text=operation.transcript,
        traces=_traces(submission, None if isinstance(outcome, Cancelled) else outcome),
    )


def named_by(submission: Submission) -> frozenset[str]:
    """Return what the text of an attempt that is about to send will be about, as far as the call says."""
    return frozenset() if not submission.handler.operation.transcript else _traces(submission, None).about


def _traces(submission: Submission, outcome: Answer | ActionFailed | None) -> Traces:
    """Ask the handler; one that fails names nothing, and its text goes when its time has come."""
    try:
        return submission.handler.traces(submission.call(), outcome)
    except Exception as exc:
        log.exception("action.traces_broken", action_id=submission.action.id, error_type=type(exc).__name__)
        return Traces()
