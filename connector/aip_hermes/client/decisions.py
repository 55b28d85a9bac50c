"""Deciding an approval: read the record, then answer exactly what was read.

A decision copies the record's `policy_hash`, so that it binds the policy, the action and the input that were shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aip_hermes import wire
from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ApprovalId

__all__ = ["AlreadyDecided", "NothingToRevoke", "Verb", "decision_on", "revocation_of"]

Verb = Literal["approved", "denied"]


class AlreadyDecided(ClientFailure, code="client.already_decided", category="policy"):
    """The record is no longer pending; no decision was sent."""


class NothingToRevoke(ClientFailure, code="client.nothing_to_revoke", category="policy"):
    """The record shows no approving decision, or several of which none was named; no decision was sent."""


def decision_on(
    record: Mapping[str, Any],
    *,
    approval_id: ApprovalId,
    decision: Verb,
    reason: str,
    approver: Mapping[str, Any],
    decision_id: str,
    decided_at_ms: int,
) -> JsonObject:
    """Return the `ApprovalDecision` for an `approval_record_view`.

    approver: the principal that the server derives from the token; another one is refused there.
    Raises: AlreadyDecided.
    """
    status = record.get("status")
    if status != "pending":
        raise AlreadyDecided(
            f"approval {approval_id} is already {status}, so it can't be {decision} now; nothing was sent"
        )
    return _made(
        record,
        approval_id=approval_id,
        decision=decision,
        reason=reason,
        approver=approver,
        decision_id=decision_id,
        decided_at_ms=decided_at_ms,
    )


def revocation_of(
    record: Mapping[str, Any],
    decisions: Sequence[Mapping[str, Any]],
    *,
    target_decision_id: str | None,
    approval_id: ApprovalId,
    reason: str,
    approver: Mapping[str, Any],
    decision_id: str,
    decided_at_ms: int,
) -> JsonObject:
    """Return the `ApprovalDecision` that takes an approving decision back.

    decisions: of the approval's context; where a server tells none, the record's own counts. target_decision_id: which
    one; None: the only one, else the approver's own.
    Raises: AlreadyDecided, NothingToRevoke.
    """
    status = record.get("status")
    if status not in ("pending", "approved"):
        raise AlreadyDecided(f"approval {approval_id} is already {status}, so nothing of it can be revoked")
    latest = record.get("decision")
    known = [*decisions, *([latest] if isinstance(latest, Mapping) and not decisions else [])]
    given = [each for each in known if each.get("decision") == "approved" and isinstance(each.get("decision_id"), str)]
    mine = [each for each in given if _id_of(each.get("approver")) == approver.get("id")]
    target = target_decision_id
    if target is None and len(given) == 1:
        target = given[0]["decision_id"]
    elif target is None and len(mine) == 1:
        target = mine[0]["decision_id"]
    if target is None:
        ids = ", ".join(str(each["decision_id"]) for each in given)
        raise NothingToRevoke(
            f"approval {approval_id} has several approving decisions ({ids}); name the one to revoke; nothing was sent"
            if given
            else f"nobody has approved {approval_id}, so nothing can be revoked; deny it instead; nothing was sent"
        )
    made = _made(
        record,
        approval_id=approval_id,
        decision="revoked",
        reason=reason,
        approver=approver,
        decision_id=decision_id,
        decided_at_ms=decided_at_ms,
    )
    return {**made, "target_decision_id": target}


def _made(
    record: Mapping[str, Any],
    *,
    approval_id: ApprovalId,
    decision: str,
    reason: str,
    approver: Mapping[str, Any],
    decision_id: str,
    decided_at_ms: int,
) -> JsonObject:
    request = record.get("request")
    policy_hash = request.get("policy_hash") if isinstance(request, Mapping) else None
    made: JsonObject = {
        "approval_id": str(approval_id),
        "decision": decision,
        "approver": {member: approver[member] for member in ("id", "kind") if member in approver},
        "decided_at": wire.rfc3339(decided_at_ms),
        "reason": reason,
        "decision_id": decision_id,
    }
    if isinstance(policy_hash, str):
        made["policy_hash"] = policy_hash
    return made


def _id_of(principal: Any) -> Any:
    return principal.get("id") if isinstance(principal, Mapping) else None
