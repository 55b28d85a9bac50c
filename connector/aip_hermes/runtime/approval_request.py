"""Asking for a decision: what is frozen, and the action that waits.

Source: runtime behaviour §9.1, §9.2; AIP HTTP surface §9.1; design D8, D25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.contract.handler import Description
from aip_hermes.database import Connection
from aip_hermes.runtime import digests
from aip_hermes.runtime.approvals import action_of
from aip_hermes.runtime.events import append_audit, append_event
from aip_hermes.runtime.failures import HumanApprovalRequired, Interrupted
from aip_hermes.runtime.notices import APPROVAL_WAITS
from aip_hermes.runtime.receipts import approval_chain, witness
from aip_hermes.runtime.settlement import origin_of
from aip_hermes.runtime.store import QUERIES, to_json
from aip_hermes.runtime.submission import Submission

__all__ = ["make_request", "park"]

_DEFAULT_REASON: Final = "A reviewer has to approve this operation."
_GOVERNED: Final = ("amount_minor", "amount", "value", "total_minor")


def make_request(
    submission: Submission,
    policy: wire.ApprovalPolicy,
    description: Description | None,
    *,
    approval_id: str,
    now: int,
) -> wire.ApprovalRequest:
    """Freeze what a decision will be about."""
    action, principal = submission.action, submission.principal
    input_hash = digests.frozen_input_hash(action)
    sentences = [policy.reason or _DEFAULT_REASON, *([description.summary] if description else [])]
    tenant_id = submission.actor.tenant_id
    members: dict[str, Any] = {
        "id": approval_id,
        "action_id": action.id,
        "capability_id": action.capability_id,
        "requester": principal,
        "subject": principal,
        "approver_selector": policy.approver_selector,
        "reason": " ".join(sentence.strip() for sentence in sentences if sentence.strip()),
        "evidence": _evidence(submission, policy, description, input_hash=input_hash),
        "expires_at": None if policy.ttl_ms is None else wire.rfc3339(now + policy.ttl_ms),
        "policy_decision_id": f"policy:{action.id}",
        "identity": wire.IdentityContext(tenant=wire.TenantRef(id=tenant_id)) if tenant_id else None,
        "policy_snapshot": policy,
        "policy_hash": digests.policy_hash(
            policy, action=action, requester_id=principal.id, subject_id=None, input_hash=input_hash
        ),
        "operator": principal,
        "risk": submission.capability.risk,
        "governed_value": _governed_value(action.input),
    }
    return wire.ApprovalRequest(**{name: value for name, value in members.items() if value is not None})


def park(
    connection: Connection,
    submission: Submission,
    request: wire.ApprovalRequest,
    description: Description | None,
    *,
    now: int,
) -> dict[str, Any]:
    """Record the request, freeze the action, tell it; return the pending result that Action ID and key now answer.

    Raises: Interrupted when the claim was lost.
    """
    stored = _pending(submission, request)
    parked = connection.execute(
        QUERIES["park_action"],
        {
            "tenant": submission.tenant,
            "action_id": submission.action.id,
            "attempt": submission.attempt,
            "approval_id": request.id,
            "parked": to_json(submission.parked()),
            "result": to_json(stored),
            "now": now,
        },
    )
    if not parked:
        raise Interrupted("the claim was lost before the approval was asked")
    connection.execute(
        QUERIES["insert_approval"],
        {
            "approval_id": request.id,
            "tenant": submission.tenant,
            "action_id": submission.action.id,
            "capability_id": submission.action.capability_id,
            "requester_id": request.requester.id,
            "subject_id": request.subject.id,
            "request": to_json(request.wire()),
            "input_hash": digests.frozen_input_hash(submission.action),
            "content_hash": digests.frozen_hash(submission.parked(), description.snapshot if description else None),
            "snapshot": to_json(description.snapshot) if description else None,
            "expires_at": None if request.expires_at is None else wire.parse_rfc3339(request.expires_at),
            "now": now,
        },
    )
    row = action_of(connection, submission.tenant, submission.action.id)
    append_event(
        connection,
        origin_of(row),
        event_id=f"evt_{request.id}_pending_request",
        kind="aip.approval.requested",
        now=now,
        data={"approval_id": request.id, "action_id": submission.action.id, "status": "pending"},
        actor=submission.principal.wire(),
    )
    _witness(connection, submission, request, now=now)
    connection.note(
        APPROVAL_WAITS,
        tenant=submission.tenant,
        approval_id=request.id,
        capability_id=submission.action.capability_id,
        endpoint_id=str(submission.offer.endpoint_id),
        requester_id=request.requester.id,
        expires_at=None if request.expires_at is None else wire.parse_rfc3339(request.expires_at),
    )
    return stored


def _witness(connection: Connection, submission: Submission, request: wire.ApprovalRequest, *, now: int) -> None:
    """Audit that a decision was asked, and begin the approval's chain with what asked for it and what it froze."""
    frozen = {
        "approval_id": request.id,
        "action_id": request.action_id,
        "capability_id": request.capability_id,
        "policy_hash": request.policy_hash,
    }
    append_audit(
        connection,
        origin_of(action_of(connection, submission.tenant, request.action_id)),
        audit_id=f"audit:approval:{submission.tenant}:{request.id}:requested",
        actor_id=request.requester.id,
        now=now,
        record={"action": "aip.approval.requested", **frozen, "status": "pending"},
    )
    evidence = {item.kind: item.hash for item in request.evidence}
    kinds: tuple[wire.ReceiptType, ...] = ("policy_decision", "approval_requested")
    for kind in kinds:
        witness(
            connection,
            tenant=submission.tenant,
            chain_id=approval_chain(request.id),
            receipt_id=f"rcpt_{request.id}_{kind}",
            kind=kind,
            actor=request.requester,
            now=now,
            correlation_id=submission.context.correlation_id,
            data={**frozen, "evidence": evidence},
        )


