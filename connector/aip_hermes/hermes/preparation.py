"""What a row read before sending decides: whether a turn goes there, and whether a target is still the approved one.

Source: design D14, D25.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aip_hermes.contract.handler import Description
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.failures import SessionClosed, SessionSuperseded, TargetChanged
from aip_hermes.hermes.session_evidence import continuation
from aip_hermes.hermes.session_rows import Rows, SessionRow
from aip_hermes.hermes.wording import shown

__all__ = ["description_of", "refuse_changed_target", "refuse_moved_turn"]


def description_of(row: SessionRow, *, operation: Operation, endpoint: Endpoint) -> Description:
    """Return what an approval of `operation` on `row` is about."""
    count = "an unknown number of messages" if row.message_count is None else f"{row.message_count} messages"
    started = "" if row.started_at is None else f", started {_moment(row.started_at)}"
    state = "ended" if row.ended else "open"
    return Description(
        snapshot={
            "id": row.id,
            "started_at": row.started_at,
            "message_count": row.message_count,
            "title_sha256": row.title_sha256,
            "ended": row.ended,
        },
        summary=f"{operation.title} of {shown(row.id)} at Hermes endpoint {endpoint.id}: {count}{started}, {state}",
    )


def refuse_changed_target(
    row: SessionRow, described: Mapping[str, Any], *, operation: Operation, endpoint: Endpoint
) -> None:
    """Raise TargetChanged when start time or message count differ from the snapshot that was approved.

    A title or a close reason may have changed meanwhile; it is still the row that the reviewer saw.
    """
    found = {"started_at": row.started_at, "message_count": row.message_count}
    approved = {name: described.get(name) for name in found}
    if found != approved:
        raise TargetChanged(
            f"{operation.name} was not sent: session {shown(row.id)} of Hermes endpoint {endpoint.id} changed since"
            " approval was asked. Read it and ask again under a new action.",
            endpoint_id=endpoint.id,
            session_id=row.id,
            details={"approved": approved, "found": found, "sent": False},
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


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return "at an impossible time"
