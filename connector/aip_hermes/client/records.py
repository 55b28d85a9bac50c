"""Reading what an AIP server has recorded: actions, the log of events, receipts, the audit log, other lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Literal

from aip_hermes.client.reading import Reading, segment
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ActionId, AipSessionId, CapabilityId, EndpointId, PrincipalId, ReceiptId, TenantId

__all__ = ["RecordReads"]


class RecordReads(Reading):
    """What a connection may ask about records. Times are RFC 3339 texts; a page has 100 entries, or `limit`, 1…1000.

    Every method raises the failures of `client.failures`, always certain.
    """

    async def actions(
        self,
        *,
        state: str | None = None,
        outcome: Literal["uncertain", "unresolved", "certain"] | None = None,
        capability_id: CapabilityId | None = None,
        endpoint: EndpointId | None = None,
        session_id: AipSessionId | None = None,
        principal_id: PrincipalId | None = None,
        approval_id: str | None = None,
        transaction_id: str | None = None,
        tenant_id: TenantId | None = None,
        since: str | None = None,
        until: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        include_results: bool = False,
        include_receipts: bool = False,
    ) -> JsonObject:
        """Return one page, `{"action_list": {"actions", "total_size", "cursor"?}}`, the least recently changed first.

        outcome: `uncertain` for those whose effect may have happened without proof, `unresolved` for those among them
        of which no reconciliation has found out. session_id: of AIP, not of Hermes.
        since, until: of the last change, both included. outcome, endpoint, since and until are ours.
        """
        params = {
            "state": state,
            "outcome": outcome,
            "capability_id": capability_id,
            "endpoint": endpoint,
            "session_id": session_id,
            "principal_id": principal_id,
            "approval_id": approval_id,
            "transaction_id": transaction_id,
            "tenant_id": tenant_id,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
            "include_results": include_results,
            "include_receipts": include_receipts,
        }
        return await self.get("/aip/v1/actions", params, expected="action_list")

    async def every_action(
        self,
        *,
        outcome: Literal["uncertain", "unresolved", "certain"] | None = None,
        endpoint: EndpointId | None = None,
        state: str | None = None,
    ) -> AsyncIterator[JsonObject]:
        """Yield the status of every action that there is now, once, page by page; all pages are read first.

        Reading all before the first is handed out keeps what is done with one from moving the others.
        """
        found: dict[str, JsonObject] = {}
        cursor: str | None = None
        while True:
            page = await self.actions(outcome=outcome, endpoint=endpoint, state=state, cursor=cursor, limit=1000)
            found |= {action["action_id"]: action for action in page["action_list"]["actions"]}
            cursor = page["action_list"].get("cursor")
            if cursor is None:
                break
        for action in found.values():
            yield action

    async def event_log(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        tenant_id: TenantId | None = None,
        wait_ms: int | None = None,
    ) -> JsonObject:
        """Return one page of the log of all actions that the caller may see.

        `{"event_stream": {"events", "next_cursor"}}`. It has no end: go on with `next_cursor`. wait_ms: how long, at
        most 30000, an empty page may wait.
        """
        params = {
            "cursor": cursor,
            "limit": limit,
            "kinds": ",".join(kinds),
            "tenant_id": tenant_id,
            "wait_ms": wait_ms,
        }
        return await self.get("/aip/v1/events", params, expected="event_stream")

    async def receipt_chain(self, chain_id: str) -> JsonObject:
        """Return `{"receipt_chain": …}` of a chain such as `approval:appr_…`. See `chain_problems`."""
        return await self.get(f"/aip/v1/receipts/{segment(chain_id)}", expected="receipt_chain")

    async def chain_of_receipt(self, receipt_id: ReceiptId) -> JsonObject:
        """Return `{"receipt_chain": …}`, the whole chain that has a receipt."""
        path = f"/aip/v1/receipts/by-receipt/{segment(receipt_id)}"
        return await self.get(path, expected="receipt_chain")

    async def audit_events(
        self,
        *,
        action_id: ActionId | None = None,
        session_id: AipSessionId | None = None,
        principal_id: PrincipalId | None = None,
        transaction_id: str | None = None,
        tenant_id: TenantId | None = None,
        since: str | None = None,
        until: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        include_receipts: bool = False,
        export: bool = False,
    ) -> JsonObject:
        """Return one page, `{"audit_query_result": {"events", "receipt_chains"?, "cursor"?}}`, oldest first.

        since, until: both included; `from` and `to` of the route. Without the scope `audit:sensitive` records and
        receipts come without their `data`; export and include_receipts need `audit:export`.
        """
        params = {
            "action_id": action_id,
            "session_id": session_id,
            "principal_id": principal_id,
            "transaction_id": transaction_id,
            "tenant_id": tenant_id,
            "from": since,
            "to": until,
            "cursor": cursor,
            "limit": limit,
            "include_receipts": include_receipts,
            "export": export,
        }
        return await self.get("/aip/v1/audit/events", params, expected="audit_query_result")

    async def aip_sessions(
        self,
        *,
        principal_id: PrincipalId | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> JsonObject:
        """Return one page, `{"session_list": …}`, of AIP sessions; a Hermes transcript is none."""
        params = {"principal_id": principal_id, "status": status, "cursor": cursor, "limit": limit}
        return await self.get("/aip/v1/sessions", params, expected="session_list")

    async def aip_session(self, session_id: AipSessionId) -> JsonObject:
        """Return `{"session_view": …}`. Raises: PeerError `session.not_found`."""
        return await self.get(f"/aip/v1/sessions/{segment(session_id)}", expected="session_view")

    async def transaction(
        self,
        *,
        transaction_id: str | None = None,
        plan_id: str | None = None,
        action_id: ActionId | None = None,
        include_result: bool = False,
        include_receipts: bool = False,
    ) -> JsonObject:
        """Return `{"transaction_view": …}` by exactly one of the three. Raises: PeerError `transaction.not_found`."""
        places = {"": transaction_id, "by-plan/": plan_id, "by-action/": action_id}
        named = [(place, value) for place, value in places.items() if value is not None]
        if len(named) != 1:
            raise ValueError("exactly one of transaction_id, plan_id and action_id names a transaction")
        [(place, value)] = named
        params = {"include_result": include_result, "include_receipts": include_receipts}
        return await self.get(f"/aip/v1/transactions/{place}{segment(value)}", params, expected="transaction_view")

    async def resources(
        self,
        *,
        capability_id: CapabilityId | None = None,
        kind: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> JsonObject:
        """Return one page, `{"resource_list": …}`."""
        params = {"capability_id": capability_id, "kind": kind, "cursor": cursor, "limit": limit}
        return await self.get("/aip/v1/resources", params, expected="resource_list")

    async def resource(self, resource_id: str) -> JsonObject:
        """Return `{"resource_read_result": …}`. Raises: PeerError `resource.not_found`."""
        path = f"/aip/v1/resources/{segment(resource_id)}"
        return await self.get(path, expected="resource_read_result")