def _pending(submission: Submission, request: wire.ApprovalRequest) -> dict[str, Any]:
    policy = request.policy_snapshot
    error = HumanApprovalRequired(
        f"a reviewer has to decide approval {request.id}",
        details={
            "capability_id": request.capability_id,
            "risk": submission.capability.risk,
            "requires_human_approval": True,
            "approval_policy": policy.wire() if policy is not None else None,
            "approval_id": request.id,
        },
    )
    return {
        "status": "pending_approval",
        "output": {
            "requires_human_approval": True,
            "approval_id": request.id,
            "capability_id": request.capability_id,
            "reason": "allowed",
            "approval_request": request.wire(),
        },
        "error": wire.protocol_error(error).wire(),
    }


def _evidence(
    submission: Submission, policy: wire.ApprovalPolicy, description: Description | None, *, input_hash: str
) -> list[wire.EvidenceArtifact]:
    action = submission.action
    found = []
    if "input_snapshot" in policy.evidence_requirements:
        found.append(
            wire.EvidenceArtifact(
                id=f"evidence:input:{action.id}", kind="input_snapshot", hash=input_hash, redacted=True
            )
        )
    if "policy_decision" in policy.evidence_requirements:
        decision_hash = digests.policy_decision_hash(policy, action=action)
        found.append(
            wire.EvidenceArtifact(
                id=f"evidence:policy:{action.id}", kind="policy_decision", hash=decision_hash, redacted=False
            )
        )
    if description is not None:
        target_hash = wire.sha256_hex(description.snapshot)
        found.append(
            wire.EvidenceArtifact(
                id=f"evidence:target:{action.id}", kind="target_snapshot", hash=target_hash, redacted=True
            )
        )
    return found


def _governed_value(value: Any) -> int | None:
    if not isinstance(value, Mapping):
        return None
    for name in _GOVERNED:
        found = value.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**64:
            return found
    return None
