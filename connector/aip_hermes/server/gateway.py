"""What the routes need of the rest: the runtime and the catalogue once they are open, the token table, the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from starlette.requests import Request

from aip_hermes import wire
from aip_hermes.contract import Catalog, ServerCard
from aip_hermes.ids import ActionId, ApprovalId, MessageId, PrincipalId, ReceiptId, TenantId
from aip_hermes.ports import Clock, NewId
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES
from aip_hermes.runtime.failures import RuntimeStopping, TenantMismatch
from aip_hermes.runtime.records import ActionsAsked, AuditAsked
from aip_hermes.server.auth import TokenTable
from aip_hermes.server.reply import Replies
from aip_hermes.settings import Settings

__all__ = ["ActionRuntime", "Gateway", "ReconciliationReads", "RecordReads", "check_tenant", "noted"]


class RecordReads(Protocol):
    """What was recorded over all actions, as `runtime.records.Records` answers it."""

    async def actions(self, caller: Caller, asked: ActionsAsked) -> wire.ActionList: ...

    async def events(
        self,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        tenant_id: TenantId | None = None,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> wire.EventStream: ...

    async def receipts(
        self, caller: Caller, *, chain_id: str | None = None, receipt_id: ReceiptId | None = None
    ) -> wire.ReceiptChain: ...

    async def audit(self, caller: Caller, asked: AuditAsked) -> wire.AuditQueryResult: ...


class ReconciliationReads(Protocol):
    """What became of uncertain actions, as `runtime.reconciliation.Reconciliations` answers it."""

    async def reconcile(self, action_id: ActionId, caller: Caller) -> Mapping[str, Any]: ...

    async def latest(self, action_id: ActionId, caller: Caller) -> Mapping[str, Any]: ...


class ActionRuntime(Protocol):
    """The part of a runtime that travels over HTTP."""

    async def claim_message(self, message_id: MessageId, sent_at_ms: int, caller: Caller) -> None: ...

    async def submit(
        self, action: wire.Action, caller: Caller, context: MessageContext
    ) -> wire.ActionResult | wire.Ack: ...

    @property
    def records(self) -> RecordReads: ...

    @property
    def reconciliations(self) -> ReconciliationReads: ...

    async def status(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        include_result: bool = False,
        include_receipts: bool = False,
        include_chunks: bool = False,
    ) -> wire.ActionStatus: ...

    async def events(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        include_chunks: bool = False,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> wire.ActionEvents: ...

    def watching_log(self, caller: Caller) -> AbstractAsyncContextManager[asyncio.Event]: ...

    def watching(self, action_id: ActionId, caller: Caller) -> AbstractAsyncContextManager[asyncio.Event]: ...

    async def cancel(self, action_id: ActionId, caller: Caller, *, reason: str | None = None) -> wire.ActionResult: ...

    async def result(
        self, action_id: ActionId, caller: Caller, *, include_receipt: bool = False
    ) -> wire.ActionResult: ...

    async def decide(self, decision: wire.ApprovalDecision, caller: Caller) -> wire.EventStream: ...

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
    ) -> wire.ApprovalList: ...

    async def approval(
        self,
        approval_id: ApprovalId,
        caller: Caller,
        *,
        include_action_status: bool = False,
        include_evidence_payload: bool = False,
        include_receipts: bool = False,
    ) -> wire.ApprovalRecordView: ...

    async def approval_context(self, approval_id: ApprovalId, caller: Caller) -> Mapping[str, Any]: ...

    async def health(self) -> Mapping[str, Any]: ...


class Gateway:
    """One server's parts. Runtime and catalogue are there from `open` to `close`; outside routes refuse."""

    def __init__(self, *, settings: Settings, tokens: TokenTable, clock: Clock, new_id: NewId) -> None:
        self.service_id: Final = settings.server.service_id
        self.max_request_bytes: Final = settings.limits.max_request_bytes
        self.tokens: Final = tokens
        self.clock: Final = clock
        self.card: Final = ServerCard(principal_id=self.service_id, max_request_bytes=self.max_request_bytes)
        agent = wire.Principal(
            id=self.service_id, kind=wire.principal_kind(self.service_id), display_name=self.card.display_name
        )
        self.replies: Final = Replies(agent=agent, clock=clock, new_id=new_id)
        self.started: Final = clock.monotonic()
        self._open: tuple[ActionRuntime, Catalog] | None = None

    def open(self, runtime: ActionRuntime, catalog: Catalog) -> None:
        """Let requests in."""
        self._open = (runtime, catalog)

    def close(self) -> None:
        """Refuse requests from now on; those under way go on."""
        self._open = None

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def runtime(self) -> ActionRuntime:
        """Raises RuntimeStopping outside `open` and `close`."""
        return self._parts()[0]

    @property
    def catalog(self) -> Catalog:
        """Raises RuntimeStopping outside `open` and `close`."""
        return self._parts()[1]

    def authenticate(self, request: Request) -> Caller:
        """Return who sent `request`, and note it for the request log. Raises BearerRefused."""
        return self.identify(request)[0]

    def identify(self, request: Request) -> tuple[Caller, int | None]:
        """As `authenticate`, with the end of the token in Unix milliseconds."""
        headers = [value for name, value in request.headers.raw if name == b"authorization"]
        caller, expires_at_ms = self.tokens.authenticate(headers)
        noted(request)["principal"] = caller.principal.id
        return caller, expires_at_ms

    def manifest(self, tenant_id: TenantId | None, wanted: wire.ManifestFilter | None) -> wire.Manifest:
        """Return the server alone for no tenant, else also what the tenant may call (design D24)."""
        return self.catalog.manifest(tenant_id, server=self.card, wanted=wanted)

    def _parts(self) -> tuple[ActionRuntime, Catalog]:
        if self._open is None:
            raise RuntimeStopping("the server is starting or stopping; send it again later", retry_after_ms=1000)
        return self._open


def noted(request: Request) -> dict[str, Any]:
    """Return the fields that the request's log event gets besides its own."""
    fields: dict[str, Any] = request.scope.setdefault("aip_hermes.noted", {})
    return fields


def check_tenant(tenant_id: str | None, caller: Caller) -> None:
    """Accept the caller's own tenant, or none. Raises TenantMismatch."""
    if tenant_id is not None and tenant_id != caller.tenant_id:
        raise TenantMismatch("tenant_id names another tenant than the token's; leave it out or name your own")
