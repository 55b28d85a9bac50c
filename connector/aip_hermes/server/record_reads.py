"""Reads over all actions of a tenant: the list, receipts, the audit log. A query to one call of the runtime's records.

Ours beside the published parameters: `endpoint`, `outcome`, `since` and `until` of the list of actions.
Source: AIP HTTP surface §5.2; design §5, D24.
"""

from __future__ import annotations

from typing import Final, get_args

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    ApprovalId,
    CapabilityId,
    EndpointId,
    Identity,
    PrincipalId,
    ReceiptId,
    TenantId,
)
from aip_hermes.runtime.records import EVER, ActionsAsked, AuditAsked
from aip_hermes.server.failures import QueryInvalid
from aip_hermes.server.gateway import Gateway, check_tenant
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response

__all__ = ["RecordRoutes"]

OUTCOMES: Final = ("uncertain", "unresolved", "certain")
"""uncertain: it ended so, whatever was found out since. unresolved: and nothing was."""


class RecordRoutes:
    """What was recorded, for those who may read it."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def actions(self, request: Request) -> Response:
        """Answer `{"action_list": …}`, the action that changed first before the others."""
        caller = self._gateway.authenticate(request)
        query = Query(request.scope["query_string"])
        tenant_id = query.identity("tenant_id", TenantId)
        check_tenant(tenant_id, caller)
        outcome = query.choice("outcome", OUTCOMES)
        since, until = _times(query, "since", "until")
        asked = ActionsAsked(
            state=query.choice("state", get_args(wire.ActionLifecycleState)),
            uncertain=None if outcome is None else outcome != "certain",
            unresolved=outcome == "unresolved",
            capability_id=query.identity("capability_id", CapabilityId),
            endpoint_id=query.identity("endpoint", EndpointId),
            session_id=query.identity("session_id", AipSessionId),
            principal_id=query.identity("principal_id", PrincipalId),
            approval_id=query.identity("approval_id", ApprovalId),
            tenant_id=tenant_id,
            since=since,
            until=until,
            cursor=query.text("cursor"),
            limit=query.limit(at_most=MAX_LIST_LIMIT),
            include_results=query.flag("include_results"),
            include_receipts=query.flag("include_receipts"),
        )
        # No action of ours belongs to a transaction, so those of one are none.
        found = (
            await self._gateway.runtime.records.actions(caller, asked)
            if query.text("transaction_id") is None
            else wire.ActionList(actions=[], total_size=0)
        )
        return json_response({"action_list": found.wire()})

    async def receipts(self, request: Request) -> Response:
        """Answer `{"receipt_chain": …}` of a chain's id."""
        caller = self._gateway.authenticate(request)
        chain_id = path_identity(request.path_params["chain_id"], Identity, name="chain_id")
        check_tenant(Query(request.scope["query_string"]).text("tenant_id"), caller)
        chain = await self._gateway.runtime.records.receipts(caller, chain_id=str(chain_id))
        return json_response({"receipt_chain": chain.wire()})

    async def chain_of_receipt(self, request: Request) -> Response:
        """Answer `{"receipt_chain": …}` that has a receipt."""
        caller = self._gateway.authenticate(request)
        receipt_id = path_identity(request.path_params["receipt_id"], ReceiptId, name="receipt_id")
        check_tenant(Query(request.scope["query_string"]).text("tenant_id"), caller)
        chain = await self._gateway.runtime.records.receipts(caller, receipt_id=receipt_id)
        return json_response({"receipt_chain": chain.wire()})

    async def audit(self, request: Request) -> Response:
        """Answer `{"audit_query_result": …}`, oldest first."""
        caller = self._gateway.authenticate(request)
        query = Query(request.scope["query_string"])
        tenant_id = query.identity("tenant_id", TenantId)
        check_tenant(tenant_id, caller)
        since, until = _times(query, "from", "to")
        asked = AuditAsked(
            action_id=query.identity("action_id", ActionId),
            session_id=query.identity("session_id", AipSessionId),
            principal_id=query.identity("principal_id", PrincipalId),
            transaction_id=query.text("transaction_id"),
            tenant_id=tenant_id,
            since=since,
            until=until,
            cursor=query.text("cursor"),
            limit=query.limit(at_most=MAX_LIST_LIMIT),
            include_receipts=query.flag("include_receipts"),
            export=query.flag("export"),
        )
        found = await self._gateway.runtime.records.audit(caller, asked)
        return json_response({"audit_query_result": found.wire()})


def _times(query: Query, first: str, last: str) -> tuple[int, int]:
    """Return a span of Unix milliseconds, both ends included; what is absent is open."""
    since, until = query.time_ms(first), query.time_ms(last)
    if since is not None and until is not None and since > until:
        raise QueryInvalid(f"query parameter `{first}` is later than `{last}`")
    return 0 if since is None else since, EVER if until is None else until
