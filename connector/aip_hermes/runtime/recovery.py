"""What a start does with actions that the process before left unfinished (design D4).

| found | becomes |
|---|---|
| claimed, no intent, no decision | failed, certain, retryable: nothing was sent |
| claimed, no intent, released by an approval | run, exactly once |
| taken from the queue, no intent | waits again, at its place |
| intent recorded, its row says `recovery: observe` | goes on: the handler looks what became of it, and only reads |
| intent recorded otherwise | failed, uncertain: it may have been sent; its session stays closed for the hold time |
| parked, time up | expired |

The owner lock of a data directory guarantees that nobody else is working on them. Of a store that several workers
share, only what has no lease any more is taken, and every worker looks for it while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import structlog

from aip_hermes.contract.handler import Connector
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime import approvals, leases
from aip_hermes.runtime.ends import outcome_lost
from aip_hermes.runtime.expiry import catch_up
from aip_hermes.runtime.failures import Interrupted
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.submission import Resumption, Submission

__all__ = ["Released", "Unfinished", "recover"]

log = structlog.get_logger(__name__)

Released = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An approved action that has not passed its intent, and its approval."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """What goes on after the start. interrupted: as their handlers know it; no request of theirs may be repeated."""

    released: list[Released] = field(default_factory=list)
    interrupted: list[Submission] = field(default_factory=list)


async def recover(footing: Footing, *, connectors: Sequence[Connector]) -> Unfinished:
    """Bring every unfinished action to a definite state; return those that go on, each of which is running."""
    observing = {
        str(offer.capability_id)
        for connector in connectors
        for offer in connector.offers()
        if offer.handler.operation.recovery == "observe"
    }

    def once(connection: Connection) -> Unfinished:
        now = footing.now_ms()
        unfinished = Unfinished()
        for action in leases.take_over(connection, footing, alone=footing.alone):
            approval = _released_by(connection, action)
            interrupted = _interrupted(connection, action, observing)
            if _waits_again(connection, action, now=now):
                continue
            if approval is not None:
                connection.execute(
                    QUERIES["give_lock_back"], {"tenant": action["tenant"], "action_id": action["action_id"]}
                )
                unfinished.released.append((action, approval))
            elif interrupted is not None:
                unfinished.interrupted.append(interrupted)
            else:
                _end(connection, action, _verdict(action, connectors), now=now)
        return unfinished

    unfinished = await footing.database.write(once)
    await catch_up(footing)
    return unfinished


def _interrupted(connection: Connection, action: Mapping[str, Any], observing: Set[str]) -> Submission | None:
    """Return what may be looked at instead of ending uncertain. It keeps its session meanwhile."""
    if action["intent_at"] is None or action["capability_id"] not in observing or action["parked"] is None:
        return None
    resumed: Resumption | None = None
    if action["approval_id"] is not None:
        row = approvals.fetch(connection, tenant=action["tenant"], approval_id=action["approval_id"])
        resumed = Resumption(approval_id=action["approval_id"], snapshot=from_json(row["snapshot"]) if row else None)
    try:
        submission = Submission.unparked(
            from_json(action["parked"]), tenant=action["tenant"], attempt=action["attempt"], resumed=resumed
        )
    except (ValueError, TypeError, KeyError):
        log.warning("action.parked_unreadable", action_id=action["action_id"])
        return None
    return submission.with_changes(interrupted=True, lease=action["lease_number"])


def _waits_again(connection: Connection, action: Mapping[str, Any], *, now: int) -> bool:
    """Whether it came from the queue and was not sent; it goes back to its place."""
    if action["queued_at"] is None or action["intent_at"] is not None:
        return False
    address = {"tenant": action["tenant"], "action_id": action["action_id"]}
    connection.execute(QUERIES["give_lock_back"], address)
    return bool(connection.execute(QUERIES["put_back"], {**address, "now": now}))


def _released_by(connection: Connection, action: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if action["intent_at"] is not None or action["approval_id"] is None:
        return None
    row = approvals.fetch(connection, tenant=action["tenant"], approval_id=action["approval_id"])
    return row if row is not None and row["status"] == "approved" else None


def _verdict(action: Mapping[str, Any], connectors: Sequence[Connector]) -> ActionFailed:
    if action["intent_at"] is None or action["read_only"]:
        return Interrupted("the server stopped before anything was sent; the same submission may be sent again")
    own = [connector for connector in connectors if connector.connector_id == action["connector_id"]]
    return outcome_lost(own[0] if own else None, action_id=action["action_id"], capability_id=action["capability_id"])


def _end(connection: Connection, action: Mapping[str, Any], failure: ActionFailed, *, now: int) -> None:
    log.warning(
        "action.recovered",
        action_id=action["action_id"],
        capability_id=action["capability_id"],
        error_code=failure.code,
        uncertain=failure.uncertain,
    )
    approved = action["approval_id"] is not None
    settle(
        connection,
        tenant=action["tenant"],
        action_id=action["action_id"],
        attempt=action["attempt"],
        ending=Ending(
            outcome=failure,
            approval_id=action["approval_id"],
            approval_status="approved" if approved else None,
        ),
        now=now,
    )
