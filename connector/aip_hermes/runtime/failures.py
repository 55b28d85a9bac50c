"""The codes that this runtime raises by itself.

Two carriers (design D1): a RequestRefused is an `error` envelope for what never became an action; an ActionFailed is
the error of a failed result. Source: runtime behaviour, "Error codes"; design D3, D4, D8, D9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.errors import ActionFailed, ProviderFailed, RequestRefused

__all__ = [
    "ActionGone",
    "ActionIdConflict",
    "ActionNotFound",
    "ApprovalDenied",
    "ApprovalExpired",
    "ApprovalNotFound",
    "ApprovalRevoked",
    "ApprovalUnknown",
    "ApprovalUnreadable",
    "ApprovalUnverified",
    "AtCapacity",
    "AuditRefused",
    "CancelUnsupported",
    "CapabilityUnknown",
    "CapabilityWithdrawn",
    "ChunkNotStored",
    "CursorExpired",
    "HandlerBroken",
    "HumanApprovalRequired",
    "InputInvalid",
    "Interrupted",
    "InvalidCursor",
    "KeyConflict",
    "KeyInProgress",
    "KeyInputDiffers",
    "KeyRequired",
    "KeyScopeMissing",
    "MemberRefused",
    "MessageReplayed",
    "ModeUnsupported",
    "NotAuthorized",
    "NotReconciled",
    "OutcomeLost",
    "OutputInvalid",
    "QueueDelayExceeded",
    "ReceiptNotFound",
    "ResultNotReady",
    "RuntimeStopping",
    "StateUnavailable",
    "TenantMismatch",
    "TimeoutExceeded",
    "TransactionUnsupported",
    "decision_refused",
]


class CapabilityUnknown(RequestRefused, code="resource.not_found"):
    """No such capability, or no such action to cancel, for this tenant."""


class NotAuthorized(RequestRefused, code="auth.not_authorized", category="auth"):
    """Scope, ownership, invocation pattern or approval authority; `details.code` is the rule (design D9)."""


class TenantMismatch(RequestRefused, code="auth.tenant_mismatch", category="auth"):
    """A tenant was named that is not the caller's."""


class ActionIdConflict(RequestRefused, code="action.id_conflict"):
    """The Action ID is bound to other content or to another principal (design D3)."""


class ActionNotFound(RequestRefused, code="action.not_found"):
    """No such action for this tenant."""


class ActionGone(RequestRefused, code="action.gone"):
    """The action ended, and what it answered is no longer kept (design D23)."""


class NotReconciled(RequestRefused, code="reconciliation.not_found"):
    """The action ended uncertain, and nobody has looked yet what became of it."""


class ResultNotReady(RequestRefused, code="action.result_not_ready", category="temporary"):
    """The action exists and has no terminal result. Not retryable by its flag, as in the reference."""


class ApprovalNotFound(RequestRefused, code="approval.not_found"):
    """No such approval for this tenant (query)."""


class ReceiptNotFound(RequestRefused, code="receipt.not_found"):
    """No such chain of receipts for this tenant."""


class AuditRefused(RequestRefused, code="audit.not_authorized", category="auth"):
    """A scope over the audit log is missing."""


class ApprovalUnknown(RequestRefused, code="runtime.handler_failed", category="temporary", retryable=True):
    """No such approval for this tenant (decision). The reference's code for it."""


class ApprovalUnreadable(RequestRefused, code="approval.unreadable", category="temporary"):
    """What is stored of an approval is none any more. Nothing was changed; sending again does not help by itself."""


class CancelUnsupported(RequestRefused, code="action.cancel_unsupported"):
    """The action was sent, and its capability can't stop what runs. It goes on."""


class CursorExpired(RequestRefused, code="stream.cursor_expired"):
    """A position behind the end of the log."""


class InvalidCursor(RequestRefused, code="query.invalid_cursor"):
    """A cursor that this runtime did not hand out."""


class MessageReplayed(RequestRefused, code="replay.message_id", category="auth"):
    """The message id was claimed before, or `sent_at` is outside the window."""


