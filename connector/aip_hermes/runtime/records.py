"""What was recorded, over all actions of a tenant: lists of actions, the log of events, receipts, the audit log.

Without a scope over other principals' records a caller gets its own: the actions that it submitted, their events, the
receipts of their approvals, and audit records that name it. Another tenant's records can't be told from none.
Source: AIP HTTP surface §3.7, §5; runtime behaviour §15, §18; design D24.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.ids import (
    AipSessionId,
    ApprovalId,
    CapabilityId,
    EndpointId,
    PrincipalId,
    ReceiptId,
    TenantId,
)
from aip_hermes.runtime import approvals
from aip_hermes.runtime.access import need, offset_of, own_tenant, page_size, refused
from aip_hermes.runtime.audit_log import AuditAsked, audit_page
from aip_hermes.runtime.authority import Authorities
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES, Position, read_log
from aip_hermes.runtime.expiry import catch_up, overdue
from aip_hermes.runtime.failures import ReceiptNotFound
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.receipts import approval_chain, chain_of, fetch_chain
from aip_hermes.runtime.retention import AT_ONCE, erase_expired
from aip_hermes.runtime.status_view import status_of
from aip_hermes.runtime.store import QUERIES
from aip_hermes.runtime.visible_approvals import sees_approval

__all__ = ["ActionsAsked", "AuditAsked", "Records"]

EVER: Final = 2**62
"""Later than every time that is recorded, Unix milliseconds."""

_AT_ONCE: Final = 16
"""Rows of one look at the list: a result may have megabytes."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionsAsked:
    """Which actions are wanted; None for whatever. since, until: of the last change, Unix milliseconds, inclusive.

    uncertain: True for those whose effect may have happened without proof. unresolved: with it, those alone of which no
    reconciliation has found out. session_id: of AIP, not of Hermes.
    """

    state: str | None = None
    uncertain: bool | None = None
    unresolved: bool = False
    capability_id: CapabilityId | None = None
    endpoint_id: EndpointId | None = None
    session_id: AipSessionId | None = None
    principal_id: PrincipalId | None = None
    approval_id: ApprovalId | None = None
    tenant_id: TenantId | None = None
    since: int = 0
    until: int = EVER
    cursor: str | None = None
    limit: int | None = None
    include_results: bool = False
    include_receipts: bool = False

    def params(self, *, tenant: str, principal: str | None) -> dict[str, Any]:
        """Return the columns that `list_actions` and `count_actions` compare."""
        dead = {"dead_lettered": 1, "failed": 0}.get(self.state or "")
        return {
            "tenant": tenant,
            "principal": principal,
            "state": "failed" if self.state == "dead_lettered" else self.state,
            "dead": dead,
            "uncertain": None if self.uncertain is None else int(self.uncertain),
            "unresolved": 1 if self.unresolved else None,
            "capability": self.capability_id,
            "endpoint": None if self.endpoint_id is None else _of_endpoint(self.endpoint_id),
            "session": self.session_id,
            "approval": self.approval_id,
            "since": self.since,
            "until": self.until,
        }


