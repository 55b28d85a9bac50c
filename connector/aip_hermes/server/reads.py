"""The read routes: a query to one call of the runtime, and the bare body object back.

`tenant_id` may name the caller's own tenant (design D18); `wait_ms` is checked and never waited for.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.ids import ActionId, ApprovalId, PrincipalId, TenantId
from aip_hermes.server.gateway import Gateway, check_tenant
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response

__all__ = ["Reads"]

APPROVAL_STATES: Final = ("pending", "approved", "denied", "expired", "revoked")


class Reads:
    """Actions and approvals, as their owners and reviewers may see them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def action_status(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        query.wait_ms()
        query.flag("include_receipts"), query.flag("include_chunks")
        include_result = query.flag("include_result")
        check_tenant(query.text("tenant_id"), caller)
        status = await self._gateway.runtime.status(action_id, caller, include_result=include_result)
        return _bare("action_status", status)

    async def action_result(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        query.wait_ms()
        query.flag("include_receipt"), query.flag("include_terminal_events")
        check_tenant(query.text("tenant_id"), caller)
        return _bare("action_result", await self._gateway.runtime.result(action_id, caller))

    async def approvals(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        query = Query(request.scope["query_string"])
        query.flag("include_receipts")
        tenant_id = query.identity("tenant_id", TenantId)
        check_tenant(tenant_id, caller)
        page = await self._gateway.runtime.approvals(
            caller,
            status=query.choice("status", APPROVAL_STATES),
            approver=query.identity("approver", PrincipalId),
            requester=query.identity("requester", PrincipalId),
            tenant_id=tenant_id,
            cursor=query.text("cursor"),
            limit=query.limit(at_most=MAX_LIST_LIMIT),
            include_action_status=query.flag("include_action_status"),
        )
        return _bare("approval_list", page)

    async def approval(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        approval_id = path_identity(request.path_params["approval_id"], ApprovalId, name="approval_id")
        query = Query(request.scope["query_string"])
        query.flag("include_receipts")
        check_tenant(query.text("tenant_id"), caller)
        view = await self._gateway.runtime.approval(
            approval_id,
            caller,
            include_action_status=query.flag("include_action_status"),
            include_evidence_payload=query.flag("include_evidence_payload"),
        )
        return _bare("approval_record_view", view)


def _bare(key: str, model: wire.Wire) -> Response:
    return json_response({key: model.wire()})
