"""The read routes: a query to one call of the runtime, and the bare body object back.

`tenant_id` may name the caller's own tenant (design D18). With `wait_ms` status and result wait for the action's end.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.ids import ActionId, ApprovalId, PrincipalId, TenantId
from aip_hermes.runtime.failures import ResultNotReady
from aip_hermes.server.gateway import Gateway, check_tenant
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response
from aip_hermes.server.waiting import until

__all__ = ["Reads"]

_SAID_AT_ONCE: Final = ("unknown", *wire.TERMINAL_STATES)
"""States of an action that a waiting status does not wait beyond: it has ended, or nobody knows it."""

APPROVAL_STATES: Final = ("pending", "approved", "denied", "expired", "revoked")


class Reads:
    """Actions and approvals, as their owners and reviewers may see them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def action_status(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        wait_ms = query.wait_ms()
        look = partial(
            self._gateway.runtime.status,
            action_id,
            caller,
            include_result=query.flag("include_result"),
            include_receipts=query.flag("include_receipts"),
            include_chunks=query.flag("include_chunks"),
        )
        check_tenant(query.text("tenant_id"), caller)
        status = await until(
            look,
            enough=lambda found: found.state in _SAID_AT_ONCE,
            changed=partial(self._gateway.runtime.watching, action_id, caller),
            wait_ms=wait_ms,
            clock=self._gateway.clock,
        )
        return _bare("action_status", status)

    async def action_result(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        wait_ms, include_receipt = query.wait_ms(), query.flag("include_receipt")
        query.flag("include_terminal_events")
        check_tenant(query.text("tenant_id"), caller)
        runtime = self._gateway.runtime

        async def look() -> wire.ActionResult | ResultNotReady:
            try:
                return await runtime.result(action_id, caller, include_receipt=include_receipt)
            except ResultNotReady as exc:
                return exc

        found = await until(
            look,
            enough=lambda found: not isinstance(found, ResultNotReady),
            changed=partial(runtime.watching, action_id, caller),
            wait_ms=wait_ms,
            clock=self._gateway.clock,
        )
        if isinstance(found, ResultNotReady):
            raise found
        return _bare("action_result", found)

    async def approvals(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        query = Query(request.scope["query_string"])
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
            include_receipts=query.flag("include_receipts"),
        )
        return _bare("approval_list", page)

    async def approval(self, request: Request) -> Response:
        caller = self._gateway.authenticate(request)
        approval_id = path_identity(request.path_params["approval_id"], ApprovalId, name="approval_id")
        query = Query(request.scope["query_string"])
        check_tenant(query.text("tenant_id"), caller)
        view = await self._gateway.runtime.approval(
            approval_id,
            caller,
            include_action_status=query.flag("include_action_status"),
            include_evidence_payload=query.flag("include_evidence_payload"),
            include_receipts=query.flag("include_receipts"),
        )
        return _bare("approval_record_view", view)

    async def approval_context(self, request: Request) -> Response:
        """A route of ours (design D25): what a decision meets now."""
        caller = self._gateway.authenticate(request)
        approval_id = path_identity(request.path_params["approval_id"], ApprovalId, name="approval_id")
        check_tenant(Query(request.scope["query_string"]).text("tenant_id"), caller)
        found = await self._gateway.runtime.approval_context(approval_id, caller)
        return json_response({"approval_context": dict(found)})


def _bare(key: str, model: wire.Wire) -> Response:
    return json_response({key: model.wire()})
