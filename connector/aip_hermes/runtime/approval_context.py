"""What a decision meets at this moment: the votes so far, the target as it was frozen, and what the operation would
touch besides, read live from the provider.

`{approval_id, action_id, capability_id, status, approvals, approvals_needed, decisions, target_snapshot, read_at,
touches, not_available}`: exactly one of the last two is null. Source: design D25.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from aip_hermes import wire
from aip_hermes.contract.handler import JsonObject
from aip_hermes.database import Connection
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.ids import ApprovalId
from aip_hermes.runtime import approvals
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.queries import Views
from aip_hermes.runtime.store import from_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.unreadable import readable
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["ApprovalContexts"]

log = structlog.get_logger(__name__)

READ_S: Final = 2.0


class _NotAvailable(Exception):
    """Why nothing can be read."""


class ApprovalContexts:
    """Answers from the store and, while a decision is open, from the provider."""

    def __init__(self, footing: Footing, *, views: Views, pipeline: Pipeline) -> None:
        self._footing = footing
        self._views = views
        self._pipeline = pipeline

    async def context(self, approval_id: ApprovalId, caller: Caller) -> Mapping[str, Any]:
        """Return the context, to whom may see the approval. Raises: NotAuthorized, ApprovalNotFound."""
        row = await self._views.seen(approval_id, caller)

        def look(connection: Connection) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
            action = approvals.action_of(connection, row["tenant"], row["action_id"])
            return action, list(approvals.decisions_of(connection, row["approval_id"]))

        action, decisions = await self._footing.database.read(look)
        touches: JsonObject | None = None
        problem: str | None = None
        try:
            touches = await self._touches(row, action)
        except _NotAvailable as exc:
            problem = str(exc)
        with readable(approval_id, advice="the operator can put a backup of the store back"):
            policy = from_json(row["request"]).get("policy_snapshot") or {}
        return {
            "approval_id": row["approval_id"],
            "action_id": row["action_id"],
            "capability_id": row["capability_id"],
            "status": row["status"],
            "approvals": approvals.admitted(decisions),
            "approvals_needed": policy.get("minimum_distinct_principals", 1),
            "decisions": [_shown(decision) for decision in decisions],
            "target_snapshot": from_json(row["snapshot"]),
            "read_at": wire.rfc3339(self._footing.now_ms()),
            "touches": touches,
            "not_available": problem,
        }

    async def _touches(self, row: Mapping[str, Any], action: Mapping[str, Any]) -> JsonObject:
        if row["status"] != "pending" or action["parked"] is None:
            raise _NotAvailable(f"the approval is {row['status']}; only what waits for a decision is looked at")
        try:
            frozen = Submission.unparked(
                from_json(action["parked"]), tenant=action["tenant"], attempt=action["attempt"]
            )
            submission = await self._pipeline.addressed(frozen)
            call = submission.call(deadline_ms=self._footing.now_ms() + round(READ_S * 1000))
            submission.handler.check(call)
            found = await within(READ_S, submission.handler.context(call), clock=self._footing.clock)
        except (ActionFailed, RequestRefused) as exc:
            raise _NotAvailable(f"{exc.code}: {exc}") from exc
        except Overrun:
            raise _NotAvailable(f"the endpoint did not answer within {READ_S:g} s") from None
        except Exception as exc:
            log.exception("approval.context_broken", approval_id=row["approval_id"], error_type=type(exc).__name__)
            raise _NotAvailable("the connector failed in a way it does not declare") from exc
        if found is None:
            raise _NotAvailable("this operation has nothing to say about what it touches besides its target")
        return found


def _shown(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decision as it was recorded, with whether it ended the approval."""
    return {**from_json(decision["record"]), "terminal": bool(decision["terminal"])}
