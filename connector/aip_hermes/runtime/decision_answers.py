"""What a decision is answered with: the events that it told, now and whenever the same decision is sent again.

Source: runtime behaviour §9.5; AIP HTTP surface §9.5, §9.6; design D9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes import wire
from aip_hermes.runtime.approval_records import action_of
from aip_hermes.runtime.events import decision_event_id, fetch_event, result_event_id, vote_event_id
from aip_hermes.runtime.failures import decision_refused
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import from_json
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["DecisionAnswers"]


class DecisionAnswers:
    """Reads events back from the store; changes nothing."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing

    async def ended(self, row: Mapping[str, Any], status: str) -> wire.EventStream:
        """Return the event of the decision that gave the approval `status`, and that of its consequence, once there."""
        ids = (decision_event_id(row["approval_id"], status), result_event_id(row["approval_id"], status))
        return await self._events(row, ids)

    async def voted(self, row: Mapping[str, Any], decision_id: str) -> wire.EventStream:
        """Return the event of a vote that did not suffice."""
        return await self._events(row, (vote_event_id(row["approval_id"], decision_id),))

    async def again(
        self, row: Mapping[str, Any], decision: wire.ApprovalDecision, recorded: Mapping[str, Any]
    ) -> wire.EventStream:
        """Answer a decision whose id is known: the identical one with what it told, any other with its refusal.

        recorded: the row of the decision of that id.
        Raises: NotAuthorized.
        """
        if _content(from_json(recorded["record"])) != _content(decision.wire()):
            pending = row["status"] == "pending"
            raise decision_refused(
                "policy.approval_decision_conflict" if pending else "policy.approval_not_pending",
                f"decision {decision.decision_id} was recorded with other content",
                details={"approval_status": row["status"]},
            )
        if not recorded["terminal"]:
            return await self.voted(row, recorded["decision_id"])
        await self._until_settled(row)
        return await self.ended(row, recorded["decision"])

    async def _until_settled(self, row: Mapping[str, Any]) -> None:
        """Wait, as the first sender of the decision does, for the action that it released."""
        address = {"tenant": row["tenant"], "action_id": row["action_id"]}
        end = self._footing.finished.register(**address)
        try:
            action = await self._footing.database.read(lambda c: action_of(c, row["tenant"], row["action_id"]))
            if action["state"] == "running":
                await within(self._footing.limits.key_wait_ms / 1000, end, clock=self._footing.clock)
        except Overrun:
            return
        finally:
            self._footing.finished.forget(end, **address)

    async def _events(self, row: Mapping[str, Any], ids: Sequence[str]) -> wire.EventStream:
        found = await self._footing.database.read(
            lambda c: [fetch_event(c, tenant=row["tenant"], event_id=event_id) for event_id in ids]
        )
        return wire.EventStream(events=[event for event in found if event is not None])


def _content(decision: Mapping[str, Any]) -> Any:
    """What makes two decisions the same: everything but what is recorded as it is known here."""
    kept = {name: value for name, value in decision.items() if name not in ("authority_path", "decided_at")}
    approver = kept.get("approver", {})
    kept["approver"] = (approver.get("id"), approver.get("kind"))
    return kept
