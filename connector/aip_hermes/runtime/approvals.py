"""What becomes of an approval: votes, the decision that ends it, its expiry, its revocation.

Each is one transaction with its event and its audit record.

| found | decision | becomes |
|---|---|---|
| pending | approved, more are needed | pending, the vote is kept |
| pending | approved, enough | approved; the action runs |
| pending | denied, expired, revoked | that; the action fails with its code |
| pending | its action is cancelled | revoked; the action is cancelled |
| approved, nothing sent | revoked | revoked; the action fails with its code |

Source: runtime behaviour §9.4–9.6; AIP HTTP surface §9; design D8, D9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.approval_records import (
    DecisionTaken,
    action_of,
    admitted,
    decisions_of,
    record_decision,
    tell_decision,
    tell_vote,
)
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.failures import ApprovalDenied, ApprovalExpired, ApprovalRevoked
from aip_hermes.runtime.settlement import RUNTIME, Ending, settle
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = [
    "DecisionTaken",
    "Ended",
    "action_of",
    "admitted",
    "cancel_parked",
    "conclude",
    "decisions_of",
    "expire",
    "fetch",
    "overdue",
    "vote",
    "withdraw",
]

_REFUSALS: Final[Mapping[str, type[ActionFailed]]] = {
    "denied": ApprovalDenied,
    "expired": ApprovalExpired,
    "revoked": ApprovalRevoked,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """An action that ended with its approval. stored: what is kept of its result."""

    tenant: str
    action_id: str
    stored: Mapping[str, Any]


def fetch(connection: Connection, *, tenant: str, approval_id: str) -> dict[str, Any] | None:
    """Return an approval's row, or None for one that this tenant does not have."""
    rows = connection.execute(QUERIES["fetch_approval"], {"tenant": tenant, "approval_id": approval_id})
    return rows[0] if rows else None


def overdue(row: Mapping[str, Any], *, now: int) -> bool:
    """Whether a pending approval's time is up."""
    return row["status"] == "pending" and row["expires_at"] is not None and row["expires_at"] <= now


def vote(
    connection: Connection,
    row: Mapping[str, Any],
    decision: wire.ApprovalDecision,
    *,
    needed: int,
    reserved_until: int,
    now: int,
) -> Literal["kept", "concluded"] | None:
    """Record an approval of which `needed` different principals have to give one; None when an end came first.

    Raises: DecisionTaken.
    """
    if needed > 1:
        if not connection.execute(QUERIES["hold_pending"], {"approval_id": row["approval_id"], "now": now}):
            return None
        before = decisions_of(connection, row["approval_id"])
        mine = {"approver_id": decision.approver.id, "decision": "approved"}
        if admitted([*before, mine]) < needed:
            record_decision(connection, row, decision, terminal=False, now=now)
            tell_vote(connection, row, decision, given=admitted(before) + 1, needed=needed, now=now)
            return "kept"
    concluded = conclude(connection, row, decision, reserved_until=reserved_until, now=now)
    return "concluded" if concluded else None


def conclude(
    connection: Connection,
    row: Mapping[str, Any],
    decision: wire.ApprovalDecision,
    *,
    reserved_until: int,
    now: int,
    instead: Cancelled | None = None,
) -> bool:
    """Record the one terminal decision and its first consequence; False when another, or its end, came first.

    approved: the action runs, claimed, with its input still frozen. Otherwise the action fails, or is what `instead`
    says, and its input is erased.
    Raises: DecisionTaken.
    """
    if not connection.execute(QUERIES["decide_approval"], _terminal(row, decision, now=now)):
        return False
    record_decision(connection, row, decision, terminal=True, now=now)
    tell_decision(connection, row, decision, now=now)
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
    _end_action(connection, row, decision, instead=instead, now=now)
    return True


def withdraw(connection: Connection, row: Mapping[str, Any], decision: wire.ApprovalDecision, *, now: int) -> bool:
    """Revoke an approval that was given and whose action has sent nothing; False when it is too late for that.

    Raises: DecisionTaken.
    """
    held = {name: row[name] for name in ("tenant", "action_id", "approval_id")}
    if not connection.execute(QUERIES["hold_released"], {**held, "now": now}):
        return False
    if not connection.execute(QUERIES["revoke_approved"], _revoked(row, decision, now=now)):
        return False
    record_decision(connection, row, decision, terminal=True, now=now)
    tell_decision(connection, row, decision, now=now)
    _end_action(connection, row, decision, instead=None, now=now)
    return True


def expire(connection: Connection, row: Mapping[str, Any], *, now: int) -> Ended | None:
    """End a pending approval whose time is up; return what its action became, None when another end came first."""
    decision = wire.ApprovalDecision(
        approval_id=row["approval_id"],
        decision="expired",
        approver=RUNTIME,
        decided_at=wire.rfc3339(now),
        reason="approval TTL expired",
        decision_id=f"decision:{row['approval_id']}:expired",
    )
    if not conclude(connection, row, decision, reserved_until=now, now=now):
        return None
    stored = from_json(action_of(connection, row["tenant"], row["action_id"])["result"])
    return Ended(tenant=row["tenant"], action_id=row["action_id"], stored=stored)


def cancel_parked(
    connection: Connection,
    action: Mapping[str, Any],
    cancelled: Cancelled,
    *,
    by: wire.Principal,
    now: int,
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
    if not conclude(connection, row, decision, reserved_until=now, now=now, instead=cancelled):
        return None
    kept: dict[str, Any] = from_json(action_of(connection, row["tenant"], row["action_id"])["result"])
    return kept


def _terminal(row: Mapping[str, Any], decision: wire.ApprovalDecision, *, now: int) -> dict[str, Any]:
    return {"status": decision.decision, **_revoked(row, decision, now=now)}


def _revoked(row: Mapping[str, Any], decision: wire.ApprovalDecision, *, now: int) -> dict[str, Any]:
    return {
        "approval_id": row["approval_id"],
        "decision": to_json(decision.wire()),
        "decision_id": decision.decision_id,
        "decided_by": decision.approver.id,
        "now": now,
    }


def _end_action(
    connection: Connection,
    row: Mapping[str, Any],
    decision: wire.ApprovalDecision,
    *,
    instead: Cancelled | None,
    now: int,
) -> None:
    details = {"approval_id": row["approval_id"], "approval_status": decision.decision}
    settle(
        connection,
        tenant=row["tenant"],
        action_id=row["action_id"],
        attempt=action_of(connection, row["tenant"], row["action_id"])["attempt"],
        ending=Ending(
            outcome=instead or _REFUSALS[decision.decision](f"the approval was {decision.decision}", details=details),
            approval_id=row["approval_id"],
            approval_status=decision.decision,
        ),
        now=now,
    )
