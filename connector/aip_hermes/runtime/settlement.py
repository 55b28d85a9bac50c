"""The last transaction of an attempt: result, event, audit, key and session lock together.

Source: design §3 (settle), D1, D2, D13; runtime behaviour §15.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.answers import stored_answer, stored_cancelled, stored_failure
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.erasure import Keeping, erase_about, mark
from aip_hermes.runtime.events import Origin, action_event_id, append_audit, append_event, result_event_id
from aip_hermes.runtime.fence import settle_key
from aip_hermes.runtime.notices import ENDED
from aip_hermes.runtime.receipts import approval_chain, witness
from aip_hermes.runtime.serial import GoesOn, end_work, release_lock
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = ["RUNTIME", "Ending", "LostClaim", "columns_of", "conclude", "origin_of", "settle"]


RUNTIME: Final = wire.Principal(id="system:aip-runtime", kind="system")
"""Who witnesses an end, and who decides that a time is up."""

_SETTLED_AS: Final = {"requires_human": "completed"}
"""States of results that have another name. What waits for a person has ended: another action answers it."""

_REASON: Final = 512
"""Characters of the sentence that is kept with a dead letter."""


class LostClaim(Exception):
    """The attempt is no longer ours to settle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What an attempt came to.

    approval_status: set where the end follows a decision. starts_run: its success is the start of a run that goes on at
    the provider (design D13). may_hold: whether it may hold its session. keeping: whose text it holds and ends; None
    where nobody can say.
    """

    outcome: Answer | ActionFailed | Cancelled
    approval_id: str | None = None
    approval_status: str | None = None
    starts_run: bool = False
    may_hold: bool = True
    keeping: Keeping | None = None

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
    def erases(self) -> frozenset[str]:
        """Whose text goes with it: of what a completed delete deleted (design D23)."""
        completed = isinstance(self.outcome, Answer) and not self.outcome.cancelled
        return self.keeping.traces.erases if completed and self.keeping is not None else frozenset()

    @property
    def frees_key(self) -> bool:
        return isinstance(self.outcome, ActionFailed) and self.outcome.frees_key

    @property
    def goes_on(self) -> GoesOn | None:
        """What may still be going on at the provider in the session that the action named."""
        if self.starts_run and self.ends is not None:
            return None
        if self.uncertain:
            return "uncertain_turn"
        return "run" if self.starts_run and isinstance(self.outcome, Answer) else None

    @property
    def begins(self) -> str | None:
        """The work at the provider that goes on after it, where that has a name."""
        return self.outcome.begins if isinstance(self.outcome, Answer) else None

    @property
    def ends(self) -> str | None:
        """The work at the provider that it shows to be over, whoever began it."""
        return None if isinstance(self.outcome, Cancelled) else self.outcome.ends

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
    lease: int | None = None,
    by_worker: bool = False,
) -> dict[str, Any]:
    """Write an attempt's end and return what is kept of its result.

    lease: the number of the lease under which it ran; None for who needs none. by_worker: it came from the queue.

    Raises: LostClaim; then nothing is written.
    """
    stored = ending.stored
    settled = connection.execute(
        QUERIES["settle_action"],
        {
            "tenant": tenant,
            "action_id": action_id,
            "attempt": attempt,
            "now": now,
            "lease": lease,
            "reason": ending.reason,
            **columns_of(ending, stored),
        },
    )
    if not settled:
        raise LostClaim(f"attempt {attempt} of {action_id} was settled by somebody else")
    conclude(connection, settled[0], stored, ending, now=now, by_worker=by_worker)
    return stored


def columns_of(ending: Ending, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of an end. stored: `ending.stored`."""
    return {
        "state": _SETTLED_AS.get(stored["status"], stored["status"]),
        "result": to_json(stored),
        "frees_key": int(ending.frees_key),
        "uncertain": int(ending.uncertain),
    }


def conclude(
    connection: Connection,
    row: Mapping[str, Any],
    stored: Mapping[str, Any],
    ending: Ending,
    *,
    now: int,
    by_worker: bool = False,
) -> None:
    """Do what goes with an end that is in its row: key, lock, text, event and audit record."""
    address = {"tenant": row["tenant"], "action_id": row["action_id"]}
    settle_key(connection, row, frees=ending.frees_key)
    if ending.may_hold:
        release_lock(connection, **address, goes_on=ending.goes_on, now=now, work=ending.begins)
    if ending.ends is not None:
        end_work(connection, ending.ends, now=now)
    mark(connection, stored, **address, keeping=ending.keeping)
    if ending.erases:
        erase_about(connection, ending.erases, now=now)
    _tell(connection, row, stored, ending, now=now)
    connection.note(
        ENDED,
        tenant=row["tenant"],
        capability_id=row["capability_id"],
        status=stored["status"],
        uncertain=ending.uncertain,
    )
    if row["queued_at"] is not None and not isinstance(ending.outcome, Cancelled):
        _tell_queued(connection, row, stored, by_worker=by_worker, now=now)


def _tell(
    connection: Connection,
    row: Mapping[str, Any],
    stored: Mapping[str, Any],
    ending: Ending,
    *,
    now: int,
) -> None:
    origin, actor = origin_of(row), from_json(row["principal"])
    data: dict[str, Any] = {"status": stored["status"], "attempt": row["attempt"]}
    if "error" in stored:
        data["error_code"] = stored["error"]["code"]
        data["uncertain_outcome"] = ending.uncertain
    attempt = row["attempt"]

    def append(kind: str, actor: Mapping[str, Any] | None = None) -> None:
        event_id = action_event_id(origin, kind, attempt)
        append_event(connection, origin, event_id=event_id, kind=kind, now=now, data=data, actor=actor)

    append("aip.action.result", actor)
    if isinstance(ending.outcome, Cancelled):
        append("aip.action.cancelled")
    if ending.approval_id is not None and ending.approval_status is not None:
        _tell_consequence(connection, origin, ending.approval_id, ending.approval_status, stored, now=now)
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
) -> None:
    """Tell the end of what waited in the queue: its tries, and whether it is a dead letter."""
    data: dict[str, Any] = {"status": stored["status"], "attempt": row["attempt"], "attempts": row["tries"]}
    if row["dead_letter_reason"] is not None:
        data |= {"dead_lettered": True, "error_code": stored["error"]["code"]}
    kind = "aip.action.worker_result" if by_worker else "aip.action.async_result"
    append_event(
        connection,
        origin_of(row),
        event_id=action_event_id(origin_of(row), kind, row["attempt"]),
        kind=kind,
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
) -> None:
    data = {"approval_id": approval_id, "action_id": origin.action_id, "status": stored["status"]}
    if status == "approved":
        append_event(
            connection,
            origin,
            event_id=f"evt_{approval_id}_approved_resumed",
            kind="aip.approval.resumed_action",
            now=now,
            data=data,
        )
    append_event(
        connection,
        origin,
        event_id=result_event_id(approval_id, status),
        kind="aip.action.resumed_result" if status == "approved" else "aip.action.approval_terminal",
        now=now,
        data=data if status == "approved" else {**data, "approval_status": status},
    )
    error = stored.get("error", {})
    witness(
        connection,
        tenant=origin.tenant,
        chain_id=approval_chain(approval_id),
        receipt_id=f"rcpt_{approval_id}_result",
        kind="result_returned",
        actor=RUNTIME,
        now=now,
        correlation_id=origin.correlation_id,
        data={
            "approval_id": approval_id,
            "action_id": origin.action_id,
            "status": stored["status"],
            "error_code": error.get("code"),
            "result_sha256": wire.sha256_hex(stored),
        },
    )
