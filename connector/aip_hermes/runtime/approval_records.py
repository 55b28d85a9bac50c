"""The rows, events and audit records of decisions about approvals; written inside the transaction of the change.

Source: runtime behaviour §9.4, §15; issue "a runtime that never lies", approvals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime.events import append_audit, append_event, decision_event_id, vote_event_id
from aip_hermes.runtime.receipts import approval_chain, witness
from aip_hermes.runtime.settlement import origin_of
from aip_hermes.runtime.store import QUERIES, to_json

__all__ = ["DecisionTaken", "action_of", "admitted", "decisions_of", "record_decision", "tell_decision", "tell_vote"]

_RECEIPTS: Final[Mapping[str, wire.ReceiptType]] = {
    "approved": "approval_granted",
    "denied": "approval_denied",
    "expired": "approval_expired",
    "revoked": "approval_revoked",
}


class DecisionTaken(Exception):
    """This decision id, or this approver's approval, was recorded in the meantime; nothing is written."""


def action_of(connection: Connection, tenant: str, action_id: str) -> dict[str, Any]:
    """Return the row of an action that exists."""
    return connection.execute(QUERIES["fetch_action"], {"tenant": tenant, "action_id": action_id})[0]


def decisions_of(connection: Connection, approval_id: str) -> Sequence[Mapping[str, Any]]:
    """Return the rows of all decisions about an approval, in the order of their recording."""
    return connection.execute(QUERIES["fetch_decisions"], {"approval_id": approval_id})


def admitted(decisions: Sequence[Mapping[str, Any]]) -> int:
    """Return how many different principals approved."""
    return len({row["approver_id"] for row in decisions if row["decision"] == "approved"})


def record_decision(
    connection: Connection, row: Mapping[str, Any], decision: wire.ApprovalDecision, *, terminal: bool, now: int
) -> None:
    """Keep a decision, whole. terminal: it ended the approval.

    Raises: DecisionTaken.
    """
    recorded = connection.execute(
        QUERIES["record_decision"],
        {
            "approval_id": row["approval_id"],
            "decision_id": decision.decision_id,
            "tenant": row["tenant"],
            "decision": decision.decision,
            "approver_id": decision.approver.id,
            "terminal": int(terminal),
            "record": to_json(decision.wire()),
            "now": now,
        },
    )
    if not recorded:
        raise DecisionTaken(f"a decision with this id or by this approver stands for {row['approval_id']}")


def tell_decision(connection: Connection, row: Mapping[str, Any], decision: wire.ApprovalDecision, *, now: int) -> None:
    """Tell the decision that ended an approval."""
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
    _audit(connection, row, decision, status=decision.decision, now=now)
    kind = _RECEIPTS[decision.decision]
    witness(
        connection,
        tenant=row["tenant"],
        chain_id=approval_chain(row["approval_id"]),
        receipt_id=f"rcpt_{row['approval_id']}_{kind}",
        kind=kind,
        actor=decision.approver,
        now=now,
        correlation_id=action["correlation_id"],
        data={
            "approval_id": row["approval_id"],
            "action_id": row["action_id"],
            "decision_id": decision.decision_id,
            "policy_hash": decision.policy_hash,
            "decision_sha256": wire.sha256_hex(decision.wire()),
        },
    )


def tell_vote(
    connection: Connection,
    row: Mapping[str, Any],
    decision: wire.ApprovalDecision,
    *,
    given: int,
    needed: int,
    now: int,
) -> None:
    """Tell an approval that does not suffice yet. given: how many there are with it."""
    append_event(
        connection,
        origin_of(action_of(connection, row["tenant"], row["action_id"])),
        event_id=vote_event_id(row["approval_id"], str(decision.decision_id)),
        kind="aip.approval.vote_recorded",
        now=now,
        data={
            "approval_id": row["approval_id"],
            "decision": decision.decision,
            "decided_at": wire.rfc3339(now),
            "approvals": given,
            "approvals_needed": needed,
        },
        actor=decision.approver.wire(),
    )
    _audit(connection, row, decision, status="pending", now=now)


def _audit(
    connection: Connection, row: Mapping[str, Any], decision: wire.ApprovalDecision, *, status: str, now: int
) -> None:
    """One record per decision: who decided what, on which policy, and how the approval stands then."""
    action = action_of(connection, row["tenant"], row["action_id"])
    name = wire.sha256_hex(decision.decision_id)
    append_audit(
        connection,
        origin_of(action),
        audit_id=f"audit:approval:{row['tenant']}:{row['approval_id']}:{name}",
        actor_id=decision.approver.id,
        now=now,
        record={
            "action": "aip.approval.decision",
            "action_id": row["action_id"],
            "approval_id": row["approval_id"],
            "decision": decision.decision,
            "decision_id": decision.decision_id,
            "policy_hash": decision.policy_hash,
            "status": status,
            "session_id": action["session_id"],
            "correlation_id": action["correlation_id"],
        },
    )
