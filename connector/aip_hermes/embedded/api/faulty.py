"""The application, with faults before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from aip_hermes.embedded.api.answers import Refusal
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.failures import failure_answer
from aip_hermes.embedded.api.reads import OPERATIONS
from aip_hermes.embedded.api.requests import check_key
from aip_hermes.embedded.faults import FaultPlan
from aip_hermes.embedded.faults.exchange import Exchange

__all__ = ["Application", "planned_faults"]


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", path))


_PATTERNS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    name: (method, _pattern(path)) for name, (method, path) in OPERATIONS.items()
}


def planned_faults(wanted: Iterable[str]) -> FaultPlan:
    """Return the plan for `NAME:OPERATION:COUNT`, operations as `/v1/capabilities` names them. Raises ValueError."""
    return FaultPlan(wanted, operations=OPERATIONS)


class Application(Starlette):
    """Starlette outside of all its layers: a fault may need the server's own connection.

    plan, endpoint: set once, before the first request. A request without the key meets no fault and uses up none.
    """

    plan: FaultPlan
    endpoint: Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        deed = None
        if scope["type"] == "http" and _has_key(self.endpoint, scope) and (operation := _operation(scope)):
            deed = self.plan.next(operation)
        if deed is None:
            await super().__call__(scope, receive, send)
            return
        exchange = Exchange(
            app=super().__call__,
            failed=failure_answer,
            scope=scope,
            receive=receive,
            send=send,
            clock=self.endpoint.clock,
            store=self.endpoint.db.path,
        )
        await deed(exchange)


def _operation(scope: Scope) -> str | None:
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8")
    path = raw.partition(b"?")[0].decode("latin-1")
    for name, (method, pattern) in _PATTERNS.items():
        if method == scope["method"] and pattern.fullmatch(path):
            return name
    return None


def _has_key(endpoint: Endpoint, scope: Scope) -> bool:
    try:
        check_key(endpoint, Request(scope))
    except Refusal:
        return False
    return True
