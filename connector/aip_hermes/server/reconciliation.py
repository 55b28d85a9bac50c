"""Two routes of ours (design §5): look what became of an uncertain action, and read what the last look said."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.ids import ActionId
from aip_hermes.runtime.failures import MemberRefused
from aip_hermes.server.body import check_content_type, parse_json, read_limited
from aip_hermes.server.gateway import Gateway, check_tenant, noted
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response

__all__ = ["ReconciliationRoutes"]


class ReconciliationRoutes:
    """Verdicts about actions, for who submitted them or may act for others."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def reconcile(self, request: Request) -> Response:
        """Look, and answer `{"reconciliation": …}`; the body is empty or `{}`."""
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        noted(request)["action_id"] = action_id[:128]
        await self._refuse_members(request)
        found = await self._gateway.runtime.reconciliations.reconcile(action_id, caller)
        return json_response({"reconciliation": dict(found)})

    async def latest(self, request: Request) -> Response:
        """Answer `{"reconciliation": …}` of the last look."""
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        check_tenant(Query(request.scope["query_string"]).text("tenant_id"), caller)
        found = await self._gateway.runtime.reconciliations.latest(action_id, caller)
        return json_response({"reconciliation": dict(found)})

    async def _refuse_members(self, request: Request) -> None:
        """Members that nobody acts on are refused, never ignored (design D8)."""
        body = await read_limited(
            request.stream(),
            announced=request.headers.get("content-length"),
            max_bytes=self._gateway.max_request_bytes,
        )
        if not body.strip():
            return
        check_content_type(request.headers)
        if parse_json(body) != {}:
            raise MemberRefused("the body of a reconciliation is empty or {}")