class AtCapacity(RequestRefused, code="runtime.at_capacity", category="temporary", retryable=True):
    """As much runs or waits as the runtime takes on; nothing was stored."""


class RuntimeStopping(RequestRefused, code="runtime.stopping", category="temporary", retryable=True):
    """The runtime is closing; nothing of the request was kept."""


class MemberRefused(ActionFailed, code="action.invalid_input"):
    """A member that this runtime does not act on, or that it can't hold (design D8)."""


class InputInvalid(ActionFailed, code="action.input_schema_invalid", component="aip-runtime.schema"):
    """The input breaks the capability's schema."""


class OutputInvalid(ActionFailed, code="action.output_schema_invalid", component="aip-runtime.schema"):
    """The provider's answer breaks the capability's output schema; the effect has happened."""


class ModeUnsupported(ActionFailed, code="execution.mode_unsupported", category="policy"):
    """The capability does not run in this mode."""


class TransactionUnsupported(ActionFailed, code="transaction.unsupported", category="policy"):
    """A transaction mode other than execute."""


class KeyRequired(ActionFailed, code="idempotency.required", category="policy"):
    """The contract needs a key; a blank one is missing (design D5)."""


class KeyScopeMissing(ActionFailed, code="idempotency.scope_missing", category="policy"):
    """The contract's key scope names a tenant or account that this call does not have."""


class KeyConflict(ActionFailed, code="idempotency.conflict", category="policy"):
    """The key belongs to another principal's action (design D6), or the contract refuses every reuse."""


class KeyInputDiffers(ActionFailed, code="idempotency.input_hash_mismatch", category="policy"):
    """The key was used with other input, and the contract wants the same."""


class KeyInProgress(ActionFailed, code="idempotency.in_progress", category="temporary", retryable=True):
    """The Action ID or the key is being worked on."""


class HumanApprovalRequired(ActionFailed, code="policy.human_approval_required", category="policy"):
    """The error beside a pending result."""


class ApprovalUnverified(ActionFailed, code="policy.approval_unverified", category="policy"):
    """An approval that this runtime did not attach, or that was given for other input."""


class ApprovalDenied(ActionFailed, code="policy.approval_denied", category="policy"):
    """A reviewer said no."""


class ApprovalExpired(ActionFailed, code="policy.approval_expired", category="policy"):
    """Nobody decided in time."""


class ApprovalRevoked(ActionFailed, code="policy.approval_revoked", category="policy"):
    """The approval was taken back."""


class TimeoutExceeded(ActionFailed, code="sla.timeout_exceeded", category="temporary"):
    """The backstop behind a handler that overran its own deadline."""


class Interrupted(ActionFailed, code="runtime.interrupted", category="temporary", retryable=True):
    """The process ended after the claim and before anything was sent: certain (design D4)."""


class OutcomeLost(ActionFailed, code="runtime.outcome_unknown", category="temporary"):
    """As the connector's `outcome_unknown`, where its connector is no longer installed."""


class CapabilityWithdrawn(ActionFailed, code="connector.operation_unsupported"):
    """The capability was withdrawn between approval and execution."""


class QueueDelayExceeded(ActionFailed, code="sla.queue_delay_exceeded", category="policy", outside_request=True):
    """A queued action waited longer than its service level allows. It never started: its key is free (design D2)."""


class ChunkNotStored(ActionFailed, code="runtime.chunk_not_stored", category="temporary"):
    """A chunk of a running stream could not be kept."""


class StateUnavailable(ActionFailed, code="runtime.state_unavailable", category="temporary", retryable=True):
    """What a connector keeps about its calls could not be read or stored; nothing was written."""


class HandlerBroken(ProviderFailed, code="connector.runtime_failure"):
    """A handler raised something that is no ActionFailed."""


def decision_refused(rule: str, message: str, *, details: Mapping[str, Any] | None = None) -> NotAuthorized:
    """Return the refusal of a decision: one code on the wire, the violated rule in `details.code` (design D9)."""
    return NotAuthorized(message, details={"code": rule, **(details or {})})
