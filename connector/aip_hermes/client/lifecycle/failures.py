"""Why a step of a lifecycle does not go on, and what is safe to do next.

    LifecycleError
    ├── CapabilityMissing     the endpoint does not offer what a lifecycle needs; nothing was sent
    ├── StepChanged           the step was begun with other content; nothing was sent
    ├── WrongTransition       what is asked is not possible where the step or the session stands; nothing was sent
    ├── SessionClosed         the session has ended, and no turn follows an end; nothing was sent
    ├── SessionSuperseded     the session was compressed into another one; nothing was sent
    ├── NoSuchSession         the endpoint has no such row
    ├── DecisionPending       a reviewer has not decided yet
    ├── StepFailed            refused, certainly
    │   └── DecisionDenied        by a reviewer, or by time
    ├── NotApplied            the answer was lost, and reads prove that nothing happened
    ├── PartlyApplied         the answer was lost, and reads prove that a part happened
    ├── UnknownYet            the answer was lost, and what happened will be known later
    ├── Undecided             the answer was lost, and reads can't tell: a person decides
    ├── NotVerified           answered as done, and reads show something else
    └── EffectsNotConfirmed   the application's own look found something else than the turn should have left

Source: design §5, D13–D16, D20; issue 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.client.failures import ClientFailure
from aip_hermes.ids import ActionId, ApprovalId, HermesSessionId

__all__ = [
    "CapabilityMissing",
    "DecisionDenied",
    "DecisionPending",
    "EffectsNotConfirmed",
    "LifecycleError",
    "NoSuchSession",
    "NotApplied",
    "NotVerified",
    "PartlyApplied",
    "SessionClosed",
    "SessionSuperseded",
    "StepChanged",
    "StepFailed",
    "Undecided",
    "UnknownYet",
    "WrongTransition",
]


class LifecycleError(ClientFailure, category="permanent", component="aip-client"):
    """step, action_id, session_id: what it is about, where that is known. next_step: one sentence for a person."""

    def __init__(
        self,
        message: str,
        *,
        next_step: str,
        step: str | None = None,
        action_id: ActionId | None = None,
        session_id: HermesSessionId | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        uncertain: bool = False,
    ) -> None:
        about = {"step": step, "action_id": action_id, "session_id": session_id}
        super().__init__(
            message,
            next_step=next_step,
            details={**{name: str(value) for name, value in about.items() if value is not None}, **(details or {})},
            retryable=retryable,
            retry_after_ms=retry_after_ms,
            uncertain=uncertain,
        )
        self.step = step
        self.action_id = action_id
        self.session_id = session_id


class CapabilityMissing(LifecycleError, code="lifecycle.capability_missing"):
    """The endpoint does not offer what a lifecycle needs, or not to this principal."""


class StepChanged(LifecycleError, code="lifecycle.step_changed"):
    """A step has one content for good: another one is another step."""


class WrongTransition(LifecycleError, code="lifecycle.wrong_transition"):
    """Not possible from here."""


class SessionClosed(LifecycleError, code="lifecycle.session_closed"):
    """No turn after an end, unless the policy allows it and the caller says so."""


class SessionSuperseded(LifecycleError, code="lifecycle.session_superseded"):
    """Read the messages: where a continuation is proven, the handle that they return is of it."""


class NoSuchSession(LifecycleError, code="lifecycle.no_such_session"):
    """Never made, or deleted."""


class DecisionPending(LifecycleError, code="lifecycle.decision_pending", category="policy", retryable=True):
    """It waits; nothing needs to be sent."""

    approval_id: ApprovalId | None = None


class StepFailed(LifecycleError, code="lifecycle.step_failed"):
    """A certain refusal; `details.cause` has its code. retryable: run the step again, under the same Action ID."""


class DecisionDenied(StepFailed, code="lifecycle.decision_denied", category="policy"):
    """Denied, expired or revoked."""


class NotApplied(LifecycleError, code="lifecycle.not_applied"):
    """Nothing happened; it is sent anew only after `decide(step=…, outcome="again")`."""


class PartlyApplied(LifecycleError, code="lifecycle.partly_applied"):
    """A part happened: a person decides."""


class UnknownYet(LifecycleError, code="lifecycle.unknown_yet", category="temporary", retryable=True):
    """Run the step again later: it only asks."""


class Undecided(LifecycleError, code="lifecycle.undecided"):
    """Reads can't tell: a person decides."""


class NotVerified(LifecycleError, code="lifecycle.not_verified"):
    """It is not what was wanted, or not stored."""


class EffectsNotConfirmed(LifecycleError, code="lifecycle.effects_not_confirmed"):
    """The application looked, and said no."""
