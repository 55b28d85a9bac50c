"""The last transaction of an attempt: result, event, audit, key and session lock together.

Source: design §3 (settle), D1, D2, D13; runtime behaviour §15.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.contract.handler import Answer
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import EventId
from aip_hermes.ports import NewId
from aip_hermes.runtime.answers import stored_answer, stored_cancelled, stored_failure
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.events import Origin, append_audit, append_event, result_event_id
from aip_hermes.runtime.fence import settle_key
from aip_hermes.runtime.serial import release_lock
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = ["Ending", "LostClaim", "origin_of", "settle"]


_REASON: Final = 512
"""Characters of the sentence that is kept with a dead letter."""


class LostClaim(Exception):
    """The attempt is no longer ours to settle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What an attempt came to. approval_status: set where the end follows a decision. starts_run: its success is the
    start of a run that goes on at the provider (design D13)."""

    outcome: Answer | ActionFailed | Cancelled
    approval_id: str | None = None
    approval_status: str | None = None
    starts_run: bool = False

    @property
    def stored(self) -> dict[str, Any]:
        """What is kept of it."""
        match self.outcome:
            case Answer():
                return stored_answer(self.outcome)
            case Cancelled():
                return stored_cancelled(self.outcome)
            case failure:
                return stored_failure(failure)

    @property
    def reason(self) -> str | None:
        """Why it failed, for the list of dead letters."""
        return self.outcome.message[:_REASON] if isinstance(self.outcome, ActionFailed) else None

    @property
    def frees_key(self) -> bool:
        return isinstance(self.outcome, ActionFailed) and self.outcome.frees_key

    @property
    def goes_on(self) -> bool:
        """Whether something may still be going on at the provider in the session that the action named."""
        return self.uncertain or (self.starts_run and isinstance(self.outcome, Answer))

    @property
    def uncertain(self) -> bool:
        if isinstance(self.outcome, Cancelled):
            return self.outcome.failure.uncertain
        return isinstance(self.outcome, ActionFailed) and self.outcome.uncertain


def origin_of(row: Mapping[str, Any]) -> Origin:
    """Return what the events of an action's row share."""
    return Origin(
        tenant=row["tenant"],
        action_id=row["action_id"],
        session_id=row["session_id"],
        correlation_id=row["correlation_id"],
    )


def settle(
    connection: Connection,
    *,
    tenant: str,
    action_id: str,
    attempt: int,
    ending: Ending,
    now: int,
    new_id: NewId,
    lease: int | None = None,
) -> dict[str, Any]:
    """Write an attempt's end and return what is kept of its result.

    lease: the number of the lease under which a worker took it from the queue; None for who needs none.

    Raises: LostClaim; then nothing is written.
    """
    stored = ending.stored
    settled = connection.execute(
        QUERIES["settle_action"],
        {
            "tenant": tenant,
            "action_id": action_id,
            "attempt": attempt,
            "state": stored["status"],
            "now": now,
            "result": to_json(stored),
            "frees_key": int(ending.frees_key),
            "uncertain": int(ending.uncertain),
            "reason": ending.reason,
            "lease": lease,
        },
    )
    if not settled:
        raise LostClaim(f"attempt {attempt} of {action_id} was settled by somebody else")
    row = connection.execute(QUERIES["fetch_action"], {"tenant": tenant, "action_id": action_id})[0]
    settle_key(connection, row, frees=ending.frees_key)
    release_lock(connection, tenant=tenant, action_id=action_id, goes_on=ending.goes_on, now=now)
    _tell(connection, row, stored, ending, now=now, new_id=new_id)
    if row["queued_at"] is not None and not isinstance(ending.outcome, Cancelled):
        _tell_queued(connection, row, stored, by_worker=lease is not None, now=now, new_id=new_id)
    return stored


def _tell(
    connection: Connection,
    row: Mapping[str, Any],
    stored: Mapping[str, Any],
    ending: Ending,
    *,
    now: int,
    new_id: NewId,
) -> None:
    origin, actor = origin_of(row), from_json(row["principal"])
    data: dict[str, Any] = {"status": stored["status"], "attempt": row["attempt"]}
    if "error" in stored:
        data["error_code"] = stored["error"]["code"]
        data["uncertain_outcome"] = ending.uncertain
    append_event(
        connection, origin, event_id=EventId(new_id("evt_")), kind="aip.action.result", now=now, data=data, actor=actor
    )
    if isinstance(ending.outcome, Cancelled):
        append_event(
            connection, origin, event_id=EventId(new_id("evt_")), kind="aip.action.cancelled", now=now, data=data
        )
    if ending.approval_id is not None and ending.approval_status is not None:
        _tell_consequence(
            connection, origin, ending.approval_id, ending.approval_status, stored, now=now, new_id=new_id
        )
    suffix = "result" if row["attempt"] == 1 else f"result:{row['attempt']}"
    append_audit(
        connection,
        origin,
        audit_id=f"audit:action:{row['tenant']}:{row['action_id']}:{suffix}",
        actor_id=row["principal_id"],
        now=now,
        record={
            "action_id": row["action_id"],
            "status": stored["status"],
            "session_id": row["session_id"],
            "correlation_id": row["correlation_id"],
            "error_code": data.get("error_code"),
        },
    )


def _tell_queued(
    connection: Connection,
    row: Mapping[str, Any],
    stored: Mapping[str, Any],
    *,
    by_worker: bool,
    now: int,
    new_id: NewId,
) -> None:
    """Tell the end of what waited in the queue: its tries, and whether it is a dead letter."""
    data: dict[str, Any] = {"status": stored["status"], "attempt": row["attempt"], "attempts": row["tries"]}
    if row["dead_letter_reason"] is not None:
        data |= {"dead_lettered": True, "error_code": stored["error"]["code"]}
    append_event(
        connection,
        origin_of(row),
        event_id=EventId(new_id("evt_")),
        kind="aip.action.worker_result" if by_worker else "aip.action.async_result",
        now=now,
        data=data,
    )


def _tell_consequence(
    connection: Connection,
    origin: Origin,
    approval_id: str,
    status: str,
    stored: Mapping[str, Any],
    *,
    now: int,
    new_id: NewId,
) -> None:
    data = {"approval_id": approval_id, "action_id": origin.action_id, "status": stored["status"]}
    if status == "approved":
        append_event(
            connection, origin, event_id=new_id("evt_"), kind="aip.approval.resumed_action", now=now, data=data
        )
    append_event(
        connection,
        origin,
        event_id=result_event_id(approval_id, status),
        kind="aip.action.resumed_result" if status == "approved" else "aip.action.approval_terminal",
        now=now,
        data=data if status == "approved" else {**data, "approval_status": status},
    )
