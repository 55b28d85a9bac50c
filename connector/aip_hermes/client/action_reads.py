"""Reading one action and the approvals: where they stand, what happened, what a decision binds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from aip_hermes.client.reading import Reading, segment
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ActionId, ApprovalId, PrincipalId, TenantId

__all__ = ["ActionReads", "ApprovalStatus", "events_path"]

ApprovalStatus = Literal["pending", "approved", "denied", "expired", "revoked"]


class ActionReads(Reading):
    """What a connection may ask about actions and approvals.

    wait_ms: how long, at most 30000, the server may wait for what is asked. A page has 100 entries, or `limit`, 1…1000.
    Every method raises the failures of `client.failures`, always certain.
    """

    async def status(
        self,
        action_id: ActionId,
        *,
        include_result: bool = False,
        include_receipts: bool = False,
        include_chunks: bool = False,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Return `{"action_status": …}`; an id that the server never received has the state `unknown`."""
        params = {
            "include_result": include_result,
            "include_receipts": include_receipts,
            "include_chunks": include_chunks,
            "wait_ms": wait_ms,
        }
        return await self.get(f"/aip/v1/actions/{segment(action_id)}", params, expected="action_status")

    async def result(
        self,
        action_id: ActionId,
        *,
        include_receipt: bool = False,
        include_terminal_events: bool = False,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Return `{"action_result": …}`. Raises: PeerError `action.result_not_ready` while there is none."""
        params = {
            "wait_ms": wait_ms,
            "include_receipt": include_receipt,
            "include_terminal_events": include_terminal_events,
        }
        return await self.get(f"/aip/v1/actions/{segment(action_id)}/result", params, expected="action_result")

    async def events(
        self,
        action_id: ActionId,
        *,
        kinds: Collection[str] = (),
        cursor: str | None = None,
        limit: int | None = None,
        include_chunks: bool = False,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Return one page, `{"action_events": …}`: go on with its `cursor` until it is `terminal`.

        kinds: none for all.
        """
        params = {
            "cursor": cursor,
            "limit": limit,
            "include_chunks": include_chunks,
            "kinds": ",".join(kinds),
            "wait_ms": wait_ms,
        }
        return await self.get(events_path(action_id, chunks_only=False), params, expected="action_events")

    async def chunks(
        self,
        action_id: ActionId,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Return one page of chunks and their events, as `events`."""
        params = {"cursor": cursor, "limit": limit, "wait_ms": wait_ms}
        return await self.get(events_path(action_id, chunks_only=True), params, expected="action_events")

    async def reconciliation(self, action_id: ActionId) -> JsonObject:
        """Return `{"reconciliation": …}` of the last look. Raises: PeerError `reconciliation.not_found`."""
        return await self.get(f"/aip/v1/actions/{segment(action_id)}/reconciliation", expected="reconciliation")

    async def approvals(
        self,
        *,
        status: ApprovalStatus | None = None,
        approver: PrincipalId | None = None,
        requester: PrincipalId | None = None,
        tenant_id: TenantId | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        include_action_status: bool = False,
        include_receipts: bool = False,
    ) -> JsonObject:
        """Return one page, `{"approval_list": …}`, oldest first."""
        params = {
            "status": status,
            "approver": approver,
            "requester": requester,
            "tenant_id": tenant_id,
            "cursor": cursor,
            "limit": limit,
            "include_action_status": include_action_status,
            "include_receipts": include_receipts,
        }
        return await self.get("/aip/v1/approvals", params, expected="approval_list")

    async def approval(
        self,
        approval_id: ApprovalId,
        *,
        include_action_status: bool = False,
        include_receipts: bool = False,
        include_evidence_payload: bool = False,
    ) -> JsonObject:
        """Return `{"approval_record_view": …}`.

        include_evidence_payload: the exact input; it needs `approval:export` and `approval:sensitive`.
        """
        params = {
            "include_action_status": include_action_status,
            "include_receipts": include_receipts,
            "include_evidence_payload": include_evidence_payload,
        }
        return await self.get(f"/aip/v1/approvals/{segment(approval_id)}", params, expected="approval_record_view")

    async def approval_context(self, approval_id: ApprovalId) -> JsonObject:
        """Return `{"approval_context": …}`: votes, the frozen target, and what the operation would touch besides, read
        now. A route of ours (design D25); elsewhere PeerError or HttpFailed."""
        return await self.get(f"/aip/v1/approvals/{segment(approval_id)}/context", expected="approval_context")


def events_path(action_id: ActionId, *, chunks_only: bool) -> str:
    """Return the route of an action's events, or of its chunks."""
    return f"/aip/v1/actions/{segment(action_id)}/{'chunks' if chunks_only else 'events'}"
