"""Events and audit records: ids, status and codes, never input, output or text (design D19).

Appended inside the transaction of the change they tell. Source: runtime behaviour §15.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime.notices import CHANGED
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = [
    "Origin",
    "action_event_id",
    "append_audit",
    "append_event",
    "decision_event_id",
    "fetch_event",
    "result_event_id",
    "vote_event_id",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What the events of one action share. tenant: empty string for none."""

    tenant: str
    action_id: str
    session_id: str | None
    correlation_id: str | None


def action_event_id(origin: Origin, kind: str, number: int) -> str:
    """Return the id of an event of an action: the same for the same happening, whenever it is told.

    number: tells apart what may happen more than once: the attempt, the try.
    """
    material = "\0".join(("aip.action.event.v1", origin.tenant, origin.action_id, kind, str(number)))
    return "evt_action_" + hashlib.sha256(material.encode()).hexdigest()


def decision_event_id(approval_id: str, status: str) -> str:
    """Return the id of the event that tells a decision."""
    return f"evt_{approval_id}_{status}_decision"


def vote_event_id(approval_id: str, decision_id: str) -> str:
    """Return the id of the event that tells a decision which did not suffice. decision_id: any text."""
    return f"evt_{approval_id}_vote_{wire.sha256_hex(decision_id)[:32]}"


def result_event_id(approval_id: str, status: str) -> str:
    """Return the id of the event that tells a decision's consequence."""
    return f"evt_{approval_id}_{status}_result"


def append_event(
    connection: Connection,
    origin: Origin,
    *,
    event_id: str,
    kind: str,
    now: int,
    data: Mapping[str, Any],
    actor: Mapping[str, Any] | None = None,
) -> None:
    """Append one event. A known id is left as it is. actor: a Principal as JSON."""
    members = {
        "id": event_id,
        "kind": kind,
        "occurred_at": wire.rfc3339(now),
        "session_id": origin.session_id,
        "action_id": origin.action_id,
        "correlation_id": origin.correlation_id,
        "actor": actor,
        "data": dict(data),
    }
    connection.execute(
        QUERIES["append_event"],
        {
            "event_id": event_id,
            "tenant": origin.tenant,
            "action_id": origin.action_id,
            "kind": kind,
            "occurred_at": now,
            # Made here of what is already proven, in the published order; who reads it back has it checked.
            "event": to_json({name: value for name, value in members.items() if value is not None}),
        },
    )
    connection.note(CHANGED, tenant=origin.tenant, action_id=origin.action_id)


def fetch_event(connection: Connection, *, tenant: str, event_id: str) -> wire.Event | None:
    """Return one event, or None."""
    rows = connection.execute(QUERIES["fetch_event"], {"tenant": tenant, "event_id": event_id})
    return wire.Event.model_validate(from_json(rows[0]["event"])) if rows else None


def append_audit(
    connection: Connection, origin: Origin, *, audit_id: str, actor_id: str, now: int, record: Mapping[str, Any]
) -> None:
    """Append one audit record."""
    connection.execute(
        QUERIES["append_audit"],
        {
            "audit_id": audit_id,
            "tenant": origin.tenant,
            "action_id": origin.action_id,
            "session_id": origin.session_id,
            "actor_id": actor_id,
            "occurred_at": now,
            "record": to_json(dict(record)),
        },
    )
