"""What a start does with actions that the process before left unfinished (design D4).

| found | becomes |
|---|---|
| claimed, no intent, no decision | failed, certain, retryable: nothing was sent |
| claimed, no intent, released by an approval | run, exactly once |
| taken from the queue, no intent | waits again, at its place |
| intent recorded | failed, uncertain: it may have been sent; its session stays closed for the hold time |
| parked, time up | expired |

The owner lock of the data directory guarantees that nobody else is working on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from aip_hermes.contract.handler import Connector
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.ports import NewId
from aip_hermes.runtime import approvals
from aip_hermes.runtime.failures import Interrupted, OutcomeLost
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import QUERIES

__all__ = ["Released", "recover"]

log = structlog.get_logger(__name__)

Released = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An approved action that has not passed its intent, and its approval."""


async def recover(footing: Footing, *, connectors: Sequence[Connector]) -> Sequence[Released]:
    """Bring every unfinished action to a definite state; return those that an approval has released."""

    def once(connection: Connection) -> list[Released]:
        now, new_id = footing.now_ms(), footing.new_id
        released: list[Released] = []
        for action in connection.execute(QUERIES["fetch_unfinished"]):
            approval = _released_by(connection, action)
            if _waits_again(connection, action, now=now):
                continue
            if approval is not None:
                connection.execute(
                    QUERIES["give_lock_back"], {"tenant": action["tenant"], "action_id": action["action_id"]}
                )
                released.append((action, approval))
            else:
                _end(connection, action, _verdict(action, connectors), now=now, new_id=new_id)
        approvals.expire_all(connection, now=now, new_id=new_id)
        return released

    return await footing.database.write(once)


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
    message = (
        "the server stopped after recording that it was about to send; whether the request took effect is unknown: "
        "read the target before sending again"
    )
    details = {"action_id": action["action_id"], "capability_id": action["capability_id"]}
    for connector in connectors:
        if connector.connector_id == action["connector_id"]:
            return connector.failure("outcome_unknown", message, details=details, uncertain=True)
    return OutcomeLost(message, details=details, uncertain=True)


def _end(connection: Connection, action: Mapping[str, Any], failure: ActionFailed, *, now: int, new_id: NewId) -> None:
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
        new_id=new_id,
    )
