"""Asking for a decision, and what happens when it is refused or never comes.

Source: runtime behaviour §9.1, §9.2; AIP HTTP surface §9; design D8, D9, D25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.contract.handler import Description
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.ports import NewId
from aip_hermes.runtime import digests
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.events import append_event, decision_event_id
from aip_hermes.runtime.failures import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRevoked,
    HumanApprovalRequired,
    Interrupted,
)
from aip_hermes.runtime.settlement import Ending, origin_of, settle
from aip_hermes.runtime.store import QUERIES, from_json, to_json
from aip_hermes.runtime.submission import Submission

__all__ = [
    "RUNTIME",
    "action_of",
    "cancel_parked",
    "conclude",
    "expire",
    "expire_all",
    "fetch",
    "make_request",
    "overdue",
    "park",
]

RUNTIME: Final = wire.Principal(id="system:aip-runtime", kind="system")
"""Who decides that a time is up."""

_DEFAULT_REASON: Final = "A reviewer has to approve this operation."
_GOVERNED: Final = ("amount_minor", "amount", "value", "total_minor")
_REFUSALS: Final[Mapping[str, type[ActionFailed]]] = {
    "denied": ApprovalDenied,
    "expired": ApprovalExpired,
    "revoked": ApprovalRevoked,
}


def fetch(connection: Connection, *, tenant: str, approval_id: str) -> dict[str, Any] | None:
    """Return an approval's row, or None for one that this tenant does not have."""
    rows = connection.execute(QUERIES["fetch_approval"], {"tenant": tenant, "approval_id": approval_id})
    return rows[0] if rows else None


def overdue(row: Mapping[str, Any], *, now: int) -> bool:
    """Whether a pending approval's time is up."""
    return row["status"] == "pending" and row["expires_at"] is not None and row["expires_at"] <= now


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
    return stored


def conclude(
    connection: Connection,
    row: Mapping[str, Any],
    decision: wire.ApprovalDecision,
    *,
    reserved_until: int,
    now: int,
    new_id: NewId,
    instead: Cancelled | None = None,
) -> bool:
    """Record the one terminal decision and its first consequence; False when another, or its end, came first.

    approved: the action runs, claimed, with its input still frozen. Otherwise the action fails, or is what `instead`
    says, and its input is erased.
    """
    decided = connection.execute(
        QUERIES["decide_approval"],
        {
            "approval_id": row["approval_id"],
            "status": decision.decision,
            "decision": to_json(decision.wire()),
            "decision_id": decision.decision_id,
            "decided_by": decision.approver.id,
            "now": now,
        },
    )
    if not decided:
        return False
    action = action_of(connection, row["tenant"], row["action_id"])
    append_event(
        connection,
        origin_of(action),
        event_id=decision_event_id(row["approval_id"], decision.decision),
        kind="aip.approval.granted" if decision.decision == "approved" else f"aip.approval.{decision.decision}",
        now=now,
        data={
            "approval_id": row["approval_id"],
            "decision": decision.decision,
            "decided_at": wire.rfc3339(now),
        },
        actor=decision.approver.wire(),
    )
    if decision.decision == "approved":
        connection.execute(
            QUERIES["release_parked"],
            {
                "tenant": row["tenant"],
                "action_id": row["action_id"],
                "approval_id": row["approval_id"],
                "reserved_until": reserved_until,
                "now": now,
            },
        )
        return True
    details = {"approval_id": row["approval_id"], "approval_status": decision.decision}
    settle(
        connection,
        tenant=row["tenant"],
        action_id=row["action_id"],
        attempt=action["attempt"],
        ending=Ending(
            outcome=instead or _REFUSALS[decision.decision](f"the approval was {decision.decision}", details=details),
            approval_id=row["approval_id"],
            approval_status=decision.decision,
        ),
        now=now,
        new_id=new_id,
    )
    return True


def expire(connection: Connection, row: Mapping[str, Any], *, now: int, new_id: NewId) -> bool:
    """End a pending approval whose time is up."""
    decision = wire.ApprovalDecision(
        approval_id=row["approval_id"],
        decision="expired",
        approver=RUNTIME,
        decided_at=wire.rfc3339(now),
        reason="approval TTL expired",
        decision_id=f"decision:{row['approval_id']}:expired",
    )
    return conclude(connection, row, decision, reserved_until=now, now=now, new_id=new_id)


def cancel_parked(
    connection: Connection,
    action: Mapping[str, Any],
    cancelled: Cancelled,
    *,
    by: wire.Principal,
    now: int,
    new_id: NewId,
) -> dict[str, Any] | None:
    """End a parked action as cancelled and revoke its approval; return what is kept, None if a decision came first."""
    row = fetch(connection, tenant=action["tenant"], approval_id=action["approval_id"])
    if row is None:
        return None
    decision = wire.ApprovalDecision(
        approval_id=row["approval_id"],
        decision="revoked",
        approver=by,
        decided_at=wire.rfc3339(now),
        reason="the action was cancelled",
        decision_id=f"decision:{row['approval_id']}:cancelled",
    )
    if not conclude(connection, row, decision, reserved_until=now, now=now, new_id=new_id, instead=cancelled):
        return None
    kept: dict[str, Any] = from_json(action_of(connection, row["tenant"], row["action_id"])["result"])
    return kept


def expire_all(connection: Connection, *, now: int, new_id: NewId) -> None:
    """End every pending approval whose time is up."""
    while overdue_rows := connection.execute(QUERIES["fetch_overdue"], {"now": now}):
        for row in overdue_rows:
            expire(connection, row, now=now, new_id=new_id)


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


def action_of(connection: Connection, tenant: str, action_id: str) -> dict[str, Any]:
    """Return the row of an action that exists."""
    return connection.execute(QUERIES["fetch_action"], {"tenant": tenant, "action_id": action_id})[0]
