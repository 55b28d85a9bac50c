"""What a commit told, passed on to who counts and who notifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aip_hermes.database.connection import Note
from aip_hermes.telemetry import Meter

__all__ = ["APPROVAL_WAITS", "CANCEL_ASKED", "CHANGED", "ENDED", "RECONCILED", "ApprovalWaits", "Notices"]

CHANGED: Final = "action.changed"
"""tenant, action_id. Something of the action was stored that somebody may wait for."""
CANCEL_ASKED: Final = "action.cancel_asked"
"""tenant, action_id, reason (a text, cut, or None). Whoever runs the action is asked to stop it."""
ENDED: Final = "action.ended"
"""tenant, capability_id, status, uncertain."""
APPROVAL_WAITS: Final = "approval.waits"
"""tenant, approval_id, capability_id, endpoint_id, requester_id, expires_at (Unix milliseconds or None)."""
RECONCILED: Final = "action.reconciled"
"""tenant, capability_id, outcome."""

ApprovalWaits = Callable[[Mapping[str, Any]], None]


class Notices:
    """Given to the store, which calls it after each commit. approval_waits: told of each approval that was asked."""

    def __init__(self, meter: Meter, approval_waits: ApprovalWaits | None) -> None:
        self._meter = meter
        self._approval_waits = approval_waits

    def __call__(self, note: Note) -> None:
        name, facts = note
        if name == ENDED:
            self._meter.ended(
                tenant=facts["tenant"],
                operation=facts["capability_id"].rpartition(":")[2],
                status=facts["status"],
                uncertain=facts["uncertain"],
            )
        elif name == RECONCILED:
            self._meter.reconciled(
                tenant=facts["tenant"],
                operation=facts["capability_id"].rpartition(":")[2],
                outcome=facts["outcome"],
            )
        elif name == APPROVAL_WAITS and self._approval_waits is not None:
            self._approval_waits(facts)
