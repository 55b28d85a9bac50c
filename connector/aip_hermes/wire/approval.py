"""A question to a reviewer and the answer.

Source: wire model §7 "ApprovalRequest" to "EvidenceArtifact", §9.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes.wire.approval_policy import ApprovalPolicy, ApproverSelector
from aip_hermes.wire.closed_sets import ApprovalDecisionKind, RiskLevel
from aip_hermes.wire.model import U64, Bool, Json, Time, Wire, absent_list
from aip_hermes.wire.principal import IdentityContext, Principal

__all__ = ["ApprovalConstraint", "ApprovalDecision", "ApprovalRequest", "EvidenceArtifact"]


class EvidenceArtifact(Wire):
    """kind: for example a spelling of EvidenceRequirement."""

    id: str
    kind: str
    uri: str | None = None
    hash: str | None = None
    redacted: Bool

    def broken_rules(self) -> Iterator[str]:
        if not self.id.strip():
            yield "id is blank"
        if not self.kind.strip():
            yield "kind is blank"


class ApprovalRequest(Wire):
    """requester: who asked. subject: whose work it is. policy_snapshot: the policy as it was evaluated."""

    id: str
    action_id: str
    capability_id: str
    requester: Principal
    subject: Principal
    approver_selector: ApproverSelector
    reason: str
    evidence: list[EvidenceArtifact] = absent_list()
    expires_at: Time | None = None
    policy_decision_id: str | None = None
    identity: IdentityContext | None = None
    policy_snapshot: ApprovalPolicy | None = None
    policy_hash: str | None = None
    operator: Principal | None = None
    risk: RiskLevel | None = None
    governed_value: U64 | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.reason.strip():
            yield "reason is blank"


class ApprovalConstraint(Wire):
    """field: a JSON pointer into the action's input.

    operator: `eq`, `neq`, `lt`, `lte`, `gt`, `gte`, `contains`, `max_length`, `min_length`, `in`.
    """

    field: str
    operator: str
    value: Json

    def broken_rules(self) -> Iterator[str]:
        if not self.field.strip():
            yield "field is blank"
        if not self.operator.strip():
            yield "operator is blank"


class ApprovalDecision(Wire):
    """authority_path is filled in by the resolver. target_decision_id: what a revocation revokes."""

    approval_id: str
    decision: ApprovalDecisionKind
    approver: Principal
    decided_at: Time
    reason: str | None = None
    constraints: list[ApprovalConstraint] = absent_list()
    evidence: list[EvidenceArtifact] = absent_list()
    decision_id: str | None = None
    policy_hash: str | None = None
    authority_path: list[str] = absent_list()
    target_decision_id: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.reason is not None and not self.reason.strip():
            yield "reason is blank"
