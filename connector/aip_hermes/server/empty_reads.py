"""Kinds of records that this runtime keeps none of: empty lists, and the code of the kind for every single one.

AIP sessions (not Hermes transcripts), transactions, resources and callback deliveries. Scopes and parameters are
checked as if there were any. Source: AIP HTTP surface §5.2, §6, §17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.errors import RequestRefused
from aip_hermes.ids import ActionId, AipSessionId, Identity
from aip_hermes.runtime.access import need, offset_of
from aip_hermes.runtime.failures import CapabilityUnknown
from aip_hermes.server.edge import Handler
from aip_hermes.server.failures import (
    DeliveryNotFound,
    SessionNotFound,
    TransactionNotFound,
)
from aip_hermes.server.gateway import Gateway, check_tenant
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response

__all__ = ["empty_routes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """scope: that the route needs. missing: the error of one that is asked for. noun: for a person."""

    scope: str
    missing: type[RequestRefused]
    noun: str


_SESSION = _Kind(scope="session:read", missing=SessionNotFound, noun="AIP session")
_CHANGED_SESSION = _Kind(scope="session:write", missing=SessionNotFound, noun="AIP session")
_TRANSACTION = _Kind(scope="transaction:read", missing=TransactionNotFound, noun="transaction")
_RESOURCE = _Kind(scope="resource:read", missing=CapabilityUnknown, noun="resource")
_DELIVERY = _Kind(scope="callback:read", missing=DeliveryNotFound, noun="callback delivery")

_LISTS: Final[Mapping[str, tuple[_Kind, Mapping[str, Any]]]] = MappingProxyType(
    {
        "/aip/v1/sessions": (_SESSION, {"session_list": {"sessions": []}}),
        "/aip/v1/resources": (_RESOURCE, {"resource_list": {"resources": []}}),
        "/aip/v1/callback-deliveries": (_DELIVERY, {"callback_delivery_list": {"deliveries": []}}),
    }
)
_SINGLE: Final[tuple[tuple[str, str, _Kind, str, type[Identity]], ...]] = (
    ("POST", "/aip/v1/sessions/{session_id}:close", _CHANGED_SESSION, "session_id", AipSessionId),
    ("POST", "/aip/v1/sessions/{session_id}:resume", _CHANGED_SESSION, "session_id", AipSessionId),
    ("POST", "/aip/v1/sessions/{session_id}/close", _CHANGED_SESSION, "session_id", AipSessionId),
    ("POST", "/aip/v1/sessions/{session_id}/resume", _CHANGED_SESSION, "session_id", AipSessionId),
    ("GET", "/aip/v1/sessions/{session_id}", _SESSION, "session_id", AipSessionId),
    ("GET", "/aip/v1/transactions/by-plan/{plan_id}", _TRANSACTION, "plan_id", Identity),
    ("GET", "/aip/v1/transactions/by-action/{action_id}", _TRANSACTION, "action_id", ActionId),
    ("GET", "/aip/v1/transactions/{transaction_id}", _TRANSACTION, "transaction_id", Identity),
    ("GET", "/aip/v1/resources/{id}", _RESOURCE, "id", Identity),
    ("GET", "/aip/v1/callback-deliveries/{delivery_id}", _DELIVERY, "delivery_id", Identity),
)


def empty_routes(gateway: Gateway) -> tuple[tuple[str, str, Handler], ...]:
    """Return method, path template and handler of every route of those kinds."""
    lists = tuple(("GET", path, _listed(gateway, kind, body)) for path, (kind, body) in _LISTS.items())
    single = tuple(
        (method, path, _missing(gateway, kind, name, identity)) for method, path, kind, name, identity in _SINGLE
    )
    return lists + single


def _listed(gateway: Gateway, kind: _Kind, body: Mapping[str, Any]) -> Handler:
    async def answer(request: Request) -> Response:
        caller = gateway.authenticate(request)
        query = Query(request.scope["query_string"])
        check_tenant(query.text("tenant_id"), caller)
        query.limit(at_most=MAX_LIST_LIMIT)
        need(caller, kind.scope)
        offset_of(query.text("cursor"))
        return json_response(dict(body))

    return answer


def _missing(gateway: Gateway, kind: _Kind, name: str, identity: type[Identity]) -> Handler:
    async def answer(request: Request) -> Response:
        caller = gateway.authenticate(request)
        found = path_identity(request.path_params[name], identity, name=name)
        check_tenant(Query(request.scope["query_string"]).text("tenant_id"), caller)
        need(caller, kind.scope)
        raise kind.missing(f"there is no such {kind.noun}; this runtime keeps none", details={name: str(found)})

    return answer