class Records:
    """Answers from what was recorded. Changes nothing but what time has decided."""

    def __init__(self, footing: Footing, *, authorities: Authorities) -> None:
        self._footing = footing
        self._authorities = authorities

    async def actions(self, caller: Caller, asked: ActionsAsked) -> wire.ActionList:
        """Return a page of actions, the one that changed first before the others.

        Raises: NotAuthorized, TenantMismatch, InvalidCursor.
        """
        need(caller, "action:read")
        if asked.include_receipts:
            need(caller, "receipt:read")
        tenant, others = own_tenant(caller, asked.tenant_id), caller.may_read_others("action")
        me = caller.principal.id
        if not others and asked.principal_id not in (None, me):
            raise refused("action", "Read", "actions of other principals need the scope action:read:any")
        start, size = offset_of(asked.cursor), page_size(asked.limit)
        params = asked.params(tenant=tenant, principal=asked.principal_id if others else me)
        await self._catch_up()
        shown, total = await self._footing.database.read(
            lambda connection: _page_of(connection, asked, params, start=start, size=size)
        )
        rest = start + len(shown)
        return wire.ActionList(
            actions=shown, total_size=total, cursor=f"offset:{rest}" if shown and rest < total else None
        )

    async def events(
        self,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        tenant_id: TenantId | None = None,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> wire.EventStream:
        """Return the next page of the tenant's log: all of it with `events:read:any`, else of the caller's actions.

        It never ends and always has a cursor; a page may be empty and still move it.
        Raises: NotAuthorized, TenantMismatch, InvalidCursor, CursorExpired.
        """
        need(caller, "events:read")
        tenant, position = own_tenant(caller, tenant_id), Position.parse(cursor)
        owner = None if caller.may_read_others("events") else caller.principal.id
        return await self._footing.database.read(
            lambda connection: read_log(
                connection,
                tenant=tenant,
                owner=owner,
                position=position,
                limit=limit,
                kinds=kinds,
                max_bytes=max_bytes,
            )
        )

    async def receipts(
        self, caller: Caller, *, chain_id: str | None = None, receipt_id: ReceiptId | None = None
    ) -> wire.ReceiptChain:
        """Return a whole chain, by its id or by the id of one of its receipts. Exactly one of the two.

        A chain is readable for whoever may see its approval. Raises: NotAuthorized, ReceiptNotFound.
        """
        need(caller, "receipt:read")
        tenant = caller.tenant_id or ""
        await self._catch_up()

        def look(connection: Connection) -> tuple[wire.ReceiptChain | None, _Row | None]:
            wanted = chain_id if receipt_id is None else chain_of(connection, tenant=tenant, receipt_id=receipt_id)
            if wanted is None:
                return None, None
            chain = fetch_chain(connection, tenant=tenant, chain_id=wanted)
            approval_id = wanted.removeprefix("approval:")
            return chain, approvals.fetch(connection, tenant=tenant, approval_id=approval_id)

        chain, row = await self._footing.database.read(look)
        if chain is None:
            asked = {"chain_id": chain_id} if receipt_id is None else {"receipt_id": receipt_id}
            raise ReceiptNotFound("there is no such chain of receipts", details=asked)
        if not (caller.may_read_others("receipt") or (row is not None and self._sees(caller, row))):
            raise refused("receipt", "Read", "these receipts are about an approval that is not yours to see")
        return chain

    async def audit(self, caller: Caller, asked: AuditAsked) -> wire.AuditQueryResult:
        """Return a page of the audit log, oldest first. Raises: AuditRefused, TenantMismatch, InvalidCursor."""
        tenant = own_tenant(caller, asked.tenant_id)
        return await self._footing.database.read(
            lambda connection: audit_page(connection, caller, asked, tenant=tenant)
        )

    def _sees(self, caller: Caller, row: _Row) -> bool:
        return sees_approval(caller, row, authorities=self._authorities, now=self._footing.now_ms())

    async def _catch_up(self) -> None:
        """Do first what time has decided: approvals that expired, text that was kept long enough."""
        now, keep_ms = self._footing.now_ms(), self._footing.limits.transcripts_ms

        def look(connection: Connection) -> tuple[bool, bool]:
            late = overdue(connection, self._footing, now=now)
            due = connection.execute(QUERIES["fetch_expired_text"], {"before": now - keep_ms, "limit": 1})
            return bool(late), bool(due)

        late, due = await self._footing.database.read(look)
        if late:
            await catch_up(self._footing)
        erased = AT_ONCE if due else 0
        while erased == AT_ONCE:
            erased = await self._footing.database.write(lambda c: erase_expired(c, now=now, keep_ms=keep_ms))


def _page_of(
    connection: Connection, asked: ActionsAsked, params: Mapping[str, Any], *, start: int, size: int
) -> tuple[list[wire.ActionStatus], int]:
    """Return the statuses of a page, and how many there are in all.

    Results fill at most MAX_PAGE_BYTES of it, and it ends early then; the first one always fits.
    """
    total = connection.execute(QUERIES["count_actions"], params)[0]["found"]
    shown: list[wire.ActionStatus] = []
    left = MAX_PAGE_BYTES
    while len(shown) < size:
        at_once = min(_AT_ONCE, size - len(shown))
        rows = connection.execute(QUERIES["list_actions"], {**params, "limit": at_once, "offset": start + len(shown)})
        for row in rows:
            left -= len(row["result"] or "") if asked.include_results else 0
            if left < 0 and shown:
                return shown, total
            shown.append(_entry(connection, row, asked))
        if len(rows) < at_once:
            break
    return shown, total


def _entry(connection: Connection, row: _Row, asked: ActionsAsked) -> wire.ActionStatus:
    status = status_of(row, include_result=asked.include_results)
    if not asked.include_receipts or row["approval_id"] is None:
        return status
    chain = fetch_chain(connection, tenant=row["tenant"], chain_id=approval_chain(row["approval_id"]))
    return status.model_copy(update={"receipt_chain": chain})


def _of_endpoint(endpoint_id: str) -> str:
    """Return the LIKE pattern of an endpoint's capability ids: `cap:<connector>:<endpoint>:<operation>`."""
    return f"cap:%:{endpoint_id.replace('!', '!!').replace('_', '!_').replace('%', '!%')}:%"
