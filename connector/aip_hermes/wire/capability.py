"""What can be called, and under which contract.

Source: wire model §6 "Capability" to "CompensationContract", §9.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ConfigDict

from aip_hermes.wire.approval_policy import ApprovalPolicy
from aip_hermes.wire.closed_sets import (
    CapabilityKind,
    CompensationMode,
    DataSensitivity,
    DryRunFidelity,
    ExpectedCompletionMode,
    IdempotencyCollisionBehavior,
    IdempotencyKeyScope,
    IdempotencyRequirement,
    RetrySafety,
    RiskLevel,
    SideEffect,
    Stability,
    TransactionMode,
)
from aip_hermes.wire.model import U64, Bool, Json, Wire, absent_list

__all__ = [
    "Binding",
    "Capability",
    "CapabilityContract",
    "CompensationContract",
    "CredentialPolicy",
    "DataContract",
    "DataResidency",
    "ExecutionContract",
    "IdempotencyContract",
    "RetentionPolicy",
    "ServiceLevelContract",
    "TransactionContract",
]


class IdempotencyContract(Wire):
    """ttl_ms: how long a key is remembered; absent: for ever."""

    requirement: IdempotencyRequirement
    collision_behavior: IdempotencyCollisionBehavior
    key_scope: IdempotencyKeyScope
    ttl_ms: U64 | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.ttl_ms == 0:
            yield "ttl_ms is zero"


class ExecutionContract(Wire):
    supports_sync: Bool
    supports_async: Bool
    supports_streaming: Bool
    supports_cancel: Bool
    supports_retry: Bool
    expected_completion: ExpectedCompletionMode
    retry_safety: RetrySafety

    def broken_rules(self) -> Iterator[str]:
        if not (self.supports_sync or self.supports_async or self.supports_streaming):
            yield "none of sync, async and streaming is supported"


class DataResidency(Wire):
    allowed_regions: list[str] = absent_list()
    prohibited_regions: list[str] = absent_list()


class RetentionPolicy(Wire):
    retain_for_ms: U64 | None = None
    delete_after_ms: U64 | None = None
    legal_hold_allowed: Bool


class DataContract(Wire):
    sensitivity: DataSensitivity
    contains_pii: Bool
    redaction_required: Bool
    residency: DataResidency | None = None
    retention: RetentionPolicy | None = None


class CredentialPolicy(Wire):
    """What a runtime must hold before dispatch; never the credential itself. No accepted issuer named: any issuer."""

    required: Bool
    accepted_issuers: list[str] = absent_list()
    required_scopes: list[str] = absent_list()
    allow_oauth_refresh: Bool

    def broken_rules(self) -> Iterator[str]:
        if any(not entry.strip() for entry in (*self.accepted_issuers, *self.required_scopes)):
            yield "accepted_issuers or required_scopes has a blank entry"


class ServiceLevelContract(Wire):
    """availability_target: free text such as `99.5%`."""

    expected_latency_ms: U64 | None = None
    timeout_ms: U64 | None = None
    async_expected: Bool
    max_queue_delay_ms: U64 | None = None
    availability_target: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if 0 in (self.expected_latency_ms, self.timeout_ms, self.max_queue_delay_ms):
            yield "a duration is zero"


class TransactionContract(Wire):
    """Its presence alone claims support of transactions."""

    supported_modes: list[TransactionMode] = absent_list()
    requires_plan_before_commit: Bool
    dry_run_fidelity: DryRunFidelity

    def broken_rules(self) -> Iterator[str]:
        if not self.supported_modes:
            yield "supported_modes is empty"


class CompensationContract(Wire):
    mode: CompensationMode
    compensation_capability_id: str | None = None
    compensation_window_ms: U64 | None = None
    requires_approval: Bool

    def broken_rules(self) -> Iterator[str]:
        if self.mode == "supported" and not self.compensation_capability_id:
            yield "mode supported needs compensation_capability_id"


class CapabilityContract(Wire):
    """What a caller may rely on."""

    side_effects: list[SideEffect] = absent_list()
    idempotency: IdempotencyContract
    execution: ExecutionContract
    data: DataContract
    credentials: CredentialPolicy | None = None
    approval: ApprovalPolicy | None = None
    sla: ServiceLevelContract | None = None
    transaction: TransactionContract | None = None
    compensation: CompensationContract | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.side_effects:
            yield "side_effects is empty"


class Binding(Wire):
    """How one profile reaches the capability. Every member beyond `profile` is kept and written back."""

    model_config = ConfigDict(extra="allow")

    profile: str


class Capability(Wire):
    """input_schema: a JSON Schema (draft 2020-12) object. output_schema: an object or a boolean."""

    id: str
    name: str
    kind: CapabilityKind
    input_schema: Json
    output_schema: Json | None = None
    description: str | None = None
    risk: RiskLevel | None = None
    stability: Stability | None = None
    cost: Json | None = None
    auth: Json | None = None
    bindings: list[Binding] = absent_list()
    requires_human_approval: Bool | None = None
    contract: CapabilityContract | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.id:
            yield "id is empty"
        if not self.name.strip():
            yield "name is blank"
        if not isinstance(self.input_schema, dict):
            yield "input_schema is no object"
        if self.output_schema is not None and not isinstance(self.output_schema, dict | bool):
            yield "output_schema is neither an object nor a boolean"
