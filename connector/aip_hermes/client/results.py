"""How an action stands, with types: what is said of its session, of a replay, and what is safe to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.identities import CallIdentities
from aip_hermes.client.members import a_count, a_text, an_identity
from aip_hermes.client.reply import JsonObject, Outcome, outcome_of
from aip_hermes.errors import ErrorCategory
from aip_hermes.ids import (
    ActionId,
    ApprovalId,
    HermesSessionId,
    IdentityError,
)

__all__ = ["ActionError", "CallFailed", "CallResult", "Replay", "SessionEffect", "call_result"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionError:
    """Why an action did not complete. details: `provider` says what Hermes answered (design D10)."""

    code: str
    category: str
    message: str
    retryable: bool
    uncertain: bool
    retry_after_ms: int | None
    details: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEffect:
    """On which session an operation took effect. Only an id with the reason `compression` may be adopted (D15)."""

    requested: HermesSessionId
    effective: HermesSessionId
    reason: Literal["none", "compression", "branch", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """The answer is that of an earlier action with the same key; nothing was sent (design D7)."""

    original_action_id: ActionId
    input_differs: bool
    raw: JsonObject = field(repr=False)


class CallFailed(ClientFailure):
    """The action did not complete; see `result`. Raised by `CallResult.completed` only."""

    def __init__(self, result: CallResult) -> None:
        error = result.error
        super().__init__(
            error.message if error else f"action {result.action_id} is {result.status}",
            next_step=result.next_step,
            details=error.details if error else {},
            retryable=bool(error and error.retryable),
            retry_after_ms=error.retry_after_ms if error else None,
            uncertain=result.outcome == "uncertain",
        )
        self.result = result
        self.identities = result.identities
        # Code and category are those of this one answer.
        vars(self)["code"] = error.code if error else f"action.{result.status}"
        vars(self)["category"] = _category(error.category if error else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class CallResult:
    """How an action stands.

    outcome: judge by it, never by `status` alone; `pending` also for a repeat of what still runs. output: as the
    capability says; None where there is none. recorded: whether the answer is in the store of identities; False without
    one, and where it could not take it down: the call is found again by `open_calls`. raw: the `action_result`, or the
    `ack` of what was only taken in.
    """

    identities: CallIdentities
    outcome: Outcome
    status: str
    output: Any = field(default=None, repr=False)
    error: ActionError | None = None
    approval_id: ApprovalId | None = None
    recorded: bool = False
    raw: JsonObject = field(repr=False)

    @property
    def action_id(self) -> ActionId:
        """Of this call; of a replay too, where the work was done by another one."""
        return self.identities.action_id

    @property
    def session(self) -> SessionEffect | None:
        """What became of the session, where the output says."""
        found = self._ours("session")
        try:
            return SessionEffect(
                requested=HermesSessionId(found["requested"]),
                effective=HermesSessionId(found["effective"]),
                reason=found["reason"] if found["reason"] in ("none", "compression", "branch") else "unknown",
            )
        except (KeyError, TypeError, IdentityError):
            return None

    @property
    def replay(self) -> Replay | None:
        """Set where an earlier action answered."""
        found = self._ours("replay")
        try:
            return Replay(
                original_action_id=ActionId(found["original_action_id"]),
                input_differs=found.get("input_differs") is True,
                raw=dict(found),
            )
        except (KeyError, TypeError, IdentityError):
            return None

    @property
    def next_step(self) -> str:
        """One sentence for a person: what is safe to do now."""
        owner = self.error.details.get("owner_action_id") if self.error else None
        return _NEXT[self.outcome].format(action_id=owner or self.action_id)

    def completed(self) -> Any:
        """Return the output of a completed action. Raises: CallFailed for every other outcome, pending included."""
        if self.outcome != "completed":
            raise CallFailed(self)
        return self.output

    def _ours(self, name: str) -> Mapping[str, Any]:
        """Return a part of `_aip`, of the output or, for a failed action, of the error's details."""
        for holder in (self.output, self.error.details if self.error else None):
            ours = holder.get("_aip") if isinstance(holder, Mapping) else None
            found = ours.get(name) if isinstance(ours, Mapping) else None
            if isinstance(found, Mapping):
                return found
        return {}


_RUNS = "idempotency.in_progress"
"""The code of an answer to a repeat: the first one, of `details.owner_action_id`, still runs."""

_NEXT: dict[Outcome, str] = {
    "completed": "nothing: it is done",
    "pending": "wait for the end of {action_id}; sending it again changes nothing and starts nothing",
    "cancelled": "nothing happened under {action_id}; call again with a new Action ID where it is still wanted",
    "failed": "correct what the error names; nothing happened under {action_id}",
    "connector_failed": "see what Hermes answered (`details.provider`); its refusal is certain",
    "uncertain": "reconcile {action_id} before anything is sent again: its effect may have happened",
}


def call_result(
    body: Mapping[str, Any], *, identities: CallIdentities, ack: bool = False, recorded: bool = False
) -> CallResult:
    """Read an `action_result`, or the `ack` of a call that was taken in."""
    raw = dict(body)
    error = raw.get("error")
    output = raw.get("output")
    outcome: Outcome = outcome_of(raw)
    if isinstance(error, Mapping) and error.get("code") == _RUNS:
        outcome = "pending"
    if ack:
        outcome = "failed" if raw.get("status") == "rejected" else "pending"
    told = error if isinstance(error, Mapping) else {}
    details = told.get("details")
    details = dict(details) if isinstance(details, Mapping) else {}
    offered = output.get("approval_id") if isinstance(output, Mapping) else None
    return CallResult(
        identities=identities,
        outcome=outcome,
        status=a_text(raw, "status", "action_result"),
        output=output,
        error=None
        if not told
        else ActionError(
            code=str(told.get("code", "")),
            category=str(told.get("category", "")),
            message=str(told.get("message", "")),
            retryable=told.get("retryable") is True,
            uncertain=outcome == "uncertain",
            retry_after_ms=a_count(told.get("retry_after_ms")),
            details=details,
        ),
        approval_id=an_identity(ApprovalId, details.get("approval_id") or offered),
        recorded=recorded,
        raw=raw,
    )


def _category(text: str) -> ErrorCategory:
    return text if text in ("temporary", "auth", "policy", "economic", "connector", "transport") else "permanent"  # type: ignore[return-value]
