"""The surface at a glance: every route in one table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from aip_hermes.server.discovery import Discovery
from aip_hermes.server.edge import Edge, Handler, RawPath
from aip_hermes.server.empty_reads import empty_routes
from aip_hermes.server.gateway import Gateway
from aip_hermes.server.messages import Messages
from aip_hermes.server.metrics import Metrics
from aip_hermes.server.reads import Reads
from aip_hermes.server.reconciliation import ReconciliationRoutes
from aip_hermes.server.record_reads import RecordRoutes
from aip_hermes.server.streams import Streams

__all__ = ["native_application", "routes"]

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


def routes(gateway: Gateway) -> tuple[tuple[str, str, Handler], ...]:
    """Return method, path template and handler of every route."""
    messages, reads, discovery = Messages(gateway), Reads(gateway), Discovery(gateway)
    streams, records = Streams(gateway), RecordRoutes(gateway)
    reconciliations = ReconciliationRoutes(gateway)
    return (
        ("POST", "/aip/v1/messages", messages.post),
        ("POST", "/aip/v1/actions", messages.post),
        ("GET", "/aip/v1/actions", records.actions),
        ("GET", "/aip/v1/actions/{action_id}", reads.action_status),
        ("GET", "/aip/v1/actions/{action_id}/result", reads.action_result),
        ("GET", "/aip/v1/actions/{action_id}/events", streams.events),
        ("GET", "/aip/v1/actions/{action_id}/chunks", streams.chunks),
        ("POST", "/aip/v1/actions/{action_id}/cancel", streams.cancel),
        ("POST", "/aip/v1/actions/{action_id}/reconcile", reconciliations.reconcile),
        ("GET", "/aip/v1/actions/{action_id}/reconciliation", reconciliations.latest),
        ("GET", "/aip/v1/events", streams.log),
        ("GET", "/aip/v1/receipts/by-receipt/{receipt_id}", records.chain_of_receipt),
        ("GET", "/aip/v1/receipts/{chain_id}", records.receipts),
        ("GET", "/aip/v1/audit/events", records.audit),
        *empty_routes(gateway),
        ("GET", "/aip/v1/approvals", reads.approvals),
        ("GET", "/aip/v1/approvals/{approval_id}", reads.approval),
        ("GET", "/aip/v1/approvals/{approval_id}/context", reads.approval_context),
        ("GET", "/aip/v1/capabilities", discovery.capabilities),
        ("GET", "/aip/v1/manifest", discovery.manifest),
        ("GET", "/aip/v1/me", discovery.me),
        ("GET", "/aip/v1/health", discovery.health),
        ("GET", "/health", discovery.health),
        ("GET", "/", discovery.health),
        ("GET", "/ready", discovery.ready),
    )


def native_application(
    gateway: Gateway, *, lifespan: Lifespan | None = None, metrics: Metrics | None = None
) -> Starlette:
    """Return the ASGI application over `gateway`. Errors are envelopes, unknown routes too.

    metrics: answers `GET /metrics`; without it there is no such route.
    """
    edge = Edge(replies=gateway.replies, clock=gateway.clock)
    table = (*routes(gateway), *((("GET", "/metrics", metrics.metrics),) if metrics is not None else ()))
    application = Starlette(
        routes=[Route(path, edge.guard(path, handler), methods=[method]) for method, path, handler in table],
        middleware=[Middleware(RawPath)],
        exception_handlers={404: edge.unrouted, 405: edge.unrouted},
        lifespan=lifespan,
    )
    application.router.redirect_slashes = False
    return application
