"""Decisions and requests to cancel: kept before they are sent, so that whoever said them finds out what became of them.

A decision's id is its replay key at the server, and asking to cancel twice is safe; so the very same one may leave
again. What was decided is kept without its reason. Source: design §1, D8, D9, D19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aip_hermes import wire
from aip_hermes.client import results
from aip_hermes.client.aip_reads import AipReads
from aip_hermes.client.calling import Ledger, naming
from aip_hermes.client.connection import AipConnection
from aip_hermes.client.decisions import AlreadyDecided, Verb, decision_on
from aip_hermes.client.failures import ClientFailure, HttpFailed, PeerError
from aip_hermes.client.identities import CallIdentities, IdentityClash, IdentityStore, Instruction
from aip_hermes.client.listings import Decided
from aip_hermes.client.reply import JsonObject
from aip_hermes.client.safe_reads import SafeReads
from aip_hermes.ids import ActionId, ApprovalId
from aip_hermes.ports import Clock, Faults, NewId

__all__ = ["AipInstructions", "Found"]

_SAID: Final = frozenset({"decision", "decided_at", "policy_hash"})
"""What of a decision is kept as it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What became of a decision or a request to cancel.

    state: `taken`: the server has it, or the action has ended; `missed`: the approval was closed without it; `open`:
    the server does not show it, and it may still be on its way. result: of a cancel, how the action stands.
    """

    instruction: Instruction
    state: Literal["taken", "missed", "open"]
    result: results.CallResult | None = field(default=None, repr=False)

    @property
    def next_step(self) -> str:
        """One sentence for a person: what is safe to do now."""
        if self.state == "open":
            return "resume it with its reason, which says the very same again, or leave it: nothing else was sent"
        return "nothing: it is done" if self.state == "taken" else "nothing: the approval was closed without it"


class AipInstructions(AipReads):
    """What a client says about approvals and actions besides calls."""

    def __init__(
        self,
        connection: AipConnection,
        *,
        store: IdentityStore | None,
        reads: SafeReads,
        read_timeout_s: float | None,
        clock: Clock,
        new_id: NewId,
        faults: Faults,
    ) -> None:
        super().__init__(connection, reads=reads, read_timeout_s=read_timeout_s)
        self.store = store
        self._ledger = Ledger(store)
        self._clock = clock
        self._new_id = new_id
        self._faults = faults

    @property
    def origin(self) -> str:
        """Scheme, host and port of the server: the `server` of its records."""
        return self.connection.origin

    async def decide(
        self, approval_id: ApprovalId, *, decision: Verb, reason: str, decision_id: str | None = None
    ) -> Decided:
        """Read a record and decide about exactly what was read; returns when the released action has ended.

        decision_id: makes a repeat the same decision; made here when absent, kept in the store before it is sent, and
        in `details` of every failure. Raises: AlreadyDecided besides the usual ones; IdentityStoreFailed and
        IdentityClash before anything is sent.
        """
        chosen = decision_id or self._new_id("decision_")
        try:
            return await self._decide(approval_id, decision=decision, reason=reason, decision_id=chosen)
        except ClientFailure as failure:
            failure.details |= {"approval_id": str(approval_id), "decision_id": chosen}
            if failure.uncertain:
                failure.next_step = f"read approval {approval_id}: it says whether {chosen} was taken"
            raise

    async def cancel(self, action_id: ActionId, *, reason: str | None = None) -> results.CallResult:
        """Ask to cancel and return the result: cancelled, or the one that came first. Asking again is safe.

        Raises: PeerError `action.cancel_unsupported` for what was sent and can't be stopped; IdentityStoreFailed before
        anything is sent.
        """
        record = await self._ledger.known(action_id)
        identities = record.identities if record is not None else CallIdentities(action_id=action_id)
        content = wire.sha256_hex({"cancel": str(action_id)})
        instruction = await self._begin(
            Instruction(
                server=self.origin,
                instruction_id=f"cancel:{action_id}",
                kind="cancel",
                about=str(action_id),
                content_hash=content,
            )
        )
        try:
            with naming(identities):
                raw = await self.connection.cancel(action_id, reason)
            result = results.call_result(raw["action_result"], identities=identities)
        except ClientFailure as failure:
            await self._ledger.unheard(instruction, failure)
            raise
        await self._faults.reach("client_instruction_answered")
        await self._ledger.heard(instruction, outcome=result.outcome)
        return result if record is None else await self._ledger.answered(record, result)

    async def open_instructions(self) -> Sequence[Instruction]:
        """Return the decisions and cancels at this server whose end the store does not know, oldest first."""
        return [] if self.store is None else await self.store.open_instructions(server=self.origin)

    async def resume_instruction(self, instruction: Instruction, *, reason: str | None = None) -> Found:
        """Find out what became of a decision or a cancel, and keep that. Reads only, unless `reason` is given.

        reason: the very reason of it. Where the server does not show the decision, or the action goes on, the very same
        is then said again, which can't take effect twice. Raises: IdentityClash for another reason of a decision, and
        where the approval is not the one that was decided about any more.
        """
        if instruction.server != self.origin:
            raise ValueError(f"{instruction.instruction_id} was said at {instruction.server}, not at {self.origin}")
        if instruction.kind == "cancel":
            return await self._resume_cancel(instruction, reason=reason)
        return await self._resume_decision(instruction, reason=reason)

    async def _decide(self, approval_id: ApprovalId, *, decision: Verb, reason: str, decision_id: str) -> Decided:
        record = (await self._reads(lambda: self.connection.approval(approval_id)))["approval_record_view"]
        made = decision_on(
            record,
            approval_id=approval_id,
            decision=decision,
            reason=reason,
            approver=await self.connection.approver(),
            decision_id=decision_id,
            decided_at_ms=self._clock.now_ms(),
        )
        said = {name: value for name, value in made.items() if name in _SAID}
        instruction = await self._begin(
            Instruction(
                server=self.origin,
                instruction_id=decision_id,
                kind="decision",
                about=str(approval_id),
                content_hash=_decision_hash(approval_id, decision=decision, reason=reason),
                said=said,
            )
        )
        if instruction.said.get("policy_hash") != said.get("policy_hash"):
            raise IdentityClash(
                f"approval {approval_id} is not the one that {decision_id} was about any more; nothing was sent",
                details={"approval_id": str(approval_id), "decision_id": decision_id},
            )
        try:
            reply = await self.connection.send_decision({**made, **instruction.said})
        except ClientFailure as failure:
            await self._ledger.unheard(instruction, failure)
            raise
        await self._faults.reach("client_instruction_answered")
        await self._ledger.heard(instruction, outcome="taken")
        return Decided(approval_id=approval_id, decision_id=decision_id, decision=decision, raw=reply.body)

    async def _resume_decision(self, instruction: Instruction, *, reason: str | None) -> Found:
        approval_id = ApprovalId(instruction.about)
        record = (await self._reads(lambda: self.connection.approval(approval_id)))["approval_record_view"]
        state = await self._seen(record, instruction)
        if state == "open" and reason is not None:
            verb: Verb = instruction.said["decision"]
            try:
                await self.decide(approval_id, decision=verb, reason=reason, decision_id=instruction.instruction_id)
                state = "taken"
            except AlreadyDecided:
                record = (await self._reads(lambda: self.connection.approval(approval_id)))["approval_record_view"]
                state = await self._seen(record, instruction)
        if state != "open":
            await self._ledger.heard(instruction, outcome=state)
        return Found(instruction=await self._kept(instruction), state=state)

    async def _seen(self, record: JsonObject, instruction: Instruction) -> Literal["taken", "missed", "open"]:
        """Say whether the server shows a decision. One that it does not show may only come while it is pending."""
        latest = record.get("decision")
        known = [latest, *await self._decisions(ApprovalId(instruction.about))]
        if any(isinstance(each, dict) and each.get("decision_id") == instruction.instruction_id for each in known):
            return "taken"
        return "open" if record.get("status") == "pending" else "missed"

    async def _decisions(self, approval_id: ApprovalId) -> list[Any]:
        try:
            found = (await self._reads(lambda: self.connection.approval_context(approval_id)))["approval_context"]
        except (PeerError, HttpFailed) as exc:
            # A server without this route, or one that shows a caller the record alone.
            if exc.http_status not in (403, 404):
                raise
            return []
        decisions = found.get("decisions")
        return decisions if isinstance(decisions, list) else []

    async def _resume_cancel(self, instruction: Instruction, *, reason: str | None) -> Found:
        action_id = ActionId(instruction.about)
        progress = await self.status(action_id)
        if not progress.terminal:
            if reason is None:
                return Found(instruction=instruction, state="open")
            result = await self.cancel(action_id, reason=reason)
        else:
            with naming(CallIdentities(action_id=action_id)):
                raw = await self._reads(lambda: self.connection.result(action_id))
            result = results.call_result(raw["action_result"], identities=CallIdentities(action_id=action_id))
            await self._ledger.heard(instruction, outcome=result.outcome)
        return Found(instruction=await self._kept(instruction), state="taken", result=result)

    async def _begin(self, instruction: Instruction) -> Instruction:
        kept = await self._ledger.begin_instruction(instruction)
        await self._faults.reach("client_instruction_kept")
        return kept

    async def _kept(self, instruction: Instruction) -> Instruction:
        if self.store is None:
            return instruction
        found = await self.store.instruction(server=self.origin, instruction_id=instruction.instruction_id)
        return found or instruction


def _decision_hash(approval_id: ApprovalId, *, decision: Verb, reason: str) -> str:
    return wire.sha256_hex({"approval_id": str(approval_id), "decision": decision, "reason": reason})
