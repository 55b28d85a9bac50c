"""What the server offers, to whom, and whether it lives: catalogue, manifest, who am I, health, readiness.

Source: HTTP surface, "Capability catalogue", "Discovery, health, readiness"; design D24.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.contract import InvalidCatalogQuery, StaleCatalogCursor
from aip_hermes.contract.catalog import MAX_PAGE
from aip_hermes.errors import RequestRefused
from aip_hermes.server.failures import QueryInvalid
from aip_hermes.server.gateway import Gateway
from aip_hermes.server.query import Query
from aip_hermes.server.reply import json_response

__all__ = ["Discovery"]

_CATALOGUE_STATUS: Final[Mapping[type[RequestRefused], int]] = MappingProxyType(
    {QueryInvalid: 400, InvalidCatalogQuery: 400, StaleCatalogCursor: 409}
)


class Discovery:
    """The routes that tell a caller where it is."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def capabilities(self, request: Request) -> Response:
        """Return one page of the caller's tenant; errors have the catalogue's own shape."""
        caller = self._gateway.authenticate(request)
        if caller.tenant_id is None:
            code = "connector_catalog.tenant_required"
            return json_response({"error": {"code": code, "principal_id": caller.principal.id}}, status=403)
        try:
            query = Query(request.scope["query_string"])
            page = self._gateway.catalog.page(
                tenant_id=caller.tenant_id,
                capability_id=query.text("capability_id"),
                text=query.text("text"),
                profile=query.text("profile"),
                cursor=query.text("cursor"),
                limit=query.limit(at_most=MAX_PAGE),
            )
        except tuple(_CATALOGUE_STATUS) as exc:
            code = InvalidCatalogQuery.code if isinstance(exc, QueryInvalid) else exc.code
            status = _CATALOGUE_STATUS[type(exc)]
            return json_response({"error": {"code": code, "message": exc.message}}, status=status)
        return json_response(page.wire())

    async def manifest(self, request: Request) -> Response:
        """Return the server alone without a bearer; with one, also what its tenant may call.

        A bearer that is no good is refused, not ignored, an empty one too: whoever shows one wants to know.
        """
        schemes = [value.partition(b" ")[0].lower() for name, value in request.headers.raw if name == b"authorization"]
        shown = b"bearer" in schemes
        tenant_id = self._gateway.authenticate(request).tenant_id if shown else None
        wanted = _manifest_filter(Query(request.scope["query_string"]))
        return json_response(self._gateway.manifest(tenant_id, wanted).wire())

    async def me(self, request: Request) -> Response:
        """Return whom the token stands for: `principal`, `tenant_id`, `scopes`, `invoke`, `expires_at`."""
        caller, expires_at_ms = self._gateway.identify(request)
        return json_response(
            {
                "principal": caller.principal.wire(),
                "tenant_id": caller.tenant_id,
                "scopes": sorted(caller.scopes),
                "invoke": list(caller.invoke),
                "expires_at": None if expires_at_ms is None else wire.rfc3339(expires_at_ms),
            }
        )

    async def health(self, request: Request) -> Response:
        """Return that the process answers; nothing else is asked."""
        uptime_s = self._gateway.clock.monotonic() - self._gateway.started
        return json_response(
            {
                "status": "ok",
                "protocol": "AIP",
                "version": wire.AIP_VERSION,
                "service": self._gateway.service_id,
                "uptime_ms": round(uptime_s * 1000),
            }
        )

    async def ready(self, request: Request) -> Response:
        """Return whether store and endpoints answer: 200 `ready` or 503 `not_ready`.

        Anyone may ask, so endpoints are neither named nor counted.
        """
        found: Mapping[str, Any] = await self._gateway.runtime.health() if self._gateway.is_open else _CLOSED
        ready, store = found["ready"] is True, found["store"]["ready"] is True
        endpoints = all(endpoint["ready"] is True for endpoint in found["endpoints"].values())
        answer = {
            "status": "ready" if ready else "not_ready",
            "gateway": {
                "ready": ready,
                "storage": {"ready": store, "detail": _DETAIL["store", store]},
                "connectors": {"all": {"ready": endpoints, "detail": _DETAIL["endpoints", endpoints]}},
            },
            "modules": {},
        }
        return json_response(answer, status=200 if ready else 503)


_CLOSED: Final[Mapping[str, Any]] = {"ready": False, "store": {"ready": False}, "endpoints": {}}
_DETAIL: Final[Mapping[tuple[str, bool], str]] = {
    ("store", True): "the store answers and takes writes",
    ("store", False): "the store does not answer, or takes no writes",
    ("endpoints", True): "every endpoint answers",
    ("endpoints", False): "an endpoint does not answer",
}


def _manifest_filter(query: Query) -> wire.ManifestFilter:
    flags = ("requires_approval", "supports_streaming", "supports_transactions")
    chosen: dict[str, Any] = {
        "capability_ids": query.choices("capability_id"),
        "resource_kinds": query.choices("resource_kind"),
        "profiles": query.choices("profile"),
        "risk": query.choices("risk", get_args(wire.RiskLevel)),
        "side_effects": query.choices("side_effect", get_args(wire.SideEffect)),
        **{flag: query.optional_flag(flag) for flag in flags},
    }
    return wire.ManifestFilter.model_validate(chosen)
