"""The rows that wait for the worker: how an action gets in, is taken, and comes back for another try.

Each function is called inside one transaction and tells what it changes in the same one. Source: runtime behaviour §3,
§4, §11, §14, §15; design D4, D9, D13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.contract.handler import Answer
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime import leases
from aip_hermes.runtime.cancellation import Cancelled
from aip_hermes.runtime.events import action_event_id, append_event
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.notices import CHANGED
from aip_hermes.runtime.retry import RetryPolicy, delay_ms
from aip_hermes.runtime.serial import release_lock
from aip_hermes.runtime.settlement import LostClaim, origin_of
from aip_hermes.runtime.store import QUERIES, to_json
from aip_hermes.runtime.submission import Submission

__all__ = ["Batch", "enqueue", "take", "waits_again"]

RETRY_KIND: Final = "aip.action.retry_scheduled"
_LATE_AT_ONCE: Final = 64
_BUSY_AGAIN_MS: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What a worker took. due: rows to run, oldest first. late: rows to end. next_at: when to look again, None for
    never; Unix milliseconds."""

    due: list[dict[str, Any]]
    late: list[dict[str, Any]]
    next_at: int | None


def enqueue(connection: Connection, submission: Submission, footing: Footing) -> None:
    """Let an action wait that this transaction has claimed."""
    now = footing.now_ms()
    policy = RetryPolicy.of(submission.contract, tries=footing.limits.queue_tries)
    connection.execute(
        QUERIES["enqueue_action"],
        {
            "tenant": submission.tenant,
            "action_id": submission.action.id,
            "attempt": submission.attempt,
            "parked": to_json(submission.parked()),
            "late_at": now + footing.limits.queue_delay_ms,
            "max_tries": policy.max_tries,
            "now": now,
        },
    )
    connection.note(CHANGED, tenant=submission.tenant, action_id=submission.action.id)


def take(connection: Connection, footing: Footing, *, room: Callable[[str], int], set_back: bool) -> Batch:
    """Take what has waited too long, and of each tenant's due actions as many as it has room for.

    room: given a tenant. set_back: the clock may have been, since the last look.
    """
    now = footing.now_ms()
    if set_back:
        connection.execute(QUERIES["wait_from_now"], {"now": now})
    lease = {"now": now, **leases.fresh(footing, now=now)}
    late = connection.execute(QUERIES["take_late"], {**lease, "limit": _LATE_AT_ONCE})
    due: list[dict[str, Any]] = []
    awaited: list[int | None] = []
    for waiting in connection.execute(QUERIES["waiting_tenants"]):
        free = room(waiting["tenant"])
        found = _due(connection, lease, tenant=waiting["tenant"], limit=free)
        due += found
        if len(found) < free:
            awaited.append(connection.execute(QUERIES["next_due"], {"tenant": waiting["tenant"]})[0]["moment"])
    due.sort(key=lambda row: (row["due_at"], row["queued_at"], row["action_id"]))
    awaited.append(connection.execute(QUERIES["next_late"])[0]["moment"])
    next_at = min((moment for moment in awaited if moment is not None), default=None)
    return Batch(due=due, late=late, next_at=next_at)


def _due(connection: Connection, lease: Mapping[str, Any], *, tenant: str, limit: int) -> list[dict[str, Any]]:
    if limit <= 0:
        return []
    return connection.execute(QUERIES["take_due"], {**lease, "tenant": tenant, "limit": limit})


def waits_again(
    connection: Connection, submission: Submission, outcome: Answer | ActionFailed | Cancelled, footing: Footing
) -> bool:
    """Put a failed attempt back into the queue where another one follows; False where it has to settle.

    Raises: LostClaim; then nothing is written.
    """
    if not isinstance(outcome, ActionFailed) or outcome.uncertain or submission.published is None:
        return False
    now = footing.now_ms()
    if submission.resumed is not None:
        times = _while_approved(connection, submission, outcome, now=now)
    else:
        times = _next_try(submission, outcome, footing, now=now)
    if times is None:
        return False
    _go_back(connection, submission, outcome, due_at=times[0], late_at=times[1], now=now)
    return True


def _next_try(submission: Submission, failure: ActionFailed, footing: Footing, *, now: int) -> tuple[int, int] | None:
    """Return when a queued action is due again and when it is late then; None where no try follows."""
    taken = submission.taken
    if taken is None:
        return None
    policy = RetryPolicy.of(submission.contract, tries=taken.max_tries)
    if not policy.repeats(failure, tries=taken.tries, has_key=submission.fence is not None):
        return None
    due_at = now + delay_ms(failure, tries=taken.tries, jitter=footing.jitter)
    return due_at, due_at + footing.limits.queue_delay_ms


def _while_approved(
    connection: Connection, submission: Submission, failure: ActionFailed, *, now: int
) -> tuple[int, int] | None:
    """An approved action that met a busy session waits for it as long as its approval is in force (design D9)."""
    assert submission.resumed is not None  # noqa: S101 - asked by the caller
    assert submission.connector is not None  # noqa: S101 - a published capability has one
    busy = submission.connector.failure("session_busy", "", details={}, uncertain=False)
    if failure.code != busy.code:
        return None
    address = {"tenant": submission.tenant, "approval_id": submission.resumed.approval_id}
    (approval,) = connection.execute(QUERIES["fetch_approval"], address)
    due_at = now + max(failure.retry_after_ms or _BUSY_AGAIN_MS, 1)
    if approval["expires_at"] is None or due_at >= approval["expires_at"]:
        return None
    return due_at, approval["expires_at"]


def _go_back(
    connection: Connection,
    submission: Submission,
    failure: ActionFailed,
    *,
    due_at: int,
    late_at: int,
    now: int,
) -> None:
    address = {"tenant": submission.tenant, "action_id": submission.action.id}
    moved = connection.execute(
        QUERIES["wait_again"],
        {
            **address,
            "attempt": submission.attempt,
            "lease": submission.lease,
            "due_at": due_at,
            "late_at": late_at,
            "last_error": to_json(wire.protocol_error(failure).wire()),
            "now": now,
        },
    )
    if not moved:
        raise LostClaim(f"attempt {submission.attempt} of {submission.action.id} is no longer ours to repeat")
    release_lock(connection, tenant=submission.tenant, action_id=submission.action.id, now=now)
    (row,) = connection.execute(QUERIES["fetch_action"], address)
    append_event(
        connection,
        origin_of(row),
        event_id=action_event_id(origin_of(row), RETRY_KIND, submission.attempt),
        kind=RETRY_KIND,
        now=now,
        data=_scheduled(submission, failure, row, due_at=due_at),
        actor=submission.principal.wire(),
    )


def _scheduled(submission: Submission, failure: ActionFailed, row: Mapping[str, Any], *, due_at: int) -> dict[str, Any]:
    return {
        "attempt": submission.attempt,
        "attempts": row["tries"],
        "last_attempted_at": wire.rfc3339(row["claimed_at"]),
        "next_attempt_at": wire.rfc3339(due_at),
        "error_code": failure.code,
    }
