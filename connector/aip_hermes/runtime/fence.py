"""Action IDs and idempotency keys: who may start, who is answered from the store, who has to wait.

Uniqueness is a constraint of the store: a claim inserts, and only what the insert runs into is looked at. Each function
here is called inside one transaction. Source: design D2–D7; runtime behaviour §6, §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.ids import IdempotencyKey, IdentityError
from aip_hermes.runtime import digests
from aip_hermes.runtime.answers import answer, replay
from aip_hermes.runtime.failures import (
    ActionIdConflict,
    KeyConflict,
    KeyInProgress,
    KeyInputDiffers,
    KeyRequired,
    KeyScopeMissing,
    MemberRefused,
)
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.submission import Fence, Submission

__all__ = ["Bound", "Claimed", "Running", "Verdict", "claim", "fence_of", "in_progress", "look", "settle_key"]

_Row = Mapping[str, Any]
_UNDER_WAY = ("queued", "running")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """The caller owns the action and its key. attempt: counts from 1. lease: the number of its lease. ended: the
    columns of a row that was stored with its end."""

    attempt: int
    lease: int
    ended: _Row | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The store answers. key: the fence's row when the key decided, None when the Action ID did. refused: why the
    contract does not let the key answer."""

    action: _Row
    key: _Row | None
    input_differs: bool = False
    refused: KeyConflict | KeyInputDiffers | None = None

    def result(self, stored: Mapping[str, Any] | None = None) -> wire.ActionResult:
        """Return the answer; `stored` stands in for a result that was handed over in memory.

        Raises: KeyConflict, KeyInputDiffers.
        """
        if self.refused is not None:
            raise self.refused
        kept = stored if stored is not None else from_json(self.action["result"])
        if self.key is None:
            return answer(self.action["action_id"], kept)
        return replay(
            self.action["action_id"],
            kept,
            first_seen_at=self.key["first_seen_at"],
            expires_at=self.key["expires_at"],
            input_differs=self.input_differs,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """Somebody works on it. `bound` answers as soon as there is a result."""

    bound: Bound
    reserved_until: int

    @property
    def owner(self) -> str:
        owner: str = self.bound.action["action_id"]
        return owner


Verdict = Claimed | Bound | Running


def fence_of(submission: Submission) -> Fence | None:
    """Return the submission's fence, None for an untracked one.

    Raises: KeyRequired, KeyScopeMissing, MemberRefused (design D5).
    """
    contract = submission.contract.idempotency
    raw = submission.action.idempotency_key
    if raw is None or not raw.strip():
        if contract.requirement == "required":
            raise KeyRequired("this capability needs an idempotency key; a blank one counts as missing")
        return None
    try:
        key = IdempotencyKey(raw)
    except IdentityError as exc:
        raise MemberRefused(str(exc), details={"member": "idempotency_key"}) from exc
    partition = {
        "action": submission.action.id,
        "capability": submission.action.capability_id,
        "principal": submission.principal.id,
        "tenant": submission.tenant,
    }.get(contract.key_scope)
    if not partition:
        scope = contract.key_scope.replace("_", " ")
        raise KeyScopeMissing(f"the key's scope is a verified {scope}, which this call does not have")
    return Fence(scope=contract.key_scope, partition=partition, key=key, ttl_ms=contract.ttl_ms)


def look(connection: Connection, submission: Submission, *, now: int) -> Bound | Running | None:
    """Say what the store knows of this Action ID and, where a fence stands already, of its key. Changes nothing.

    Raises: ActionIdConflict, KeyConflict, MessageReplayed.
    """
    if submission.message is not None:
        submission.message.look(connection)
    row = _fetch_action(connection, submission.tenant, submission.action.id)
    verdict = _judge_action(row, submission)
    if verdict is not None or submission.fence is None:
        return verdict
    key = _fetch_key(connection, submission, submission.fence)
    if key is None or _expired(key, now):
        return None
    return _judge_key(connection, key, submission)


def claim(
    connection: Connection,
    submission: Submission,
    *,
    now: int,
    intent_at: int | None,
    facts: str | None,
    lease: Mapping[str, Any],
    end: Mapping[str, Any] | None = None,
) -> Verdict:
    """Take Action ID and key together, or say who has them.

    lease: `leases.fresh`. end: `settlement.columns_of`, for what is stored in one row with its end if the Action ID is
    new.

    Raises: ActionIdConflict, KeyConflict, MessageReplayed.
    """
    if submission.message is not None:
        submission.message.store(connection)
    input_hash = digests.fence_input_hash(submission.action)
    params = submission.claim_params(now=now, intent_at=intent_at, facts=facts, input_hash=input_hash)
    ended = None if end is None else {**params, **end, "attempt": 1, "queued_at": None}
    if ended is not None and submission.fence is None and connection.execute(QUERIES["claim_ended"], ended):
        return Claimed(attempt=1, lease=1, ended=ended)
    row = _fetch_action(connection, submission.tenant, submission.action.id)
    verdict = _judge_action(row, submission)
    if verdict is not None:
        return verdict
    if submission.fence is not None:
        key = _reserve(connection, submission, submission.fence, input_hash=input_hash, now=now)
        if key is not None:
            return _judge_key(connection, key, submission)
    if row is not None:
        ended = None
    query = QUERIES["claim_ended" if ended else "claim_action" if row is None else "claim_next_attempt"]
    (claimed,) = connection.execute(query, ended or {**params, **lease})
    return Claimed(attempt=claimed["attempt"], lease=claimed["lease_number"], ended=ended)


def settle_key(connection: Connection, row: _Row, *, frees: bool) -> None:
    """Let the fence of an action's row answer with its result, or let it go (design D2)."""
    if row["key_text"] is None:
        return
    names = ("tenant", "key_scope", "key_partition", "key_text", "action_id")
    connection.execute(QUERIES["free_key" if frees else "settle_key"], {name: row[name] for name in names})


def in_progress(running: Running, submission: Submission, *, now: int) -> KeyInProgress:
    """Return the error for who waited long enough."""
    details: dict[str, Any] = {
        "owner_action_id": running.owner,
        "reservation_expires_at": wire.rfc3339(running.reserved_until),
    }
    if running.bound.key is not None and submission.fence is not None:
        details["key"] = str(submission.fence.key)
    return KeyInProgress(
        f"action {running.owner} is still running; query it before sending again",
        details=details,
        retry_after_ms=max(running.reserved_until - now, 1000),
    )


def _fetch_action(connection: Connection, tenant: str, action_id: str) -> _Row | None:
    rows = connection.execute(QUERIES["fetch_action"], {"tenant": tenant, "action_id": action_id})
    return rows[0] if rows else None


def _fetch_key(connection: Connection, submission: Submission, fence: Fence) -> _Row | None:
    rows = connection.execute(QUERIES["fetch_key"], {"tenant": submission.tenant, **fence.params()})
    return rows[0] if rows else None


def _judge_action(row: _Row | None, submission: Submission) -> Bound | Running | None:
    """None: the Action ID is new, or its stored failure does not bind (design D3)."""
    if row is None:
        return None
    principal = from_json(row["principal"])
    same = row["content_hash"] == digests.content_hash(submission.action)
    if not same or (principal["id"], principal["kind"]) != (submission.principal.id, submission.principal.kind):
        raise ActionIdConflict(
            f"{submission.action.id} is bound to another request; choose a new Action ID",
            details={
                "action_id": submission.action.id,
                "existing_capability_id": row["capability_id"],
                "attempted_capability_id": submission.action.capability_id,
                "existing_principal_id": row["principal_id"],
                "attempted_principal_id": submission.principal.id,
            },
        )
    bound = Bound(action=row, key=None)
    if row["state"] in _UNDER_WAY:
        return Running(bound=bound, reserved_until=row["reserved_until"])
    return None if row["frees_key"] else bound


def _judge_key(connection: Connection, key: _Row, submission: Submission) -> Bound | Running:
    mine = (key["principal_id"], key["principal_kind"]) == (submission.principal.id, submission.principal.kind)
    if not (mine or submission.reads_others):
        raise KeyConflict(
            "this key is in use by another principal; choose a new key", details=_collision(key, submission)
        )
    row = _fetch_action(connection, submission.tenant, key["action_id"])
    assert row is not None  # noqa: S101 - a key and its action are written in one transaction
    differs = key["input_hash"] != digests.fence_input_hash(submission.action)
    bound = Bound(action=row, key=key, input_differs=differs, refused=_refused(key, submission, differs=differs))
    # The action's state decides, not the key's flag: an approved action runs although its pending answer was given.
    return Running(bound=bound, reserved_until=row["reserved_until"]) if row["state"] in _UNDER_WAY else bound


def _refused(key: _Row, submission: Submission, *, differs: bool) -> KeyConflict | KeyInputDiffers | None:
    """What the contract says to a key that was used before. Source: runtime behaviour §6.3."""
    behaviour = submission.contract.idempotency.collision_behavior
    if behaviour == "reject_conflict":
        message = "this key was used before, and the capability accepts each key once; choose a new key"
        return KeyConflict(message, details=_collision(key, submission))
    if behaviour == "revalidate_input_hash" and differs:
        message = (
            "this key was used before with other input; choose a new key, or send the input of the original action"
        )
        return KeyInputDiffers(message, details=_collision(key, submission))
    return None


def _collision(key: _Row, submission: Submission) -> dict[str, Any]:
    return {
        "key": key["key_text"],
        "original_action_id": key["action_id"],
        "current_action_id": submission.action.id,
    }


def _reserve(connection: Connection, submission: Submission, fence: Fence, *, input_hash: str, now: int) -> _Row | None:
    """Take the fence; return the row that stands in the way, or None."""
    params = {"tenant": submission.tenant, **fence.params()}
    taken = connection.execute(
        QUERIES["reserve_key"],
        {
            **params,
            "action_id": submission.action.id,
            "principal_id": submission.principal.id,
            "principal_kind": submission.principal.kind,
            "input_hash": input_hash,
            "now": now,
            "expires_at": None if fence.ttl_ms is None else now + fence.ttl_ms,
        },
    )
    return None if taken else _fetch_key(connection, submission, fence)


def _expired(key: _Row, now: int) -> bool:
    return bool(key["settled"]) and key["expires_at"] is not None and key["expires_at"] <= now
