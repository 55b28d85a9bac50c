"""Reading: where an action stands, its result, approvals with what a reviewer may see.

Another tenant's record looks like none at all; within the tenant, scopes and roles decide.
Source: AIP HTTP surface §3.7, §5, §9.2, §9.3; runtime behaviour §3, §18; design D8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.ids import ActionId, ApprovalId, TenantId
from aip_hermes.runtime import approvals
from aip_hermes.runtime.access import need, offset_of, own_tenant, owns, page_size, refused
from aip_hermes.runtime.answers import answer
from aip_hermes.runtime.approval_pages import ApprovalsAsked, Shown, approval_page, shown, view_of, views_of
from aip_hermes.runtime.authority import Authorities
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.erasure import erase, is_due
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES, Position, first_chunks, read_page
from aip_hermes.runtime.expiry import catch_up, overdue
from aip_hermes.runtime.failures import (
    ActionGone,
    ActionNotFound,
    ApprovalNotFound,
    ResultNotReady,
)
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.receipts import approval_chain, fetch_chain, newest_ref
from aip_hermes.runtime.status_view import status_of, unknown_status
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.unreadable import readable
from aip_hermes.runtime.visible_approvals import Sight

__all__ = ["Views"]

_Row = Mapping[str, Any]
_WAYS_OUT: Final = "the operator can put a backup of the store back"


class Views:
    """Answers queries from the store."""

    def __init__(self, footing: Footing, *, authorities: Authorities) -> None:
        self._footing = footing
        self._authorities = authorities

    async def status(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        include_result: bool,
        include_receipts: bool = False,
        include_chunks: bool = False,
    ) -> wire.ActionStatus:
        """Return where the action stands; `unknown` for one that this tenant does not have."""
        need(caller, "action:read")
        if include_receipts:
            need(caller, "receipt:read")
        row = await self._action(action_id, caller)
        if row is None:
            return unknown_status(action_id, now=self._footing.now_ms())
        status = status_of(row, include_result=include_result)
        if not (include_receipts or include_chunks):
            return status
        chain, chunks = await self._footing.database.read(
            lambda c: (_chain(c, row) if include_receipts else None, first_chunks(c, row) if include_chunks else [])
        )
        return status.model_copy(update={"receipt_chain": chain, "chunks": chunks})

    async def result(self, action_id: ActionId, caller: Caller, *, include_receipt: bool = False) -> wire.ActionResult:
        """Return the terminal result. Raises: NotAuthorized, ActionNotFound, ResultNotReady, ActionGone."""
        need(caller, "action:read")
        row = await self._action(action_id, caller)
        if row is None:
            raise ActionNotFound(f"there is no action {action_id}", details={"action_id": action_id})
        if row["settled_at"] is None:
            raise ResultNotReady(
                f"action {action_id} has no result yet", details={"action_id": action_id, "state": row["state"]}
            )
        stored = from_json(row["result"])
        if "erased" in stored and stored["status"] == "completed":
            raise _gone(row, stored)
        result = answer(row["action_id"], stored)
        if not include_receipt or row["approval_id"] is None:
            return result
        chain_id = approval_chain(row["approval_id"])
        ref = await self._footing.database.read(lambda c: newest_ref(c, tenant=row["tenant"], chain_id=chain_id))
        return result.model_copy(update={"receipt": ref})

    async def events(
        self,
        action_id: ActionId,
        caller: Caller,
        *,
        cursor: str | None,
        limit: int | None,
        kinds: Collection[str],
        include_chunks: bool,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> wire.ActionEvents:
        """Return the next page of an action's events and chunks.

        Raises: NotAuthorized, ActionNotFound, ActionGone, InvalidCursor, CursorExpired.
        """
        need(caller, "action:read")
        position = Position.parse(cursor)
        row = await self._action(action_id, caller)
        if row is None:
            raise ActionNotFound(f"there is no action {action_id}", details={"action_id": action_id})
        stored = from_json(row["result"]) if row["settled_at"] is not None else {}
        if "pruned" in stored or (include_chunks and "chunks_erased" in stored):
            raise _gone(row, stored)
        return await self._footing.database.read(
            lambda connection: read_page(
                connection,
                row,
                position=position,
                limit=limit,
                kinds=kinds,
                include_chunks=include_chunks,
                max_bytes=max_bytes,
            )
        )

    async def approvals(
        self,
        caller: Caller,
        *,
        status: str | None,
        approver: str | None,
        requester: str | None,
        tenant_id: TenantId | None,
        cursor: str | None,
        limit: int | None,
        include_action_status: bool,
        include_receipts: bool,
    ) -> wire.ApprovalList:
        """Return a page of the approvals that the caller may see, oldest first. include_receipts needs `receipt:read`
        too."""
        need(caller, "approval:read")
        if include_receipts:
            need(caller, "receipt:read")
        own_tenant(caller, tenant_id)
        asked = ApprovalsAsked(
            status=status,
            approver=approver,
            requester=requester,
            start=offset_of(cursor),
            size=page_size(limit),
            action_status=include_action_status,
            receipts=include_receipts,
        )
        await catch_up(self._footing)
        tenant, sight = caller.tenant_id or "", self._sight(caller)
        page, rest = await self._footing.database.read(
            lambda connection: approval_page(connection, asked, tenant=tenant, sight=sight)
        )
        return wire.ApprovalList(approvals=views_of(page), cursor=None if rest is None else f"offset:{rest}")

    async def approval(
        self,
        approval_id: ApprovalId,
        caller: Caller,
        *,
        include_action_status: bool,
        include_evidence_payload: bool,
        include_receipts: bool,
    ) -> wire.ApprovalRecordView:
        """Return one approval. Raises: NotAuthorized, ApprovalNotFound, ApprovalUnreadable."""
        if include_receipts:
            need(caller, "receipt:read")
        if include_evidence_payload:
            need(caller, "approval:export")
            need(caller, "approval:sensitive")
        row = await self.seen(approval_id, caller)

        def look(connection: Connection) -> tuple[Shown, str | None]:
            told = shown(connection, row, action_status=include_action_status, receipts=include_receipts)
            if not include_evidence_payload:
                return told, None
            return told, approvals.action_of(connection, row["tenant"], row["action_id"])["parked"]

        with readable(approval_id, advice=_WAYS_OUT):
            told, parked = await self._footing.database.read(look)
            return view_of(told, payload=None if parked is None else _payload(row, from_json(parked)["action"]))

    async def seen(self, approval_id: ApprovalId, caller: Caller) -> Mapping[str, Any]:
        """Return the row of an approval that the caller may see, also who once voted, whatever its authority is now.

        Raises: NotAuthorized, ApprovalNotFound.
        """
        need(caller, "approval:read")
        await catch_up(self._footing)
        asked = {"tenant": caller.tenant_id or "", "approval_id": approval_id, "me": caller.principal.id}
        rows = await self._footing.database.read(lambda c: c.execute(QUERIES["fetch_seen_approval"], asked))
        if not rows:
            raise ApprovalNotFound(f"there is no approval {approval_id}", details={"approval_id": approval_id})
        with readable(approval_id, advice=_WAYS_OUT):
            sees = self._sight(caller).sees(rows[0])
        if not sees:
            raise refused("approval", "Read", "this approval is neither yours nor yours to decide")
        return rows[0]

    async def _action(self, action_id: ActionId, caller: Caller) -> _Row | None:
        address = {"tenant": caller.tenant_id or "", "action_id": action_id}

        def look(connection: Connection) -> tuple[bool, list[dict[str, Any]]]:
            late = overdue(connection, self._footing, now=self._footing.now_ms())
            return bool(late), connection.execute(QUERIES["fetch_action"], address)

        late, rows = await self._footing.database.read(look)
        if late:
            await catch_up(self._footing)
            _, rows = await self._footing.database.read(look)
        if any(self._is_due(row, self._footing.now_ms()) for row in rows):
            rows = await self._footing.database.write(lambda connection: self._without_text(connection, address))
        if not rows:
            return None
        if not (owns(caller, rows[0]) or caller.may_read_others("action")):
            raise refused("action", "Read", "the action belongs to another principal")
        return rows[0]

    def _is_due(self, row: _Row, now: int) -> bool:
        return is_due(row, now=now, keep_ms=self._footing.limits.transcripts_ms)

    def _without_text(self, connection: Connection, address: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Text that was kept long enough goes before it is shown again."""
        now = self._footing.now_ms()
        for row in connection.execute(QUERIES["fetch_action"], address):
            if self._is_due(row, now):
                erase(connection, row, reason="expired", now=now)
        return connection.execute(QUERIES["fetch_action"], address)

    def _sight(self, caller: Caller) -> Sight:
        return Sight(caller, authorities=self._authorities, now=self._footing.now_ms())


def _chain(connection: Connection, row: _Row) -> wire.ReceiptChain | None:
    """Return the receipts of an action's approval; a plain action has none."""
    if row["approval_id"] is None:
        return None
    return fetch_chain(connection, tenant=row["tenant"], chain_id=approval_chain(row["approval_id"]))


def _gone(row: _Row, stored: Mapping[str, Any]) -> ActionGone:
    erased = stored.get("erased", {"reason": "pruned" if "pruned" in stored else "expired"})
    return ActionGone(
        f"action {row['action_id']} ended {stored['status']}; what it answered is no longer kept ({erased['reason']}). "
        "Nothing is sent again: read the target, or submit a new action",
        details={"action_id": row["action_id"], "status": stored["status"], "erased": erased},
    )


def _payload(row: _Row, action: Mapping[str, Any]) -> dict[str, Any]:
    payload = {
        "action_id": action["id"],
        "capability_id": action["capability_id"],
        "input_hash": row["input_hash"],
        "input": action["input"],
    }
    if "transaction" in action:
        payload["transaction"] = action["transaction"]
    request = from_json(row["request"])
    if "identity" in request:
        payload["identity"] = request["identity"]
    return payload
