"""Where an action stands, its approvals as records, and how one asks for either.

Source: wire model §7 "ActionStatus" to "ActionList", "ApprovalRecordView" to "ApprovalListRequest", §9.1. A page's
`limit` is not checked here: a server clamps it.
"""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes.wire.action import ActionTransaction
from aip_hermes.wire.approval import ApprovalDecision, ApprovalRequest
from aip_hermes.wire.closed_sets import ActionLifecycleState, ActionResultStatus
from aip_hermes.wire.event import StreamChunk
from aip_hermes.wire.model import U32, U64, Bool, Json, Links, Time, Wire, absent_links, absent_list
from aip_hermes.wire.principal import IdentityContext
from aip_hermes.wire.receipt import ReceiptChain
from aip_hermes.wire.result import ActionResult

__all__ = [
    "MAX_PAGE",
    "ActionList",
    "ActionListRequest",
    "ActionResultRequest",
    "ActionStatus",
    "ActionStatusRequest",
    "ApprovalEvidencePayload",
    "ApprovalList",
    "ApprovalListRequest",
    "ApprovalQueryRequest",
    "ApprovalRecordView",
]

MAX_PAGE = 1000
"""Entries of one list reply."""


class _TenantQuery(Wire):
    def broken_rules(self) -> Iterator[str]:
        tenant_id = getattr(self, "tenant_id", None)
        if tenant_id is not None and not tenant_id.strip():
            yield "tenant_id is blank"


class ActionStatus(Wire):
    """queued_state: free text of the back end. updated_at is the one time that is always there."""

    action_id: str
    capability_id: str | None = None
    session_id: str | None = None
    correlation_id: str | None = None
    state: ActionLifecycleState
    queued_state: str | None = None
    result_status: ActionResultStatus | None = None
    approval_id: str | None = None
    transaction_id: str | None = None
    delegation_id: str | None = None
    started_at: Time | None = None
    updated_at: Time
    completed_at: Time | None = None
    retry: Json | None = None
    lease: Json | None = None
    result: ActionResult | None = None
    receipt_chain: ReceiptChain | None = None
    chunks: list[StreamChunk] = absent_list()
    links: Links = absent_links()

    def broken_rules(self) -> Iterator[str]:
        explained = self.result_status is not None or (self.result is not None and self.result.error is not None)
        if self.state == "failed" and not explained:
            yield "state failed needs result_status or a result with an error"


class ActionStatusRequest(_TenantQuery):
    """wait_ms: at most 30000, else cut."""

    action_id: str
    tenant_id: str | None = None
    include_result: Bool = False
    include_receipts: Bool = False
    include_chunks: Bool = False
    wait_ms: U64 | None = None


class ActionResultRequest(_TenantQuery):
    action_id: str
    tenant_id: str | None = None
    wait_ms: U64 | None = None
    include_receipt: Bool = False
    include_terminal_events: Bool = False


class ActionListRequest(_TenantQuery):
    state: ActionLifecycleState | None = None
    capability_id: str | None = None
    session_id: str | None = None
    principal_id: str | None = None
    approval_id: str | None = None
    transaction_id: str | None = None
    tenant_id: str | None = None
    cursor: str | None = None
    limit: U32 | None = None
    include_results: Bool = False
    include_receipts: Bool = False


class ActionList(Wire):
    """total_size: matches before paging."""

    actions: list[ActionStatus]
    total_size: U64
    cursor: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if len(self.actions) > MAX_PAGE:
            yield f"actions has more than {MAX_PAGE} entries"


class ApprovalEvidencePayload(Wire):
    """The exact input that a decision releases; for reviewers who may see it."""

    action_id: str
    capability_id: str
    input_hash: str
    input: Json
    transaction: ActionTransaction | None = None
    identity: IdentityContext | None = None


class ApprovalRecordView(Wire):
    """status: free text; ours writes pending, approved, denied, expired, revoked."""

    request: ApprovalRequest
    decision: ApprovalDecision | None = None
    status: str
    action_status: ActionStatus | None = None
    receipt_chain: ReceiptChain | None = None
    evidence_payload: ApprovalEvidencePayload | None = None
    created_at: Time
    updated_at: Time

    def broken_rules(self) -> Iterator[str]:
        if not self.status.strip():
            yield "status is blank"
        if self.decision is not None and self.decision.approval_id != self.request.id:
            yield "decision is about another approval"


class ApprovalList(Wire):
    approvals: list[ApprovalRecordView]
    cursor: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if len(self.approvals) > MAX_PAGE:
            yield f"approvals has more than {MAX_PAGE} entries"


class ApprovalQueryRequest(_TenantQuery):
    """include_evidence_payload needs two scopes besides reading."""

    approval_id: str
    tenant_id: str | None = None
    include_action_status: Bool = False
    include_receipts: Bool = False
    include_evidence_payload: Bool = False


class ApprovalListRequest(_TenantQuery):
    """status: free text, not blank. approver, requester: principal ids."""

    status: str | None = None
    approver: str | None = None
    requester: str | None = None
    tenant_id: str | None = None
    cursor: str | None = None
    limit: U32 | None = None
    include_action_status: Bool = False
    include_receipts: Bool = False

    def broken_rules(self) -> Iterator[str]:
        yield from super().broken_rules()
        if self.status is not None and not self.status.strip():
            yield "status is blank"
