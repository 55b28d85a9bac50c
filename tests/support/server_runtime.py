"""A runtime that does nothing: it notes what the HTTP edge asked and answers what a test told it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from aip_hermes import wire
from aip_hermes.ids import ActionId, ApprovalId, MessageId, PrincipalId, ReceiptId, TenantId
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.failures import (
    ActionNotFound,
    ApprovalNotFound,
    CapabilityUnknown,
    MessageReplayed,
    ReceiptNotFound,
)
from aip_hermes.runtime.records import ActionsAsked, AuditAsked

__all__ = ["ScriptedRuntime"]

NOW = "2030-01-01T00:00:00Z"


class ScriptedRuntime:
    """Holds one action and one approval of a tenant. asked: every call in order. failure: raised instead of answers."""

    def __init__(self, *, tenant: str = "tenant-a") -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.finished = asyncio.Event()
        self.ready = True
        self.stored = True
        self.tenant = tenant
        self._claimed: set[str] = set()

    async def claim_message(self, message_id: MessageId, sent_at_ms: int, caller: Caller) -> None:
        self.note("claim", message_id=message_id, sent_at_ms=sent_at_ms)
        if message_id in self._claimed:
            raise MessageReplayed("message id was used before")
        self._claimed.add(message_id)

    async def submit(self, action: wire.Action, caller: Caller, context: MessageContext) -> wire.ActionResult:
        if context.arrival is not None:
            await self.claim_message(context.arrival.message_id, context.arrival.sent_at_ms, caller)
        self.note("submit", action=action, caller=caller, context=replace(context, arrival=None))
        # As the real one does: the work has a task of its own.
        return await asyncio.shield(asyncio.ensure_future(self._run(action)))

    async def _run(self, action: wire.Action) -> wire.ActionResult:
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        self.finished.set()
        return wire.ActionResult(action_id=action.id, status="completed", output={"echo": action.input})

    @property
    def reconciliations(self) -> ScriptedReconciliations:
        return ScriptedReconciliations(self)

    @property
    def records(self) -> ScriptedRecords:
        return ScriptedRecords(self)

    async def status(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        include_result: bool = False,
        include_receipts: bool = False,
        include_chunks: bool = False,
    ) -> wire.ActionStatus:
        self.note("status", action_id=action_id, include_result=include_result)
        known = caller.tenant_id == self.tenant
        return wire.ActionStatus(action_id=action_id, state="completed" if known else "unknown", updated_at=NOW)

    async def result(self, action_id: ActionId, caller: Caller, *, include_receipt: bool = False) -> wire.ActionResult:
        self.note("result", action_id=action_id)
        if caller.tenant_id != self.tenant:
            raise ActionNotFound(f"no action {action_id}")
        return wire.ActionResult(action_id=action_id, status="completed", output={})

    async def events(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        include_chunks: bool = False,
        max_bytes: int = 4_194_304,
    ) -> wire.ActionEvents:
        self.note("events", action_id=action_id, cursor=cursor, limit=limit, kinds=kinds, include_chunks=include_chunks)
        if caller.tenant_id != self.tenant:
            raise ActionNotFound(f"no action {action_id}")
        return wire.ActionEvents(action_id=action_id, events=[], cursor="aev_cursor_0_none", terminal=True)

    @asynccontextmanager
    async def watching_log(self, caller: Caller) -> AsyncIterator[asyncio.Event]:
        yield asyncio.Event()

    @asynccontextmanager
    async def watching(self, action_id: ActionId, caller: Caller) -> AsyncIterator[asyncio.Event]:
        yield asyncio.Event()

    async def cancel(self, action_id: ActionId, caller: Caller, *, reason: str | None = None) -> wire.ActionResult:
        self.note("cancel", action_id=action_id, reason=reason)
        if caller.tenant_id != self.tenant:
            raise CapabilityUnknown(f"no action {action_id}")
        return wire.ActionResult(action_id=action_id, status="cancelled", output={"cancelled": True})

    async def decide(self, decision: wire.ApprovalDecision, caller: Caller) -> wire.EventStream:
        self.note("decide", decision=decision)
        return wire.EventStream(events=[])

    async def approvals(
        self,
        caller: Caller,
        *,
        status: str | None = None,
        approver: PrincipalId | None = None,
        requester: PrincipalId | None = None,
        tenant_id: TenantId | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        include_action_status: bool = False,
        include_receipts: bool = False,
    ) -> wire.ApprovalList:
        self.note(
            "approvals",
            status=status,
            approver=approver,
            requester=requester,
            tenant_id=tenant_id,
            cursor=cursor,
            limit=limit,
            include_action_status=include_action_status,
        )
        return wire.ApprovalList(approvals=[self._view()] if caller.tenant_id == self.tenant else [])

    async def approval(
        self,
        approval_id: ApprovalId,
        caller: Caller,
        *,
        include_action_status: bool = False,
        include_evidence_payload: bool = False,
        include_receipts: bool = False,
    ) -> wire.ApprovalRecordView:
        self.note("approval", approval_id=approval_id, include_evidence_payload=include_evidence_payload)
        if caller.tenant_id != self.tenant:
            raise ApprovalNotFound(f"no approval {approval_id}")
        return self._view()

    async def approval_context(self, approval_id: ApprovalId, caller: Caller) -> Mapping[str, Any]:
        self.note("approval_context", approval_id=approval_id)
        if caller.tenant_id != self.tenant:
            raise ApprovalNotFound(f"no approval {approval_id}")
        return {"approval_id": approval_id, "touches": None, "not_available": "a script"}

    async def health(self) -> Mapping[str, Any]:
        self.note("health")
        endpoints = {"primary": {"ready": self.ready, "detail": "reachable"}}
        return {"ready": self.ready and self.stored, "store": {"ready": self.stored}, "endpoints": endpoints}

    def note(self, name: str, **fields: Any) -> None:
        """Record what was asked; raise what the test wants raised."""
        self.asked.append((name, fields))
        if self.failure is not None and name != "claim":
            raise self.failure

    def _view(self) -> wire.ApprovalRecordView:
        requester = wire.Principal(id="agent:a:requester", kind="agent")
        return wire.ApprovalRecordView.model_validate(
            {
                "request": {
                    "id": "appr_1",
                    "action_id": "act_1",
                    "capability_id": "cap:hermes_agent:primary:session_delete",
                    "requester": requester,
                    "subject": requester,
                    "approver_selector": {"type": "tenant_policy"},
                    "reason": "a deletion",
                },
                "status": "pending",
                "created_at": NOW,
                "updated_at": NOW,
            }
        )


class ScriptedReconciliations:
    """Verdicts of a `ScriptedRuntime`: one that proves nothing."""

    def __init__(self, runtime: ScriptedRuntime) -> None:
        self._runtime = runtime

    async def reconcile(self, action_id: ActionId, caller: Caller) -> Mapping[str, Any]:
        self._runtime.note("reconcile", action_id=action_id)
        if caller.tenant_id != self._runtime.tenant:
            raise ActionNotFound(f"no action {action_id}")
        return {"action_id": action_id, "verdict": "indeterminate", "reason": "scripted"}

    async def latest(self, action_id: ActionId, caller: Caller) -> Mapping[str, Any]:
        self._runtime.note("reconciliation", action_id=action_id)
        return {"action_id": action_id, "verdict": "indeterminate", "reason": "scripted"}


class ScriptedRecords:
    """The records of a `ScriptedRuntime`: none, but for one chain of its tenant."""

    def __init__(self, runtime: ScriptedRuntime) -> None:
        self._runtime = runtime

    async def actions(self, caller: Caller, asked: ActionsAsked) -> wire.ActionList:
        self._runtime.note("actions", asked=asked)
        return wire.ActionList(actions=[], total_size=0)

    async def events(
        self,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        tenant_id: TenantId | None = None,
        max_bytes: int = 4_194_304,
    ) -> wire.EventStream:
        self._runtime.note("log", cursor=cursor, limit=limit, kinds=kinds)
        return wire.EventStream(events=[], next_cursor="evt_cursor_0")

    async def receipts(
        self, caller: Caller, *, chain_id: str | None = None, receipt_id: ReceiptId | None = None
    ) -> wire.ReceiptChain:
        self._runtime.note("receipts", chain_id=chain_id, receipt_id=receipt_id)
        if caller.tenant_id != self._runtime.tenant:
            raise ReceiptNotFound("no such chain")
        return wire.ReceiptChain(chain_id=chain_id or "approval:appr_1", receipts=[])

    async def audit(self, caller: Caller, asked: AuditAsked) -> wire.AuditQueryResult:
        self._runtime.note("audit", asked=asked)
        return wire.AuditQueryResult(events=[])
