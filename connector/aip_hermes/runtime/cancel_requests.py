"""A request to cancel an action, from its caller to its answer: the action's result, whatever it became."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.contract.handler import Connector
from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.ids import ActionId
from aip_hermes.runtime import approvals
from aip_hermes.runtime.answers import answer
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.cancellation import Cancelled, RunningAction
from aip_hermes.runtime.failures import CancelUnsupported, CapabilityUnknown, HandlerBroken, NotAuthorized
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.notices import CANCEL_ASKED
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["CancelRequests"]

LOOK_S: Final = 0.5
"""How long an attempt that is claimed and not known here is waited for, before looking where it stands."""

_REASON_CHARS: Final = 1000
"""How much of a reason another worker is told: a message between them is small."""


class CancelRequests:
    """Cancels what may be cancelled, in the name of who may."""

    def __init__(self, footing: Footing, *, connectors: Mapping[str, Connector]) -> None:
        """connectors: capability id → the connector that offers it."""
        self._footing = footing
        self._connectors = connectors

    async def cancel(self, action_id: ActionId, caller: Caller, *, reason: str | None) -> wire.ActionResult:
        """Return the action's result: cancelled, or the terminal one that came first.

        Raises: NotAuthorized; CapabilityUnknown for an action that this tenant does not have; CancelUnsupported for one
        that was sent and can't be stopped; StoreUnavailable when its end could not be stored in time.
        """
        if not caller.may("action:write"):
            raise NotAuthorized("this needs the scope action:write", details={"object": "action", "operation": "Write"})
        address, began = {"tenant": caller.tenant_id or "", "action_id": action_id}, self._footing.clock.monotonic()
        asked_others = False
        while True:
            end = self._footing.finished.register(**address)
            try:
                row = await self._row(address, caller)
                if row["settled_at"] is not None:
                    return answer(action_id, from_json(row["result"]))
                if row["state"] == "pending_approval":
                    parked = await self._end_parked(row, caller, reason)
                    if parked is None:
                        continue
                    self._footing.ended(**address, stored=parked)
                    return answer(action_id, parked)
                if row["state"] == "queued":
                    waiting = await self._end_queued(row, reason)
                    if waiting is None:
                        continue
                    self._footing.ended(**address, stored=waiting)
                    return answer(action_id, waiting)
                running = self._footing.running.find(**address)
                too_late = running is not None and not running.ask(reason) and running.phase == "sending"
                if too_late or (running is None and self._sent_elsewhere(row)):
                    raise CancelUnsupported(
                        f"action {action_id} was sent and its capability can't stop what runs; it goes on: query it",
                        details={"action_id": action_id, "capability_id": row["capability_id"]},
                    )
                if running is None and not asked_others and self._is_elsewhere(row):
                    await self._ask_others(address, reason)
                    asked_others = True
                left_s = self._longest_s(running) - (self._footing.clock.monotonic() - began)
                stored = await self._end_of(end, reason, address, left_s=left_s, returns=row["queued_at"] is not None)
                if stored is not None and stored["status"] != "pending_approval":
                    return answer(action_id, stored)
            finally:
                self._footing.finished.forget(end, **address)

    async def _end_of(
        self,
        end: asyncio.Future[Mapping[str, Any]],
        reason: str | None,
        address: Mapping[str, str],
        *,
        left_s: float,
        returns: bool,
    ) -> Mapping[str, Any] | None:
        """Wait for what it becomes; None to look again: an attempt that is not known may be about to begin or to wait.

        returns: it came from the queue, and may go back there.
        Raises: StoreUnavailable after `left_s`.
        """
        known = not returns and self._footing.running.find(**address) is not None
        with self._footing.running.asking_early(reason, **address):
            try:
                return await within(left_s if known else min(left_s, LOOK_S), end, clock=self._footing.clock)
            except Overrun:
                if not known and left_s > LOOK_S:
                    return None
                raise StoreUnavailable(
                    "the action's end could not be stored yet; query the action before sending again"
                ) from None

    def _is_elsewhere(self, row: Mapping[str, Any]) -> bool:
        return row["lease_owner"] not in (None, self._footing.worker)

    def _sent_elsewhere(self, row: Mapping[str, Any]) -> bool:
        """Whether another worker of a shared store has sent it and can't stop it."""
        if row["intent_at"] is None or not self._is_elsewhere(row):
            return False
        connector = self._connectors.get(row["capability_id"])
        offers = () if connector is None else connector.offers()
        own = [offer for offer in offers if str(offer.capability_id) == row["capability_id"]]
        return not any(offer.handler.operation.cancel for offer in own)

    async def _ask_others(self, address: Mapping[str, str], reason: str | None) -> None:
        """Ask whichever worker of a shared store runs the action to stop it."""
        cut = reason if reason is None else reason[:_REASON_CHARS]
        await self._footing.database.write(lambda connection: connection.note(CANCEL_ASKED, **address, reason=cut))

    def _longest_s(self, running: RunningAction | None) -> float:
        limits = self._footing.limits
        cancel_ms = limits.cancel_ms if running is None else running.cancel_ms
        return (cancel_ms + limits.confirm_ms + limits.overrun_ms + limits.settle_wait_ms) / 1000

    async def _row(self, address: Mapping[str, str], caller: Caller) -> Mapping[str, Any]:
        rows = await self._footing.database.read(
            lambda connection: connection.execute(QUERIES["fetch_action"], address)
        )
        if not rows:
            raise CapabilityUnknown(
                f"there is no action {address['action_id']}", details={"action_id": address["action_id"]}
            )
        owner = from_json(rows[0]["principal"])
        mine = (owner["id"], owner["kind"]) == (caller.principal.id, caller.principal.kind)
        if not mine and caller.scopes.isdisjoint(("action:write:any", "*")):
            raise NotAuthorized(
                "the action belongs to another principal", details={"object": "action", "operation": "Write"}
            )
        return rows[0]

    async def _end_queued(self, row: Mapping[str, Any], reason: str | None) -> dict[str, Any] | None:
        """End an action that waits for the worker; None when the worker came first."""
        cancelled = self._unsent(row, reason)

        def once(connection: Connection) -> dict[str, Any] | None:
            now = approvals.action_of(connection, row["tenant"], row["action_id"])
            if now["state"] != "queued":
                return None
            return settle(
                connection,
                tenant=now["tenant"],
                action_id=now["action_id"],
                attempt=now["attempt"],
                ending=Ending(outcome=cancelled),
                now=self._footing.now_ms(),
            )

        return await self._footing.database.write(once)

    def _unsent(self, row: Mapping[str, Any], reason: str | None) -> Cancelled:
        message = "the action was cancelled before anything was sent"
        details = {"action_id": row["action_id"], "sent": False}
        if row["approval_id"] is not None:
            details["approval_id"] = row["approval_id"]
        connector = self._connectors.get(row["capability_id"])
        if connector is None:
            return Cancelled(failure=HandlerBroken(message, details=details), reason=reason)
        failure = connector.failure("cancelled", message, details=details, uncertain=False)
        return Cancelled(failure=failure, reason=reason)

    async def _end_parked(self, row: Mapping[str, Any], caller: Caller, reason: str | None) -> dict[str, Any] | None:
        """End a parked action and its approval together; None when a decision came first."""
        cancelled = self._unsent(row, reason)

        def once(connection: Connection) -> dict[str, Any] | None:
            return approvals.cancel_parked(
                connection,
                row,
                cancelled,
                by=caller.named,
                now=self._footing.now_ms(),
            )

        return await self._footing.database.write(once)
