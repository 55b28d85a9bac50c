"""What is read before sending and what it decides: whether a turn goes there, and whether a target is the approved one.

Source: design D14, D25.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aip_hermes.contract.handler import Description, JsonObject
from aip_hermes.contract.operation import Operation
from aip_hermes.contract.rows import Target
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.failures import SessionClosed, SessionSuperseded, TargetChanged
from aip_hermes.hermes.session_evidence import continuation
from aip_hermes.hermes.session_rows import Rows, SessionRow
from aip_hermes.hermes.wanted import sha256_text
from aip_hermes.hermes.wording import shown

__all__ = ["description_of", "refuse_changed_target", "refuse_moved_turn", "snapshot_of"]


def snapshot_of(found: Mapping[str, Any], *, target: Target, ids: Mapping[str, str]) -> JsonObject:
    """Return what is kept of a target: its ids, the kept members as they are, the hashed ones as SHA-256.

    A member that the endpoint leaves out is null, and so is the hash of one that is null.
    """
    kept = {name: found.get(name) for name in target.kept}
    hashed = {_hashed(name): _sha256(found.get(name)) for name in target.hashed}
    return {**ids, **kept, **hashed}


def description_of(
    snapshot: JsonObject, *, target: Target, ids: Mapping[str, str], operation: Operation, endpoint: Endpoint
) -> Description:
    """Return what an approval of `operation` on a target is about."""
    where = ", ".join(f"{name.removesuffix('_id')} {shown(value)}" for name, value in ids.items())
    facts = ", ".join(_fact(name, snapshot[name]) for name in target.kept if snapshot[name] is not None)
    return Description(
        snapshot=snapshot,
        summary=f"{operation.title} of {where} at Hermes endpoint {endpoint.id}: {facts or 'nothing more is known'}",
    )


def refuse_changed_target(
    snapshot: Mapping[str, Any],
    described: Mapping[str, Any],
    *,
    target: Target,
    ids: Mapping[str, str],
    operation: Operation,
    endpoint: Endpoint,
) -> None:
    """Raise TargetChanged when a compared member differs from the snapshot that was approved.

    Others may have changed meanwhile; it is still what the reviewer saw.
    """
    names = [_hashed(name) if name in target.hashed else name for name in target.compared]
    found = {name: snapshot.get(name) for name in names}
    approved = {name: described.get(name) for name in names}
    if found != approved:
        where = ", ".join(f"{name.removesuffix('_id')} {shown(value)}" for name, value in ids.items())
        raise TargetChanged(
            f"{operation.name} was not sent: {where} of Hermes endpoint {endpoint.id} changed since approval was asked."
            " Read it and ask again under a new action.",
            endpoint_id=endpoint.id,
            session_id=ids.get("session_id"),
            details={**ids, "approved": approved, "found": found, "sent": False},
        )


async def refuse_moved_turn(rows: Rows, row: SessionRow, *, operation: Operation, endpoint: Endpoint) -> None:
    """Raise SessionSuperseded for a compressed row, and SessionClosed for a closed one where the endpoint says so."""
    where = f"{operation.name} was not sent: session {shown(row.id)} of Hermes endpoint {endpoint.id}"
    if row.compressed:
        current = await continuation(rows, requested=row.id)
        step = (
            f"Send the turn to {shown(current)} under a new action."
            if current is not None
            else "Its continuation is not proven; read its messages and the row they come from before choosing one."
        )
        raise SessionSuperseded(
            f"{where} ended by compression. {step}",
            endpoint_id=endpoint.id,
            session_id=row.id,
            details={"current_session_id": current, "end_reason": row.end_reason, "sent": False},
        )
    if row.ended and endpoint.on_closed == "refuse":
        raise SessionClosed(
            f"{where} is closed. Fork it or create another; no route opens it again.",
            endpoint_id=endpoint.id,
            session_id=row.id,
            details={"end_reason": row.end_reason, "sent": False},
        )


def _hashed(name: str) -> str:
    return f"{name}_sha256"


def _sha256(value: object) -> str | None:
    if value is None:
        return None
    return sha256_text(value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def _fact(name: str, value: object) -> str:
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"not {words}"
    if isinstance(value, int | float) and name.endswith("_at"):
        return f"{words} {_moment(value)}"
    if isinstance(value, int | float):
        return f"{words} {value}"
    return f"{words} {shown(value if isinstance(value, str) else json.dumps(value))}"


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return "at an impossible time"
