"""Deciding an approval: read the record, then answer exactly what was read.

A decision copies the record's `policy_hash`, so that it binds the policy, the action and the input that were shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from aip_hermes import wire
from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ApprovalId

__all__ = ["AlreadyDecided", "Verb", "decision_on"]

Verb = Literal["approved", "denied"]


class AlreadyDecided(ClientFailure, code="client.already_decided", category="policy"):
    """The record is no longer pending; no decision was sent."""


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
