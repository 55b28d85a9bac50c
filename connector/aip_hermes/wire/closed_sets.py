"""The closed sets of the protocol: lower snake case, case-sensitive, an unknown value is refused.

Source: wire model §5.
"""

from __future__ import annotations

from typing import Literal

from aip_hermes.errors import ErrorCategory

__all__ = [
    "TERMINAL_STATES",
    "AckStatus",
    "ActionLifecycleState",
    "ActionMode",
    "ActionResultStatus",
    "ApprovalDecisionKind",
    "CapabilityKind",
    "CompensationMode",
    "ConversationStatus",
    "DataSensitivity",
    "DryRunFidelity",
    "ErrorCategory",
    "EvidenceRequirement",
    "ExpectedCompletionMode",
    "IdempotencyCollisionBehavior",
    "IdempotencyKeyScope",
    "IdempotencyRequirement",
    "PrincipalKind",
    "Priority",
    "ReceiptType",
    "RetrySafety",
    "RiskLevel",
    "SideEffect",
    "Stability",
    "StreamChunkKind",
    "TransactionMode",
]

PrincipalKind = Literal["human", "agent", "service", "tenant", "customer", "contact", "system"]
CapabilityKind = Literal["agent", "tool", "workflow", "channel", "resource", "human_task"]
RiskLevel = Literal["low", "medium", "high", "critical"]
Stability = Literal["stable", "experimental", "deprecated"]
SideEffect = Literal[
    "read", "write", "delete", "send_message", "financial", "identity", "medical", "legal", "external_network",
    "code_execution",
]  # fmt: skip
IdempotencyRequirement = Literal["required", "optional", "unsupported"]
IdempotencyCollisionBehavior = Literal["return_original_result", "reject_conflict", "revalidate_input_hash"]
IdempotencyKeyScope = Literal["action", "capability", "principal", "tenant", "external_account"]
ExpectedCompletionMode = Literal["sync", "async", "streaming", "any"]
RetrySafety = Literal["safe", "safe_with_idempotency_key", "unsafe", "unknown"]
DataSensitivity = Literal["public", "internal", "confidential", "restricted", "regulated", "unknown"]
TransactionMode = Literal[
    "execute", "dry_run", "plan", "commit", "compensate", "reconcile", "rollback_not_supported"
]  # fmt: skip
DryRunFidelity = Literal["schema_only", "policy_and_schema", "downstream_validation", "full_simulation"]
CompensationMode = Literal["not_required", "supported", "best_effort", "rollback_not_supported"]
EvidenceRequirement = Literal["reason", "input_snapshot", "policy_decision", "external_ticket", "attachment"]
ActionMode = Literal["sync", "async", "streaming"]
ActionResultStatus = Literal["completed", "failed", "cancelled", "pending_approval", "requires_human"]
"""pending_approval: parked on a durable approval. requires_human: needs input."""
ActionLifecycleState = Literal[
    "unknown", "accepted", "queued", "running", "streaming", "pending_approval", "cancelling", "cancelled", "completed",
    "failed", "expired", "dead_lettered",
]  # fmt: skip
TERMINAL_STATES: frozenset[ActionLifecycleState] = frozenset(
    {"cancelled", "completed", "failed", "expired", "dead_lettered"}
)
AckStatus = Literal["accepted", "rejected", "queued", "streaming", "cached"]
StreamChunkKind = Literal["data", "progress", "tool", "thought", "preview", "pending_approval", "error", "done"]
ApprovalDecisionKind = Literal["approved", "denied", "expired", "revoked"]
ConversationStatus = Literal["open", "pending", "resolved", "snoozed", "archived"]
Priority = Literal["low", "medium", "high", "urgent"]
ReceiptType = Literal[
    "request_received", "action_accepted", "policy_decision", "approval_requested", "approval_granted",
    "approval_denied", "approval_expired", "approval_revoked", "tool_executed", "delegation_made", "human_approved",
    "result_returned", "settlement_recorded", "transaction_planned", "transaction_commit_started",
    "transaction_committed", "transaction_compensated", "transaction_dry_run_completed",
    "transaction_rollback_unsupported", "transaction_failed", "callback_delivery_attempted", "callback_delivered",
    "callback_delivery_failed",
]  # fmt: skip
