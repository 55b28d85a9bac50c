"""Who may decide: the policy that a capability publishes and an approval freezes.

Source: wire model §6 "ApprovalPolicy" to "DelegatedApprovalAuthority".
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from aip_hermes.wire.closed_sets import EvidenceRequirement, RiskLevel
from aip_hermes.wire.model import U32, U64, Bool, Time, Wire, absent_list

__all__ = [
    "AllRule",
    "AnyRule",
    "ApprovalPolicy",
    "ApprovalRule",
    "ApproverSelector",
    "DelegatedApprovalAuthority",
    "DelegatedAuthorityRule",
    "ExternalSystemRule",
    "ExternalSystemSelector",
    "GroupRule",
    "GroupSelector",
    "PrincipalRule",
    "PrincipalSelector",
    "QuorumRule",
    "RoleRule",
    "RoleSelector",
    "SeparationOfDuties",
    "TenantPolicyRule",
    "TenantPolicySelector",
]


class PrincipalSelector(Wire):
    type: Literal["principal"] = "principal"
    id: str


class RoleSelector(Wire):
    type: Literal["role"] = "role"
    name: str


class GroupSelector(Wire):
    type: Literal["group"] = "group"
    name: str


class TenantPolicySelector(Wire):
    """Whom the tenant's own policy names."""

    type: Literal["tenant_policy"] = "tenant_policy"


class ExternalSystemSelector(Wire):
    type: Literal["external_system"] = "external_system"
    system: str


ApproverSelector = Annotated[
    PrincipalSelector | RoleSelector | GroupSelector | TenantPolicySelector | ExternalSystemSelector,
    Field(discriminator="type"),
]


class AllRule(Wire):
    """Every child holds. allow_decision_reuse: one decision may satisfy several children."""

    operator: Literal["all"] = "all"
    rules: list[ApprovalRule]
    allow_decision_reuse: Bool = False


class AnyRule(Wire):
    operator: Literal["any"] = "any"
    rules: list[ApprovalRule]


class QuorumRule(Wire):
    """At least `required` children hold."""

    operator: Literal["quorum"] = "quorum"
    required: U32
    rules: list[ApprovalRule]
    distinct_principals: Bool = True


class PrincipalRule(Wire):
    operator: Literal["principal"] = "principal"
    id: str


class RoleRule(Wire):
    operator: Literal["role"] = "role"
    name: str


class GroupRule(Wire):
    operator: Literal["group"] = "group"
    name: str


class TenantPolicyRule(Wire):
    operator: Literal["tenant_policy"] = "tenant_policy"
    policy_id: str


class ExternalSystemRule(Wire):
    operator: Literal["external_system"] = "external_system"
    system: str


class DelegatedAuthorityRule(Wire):
    operator: Literal["delegated_authority"] = "delegated_authority"
    scope: str
    max_risk: RiskLevel | None = None
    max_value: U64 | None = None


ApprovalRule = Annotated[
    AllRule
    | AnyRule
    | QuorumRule
    | PrincipalRule
    | RoleRule
    | GroupRule
    | TenantPolicyRule
    | ExternalSystemRule
    | DelegatedAuthorityRule,
    Field(discriminator="operator"),
]
"""An expression tree."""


class SeparationOfDuties(Wire):
    """requester, operator: may not decide. allow_self_approval: explicit permission, loses to a stricter flag."""

    requester_must_differ: Bool = False
    operator_must_differ: Bool = False
    allow_self_approval: Bool = False


class DelegatedApprovalAuthority(Wire):
    """`principal` is an id, not an object."""

    principal: str
    scope: list[str] = absent_list()
    expires_at: Time | None = None


class ApprovalPolicy(Wire):
    """rule, where present, wins over approver_selector. ttl_ms: lifetime of a request."""

    required: Bool
    reason: str | None = None
    approver_selector: ApproverSelector
    ttl_ms: U64 | None = None
    evidence_requirements: list[EvidenceRequirement] = absent_list()
    delegated_authority: DelegatedApprovalAuthority | None = None
    rule: ApprovalRule | None = None
    minimum_distinct_principals: U32 = 1
    separation_of_duties: SeparationOfDuties = SeparationOfDuties()
    policy_version: str | None = None
