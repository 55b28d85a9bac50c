"""One invocation, what travels with it, and its cancellation.

Source: wire model §7 "Action", "Cancel", "DelegationEntry" to "ActionTransaction", §9.1, §12 "Conversation".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from aip_hermes.wire.approval import ApprovalDecision
from aip_hermes.wire.closed_sets import ActionMode, ConversationStatus, Priority, TransactionMode
from aip_hermes.wire.model import U64, Json, Time, Wire, absent_list
from aip_hermes.wire.principal import ExternalRef, IdentityContext, Principal

__all__ = [
    "Action",
    "ActionTransaction",
    "Callback",
    "Cancel",
    "CancelTarget",
    "ComplianceContext",
    "Conversation",
    "DelegationEntry",
    "FederationContext",
    "ObservabilityContext",
]

_MAX_DELEGATIONS = 10


class Conversation(Wire):
    id: str
    channel: Json
    status: ConversationStatus
    external_refs: list[ExternalRef] = absent_list()
    contact: Principal | None = None
    assignee: Principal | None = None
    priority: Priority | None = None
    labels: list[str] = absent_list()
    metadata: Json | None = None


class DelegationEntry(Wire):
    from_: Principal = Field(alias="from")
    to: Principal
    scope: str
    delegated_at: Time


class FederationContext(Wire):
    """hops: domains already crossed."""

    trust_domain: str
    hops: list[str] = absent_list()


class Callback(Wire):
    """target: a URL or a subject."""

    profile: str
    target: str
    metadata: Json | None = None


class ObservabilityContext(Wire):
    trace_id: str | None = None
    span_id: str | None = None
    fields: Json | None = None


class ComplianceContext(Wire):
    regimes: list[str] = absent_list()
    data_classification: str | None = None
    metadata: Json | None = None


class ActionTransaction(Wire):
    mode: TransactionMode
    transaction_id: str | None = None
    plan_id: str | None = None
    compensation_for: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.mode == "commit" and self.plan_id is None:
            yield "mode commit needs plan_id"
        if self.mode == "compensate" and self.compensation_for is None:
            yield "mode compensate needs compensation_for"


class Action(Wire):
    """input must not be null. A blank idempotency_key decodes; the fence takes it for a missing one (design D5)."""

    id: str
    capability_id: str
    input: Json
    mode: ActionMode | None = None
    idempotency_key: str | None = None
    timeout_ms: U64 | None = None
    conversation: Conversation | None = None
    memory_context: Json | None = None
    delegation_chain: list[DelegationEntry] = absent_list()
    federation: FederationContext | None = None
    callback: Callback | None = None
    observability: ObservabilityContext | None = None
    compliance: ComplianceContext | None = None
    identity: IdentityContext | None = None
    approval: ApprovalDecision | None = None
    transaction: ActionTransaction | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.input is None:
            yield "input is null"
        if self.timeout_ms == 0:
            yield "timeout_ms is zero"
        if len(self.delegation_chain) > _MAX_DELEGATIONS:
            yield f"delegation_chain has more than {_MAX_DELEGATIONS} entries"
        if self.approval is not None and self.approval.decision != "approved":
            yield "approval carries another decision than approved"


class CancelTarget(Wire):
    """Exactly one of an action and an AIP session."""

    action: str | None = None
    session: str | None = None

    @model_validator(mode="after")
    def _one_member(self) -> Self:
        if (self.action is None) == (self.session is None):
            raise PydanticCustomError("aip_one_member", "exactly one of action and session is needed")
        return self


class Cancel(Wire):
    target: CancelTarget
    reason: str | None = None
