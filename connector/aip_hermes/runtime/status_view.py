"""Where an action stands, as its status says it: the state that is shown, its tries in the queue, who works on it.

| the row | state | queued_state |
|---|---|---|
| waits for a decision | pending_approval | requires_human |
| ended with a question that another action answers | pending_approval | requires_human |
| waits for the worker, for its first or another try | queued | queued |
| failed after it waited for the worker | dead_lettered | failed |
| its approval expired | failed | expired |
| everything else | as stored | as stored, where it ever waited |

The result of a dead letter stays readable. Source: runtime behaviour §3, §11; AIP HTTP surface §5.2; design D8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from aip_hermes import wire
from aip_hermes.runtime.answers import answer
from aip_hermes.runtime.store import from_json

__all__ = ["shown_state", "status_of", "unknown_status"]

_LINKS: Final = ("cancel", "chunks", "events", "result")

_Row = Mapping[str, Any]


def status_of(row: _Row, *, include_result: bool) -> wire.ActionStatus:
    """Return the status of an action's row."""
    stored = from_json(row["result"])
    settled = row["settled_at"] is not None
    never_began = row["state"] == "pending_approval" or (row["state"] == "queued" and row["tries"] == 0)
    members: dict[str, Any] = {
        "action_id": row["action_id"],
        "capability_id": row["capability_id"],
        "session_id": row["session_id"],
        "correlation_id": row["correlation_id"],
        "state": "pending_approval" if _asks(stored) else shown_state(row),
        "queued_state": _queued_state(row, stored),
        "result_status": stored["status"] if settled else None,
        "approval_id": row["approval_id"],
        "started_at": None if never_began else wire.rfc3339(row["claimed_at"]),
        "updated_at": wire.rfc3339(row["updated_at"]),
        "completed_at": wire.rfc3339(row["settled_at"]) if settled else None,
        "retry": _retry(row, stored),
        "lease": _lease(row),
        "result": answer(row["action_id"], stored).wire() if settled and include_result else None,
        "links": _links(row["action_id"]),
    }
    return wire.ActionStatus.model_validate({name: value for name, value in members.items() if value is not None})


def unknown_status(action_id: str, *, now: int) -> wire.ActionStatus:
    """Return the status of an action that nobody knows."""
    return wire.ActionStatus(
        action_id=action_id, state="unknown", updated_at=wire.rfc3339(now), links=_links(action_id)
    )


def shown_state(row: _Row) -> str:
    """Return the state that a status says."""
    return "dead_lettered" if row["dead_letter_reason"] is not None else str(row["state"])


def _queued_state(row: _Row, stored: Mapping[str, Any] | None) -> str | None:
    """The queue's view exists for actions that waited: for a decision, or for the worker."""
    if row["approval_id"] is None and row["queued_at"] is None:
        return None
    if row["state"] == "pending_approval" or _asks(stored):
        return "requires_human"
    expired = stored is not None and stored.get("error", {}).get("code") == "policy.approval_expired"
    return "expired" if expired else str(row["state"])


def _asks(stored: Mapping[str, Any] | None) -> bool:
    """Whether the result says that the provider waits for a person."""
    return stored is not None and stored.get("status") == "requires_human"


def _retry(row: _Row, stored: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the tries of an action that waited for the worker and failed at least once."""
    if row["last_error"] is None and row["dead_letter_reason"] is None:
        return None
    last = from_json(row["last_error"]) or (stored or {}).get("error")
    retry: dict[str, Any] = {
        "attempts": row["tries"],
        "max_attempts": row["max_tries"] or 1,
        "last_attempted_at": wire.rfc3339(row["claimed_at"]) if row["tries"] else None,
        "next_attempt_at": wire.rfc3339(row["due_at"]) if row["state"] == "queued" else None,
        "last_error": last,
        "dead_letter_reason": row["dead_letter_reason"],
    }
    return {name: value for name, value in retry.items() if value is not None}


def _lease(row: _Row) -> dict[str, Any] | None:
    """Return who works on it."""
    if row["lease_owner"] is None or row["state"] != "running":
        return None
    return {
        "owner": row["lease_owner"],
        "number": row["lease_number"],
        "expires_at": wire.rfc3339(row["lease_expires_at"]),
    }


def _links(action_id: str) -> dict[str, str]:
    base = f"/aip/v1/actions/{quote(action_id, safe='')}"
    return {"self": base, **{name: f"{base}/{name}" for name in _LINKS}}
