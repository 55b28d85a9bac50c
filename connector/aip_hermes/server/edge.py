"""The outermost ring of every route: errors become envelopes, each request becomes one log event.

The event has method, route template, status, duration, principal and, for an action, its id; never a query value, a
header or a body. A fault of ours is answered without detail; the log has type and place, not the message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from aip_hermes.database import StoreFailure
from aip_hermes.errors import AipError
from aip_hermes.ports import Clock
from aip_hermes.server.failures import (
    EnvelopeUndecodable,
    GatewayFailed,
    MethodNotAllowed,
    RouteUnknown,
    ServerStopping,
    StorageUnavailable,
)
from aip_hermes.server.gateway import noted
from aip_hermes.server.reply import Replies

__all__ = ["Edge", "Handler", "RawPath"]

Handler = Callable[[Request], Awaitable[Response]]

log = structlog.get_logger()

REQUEST: Final = "server.request"
FAILED: Final = "server.failed"
STORE_FAILED: Final = "server.store_failed"


class Edge:
    """Wraps handlers. `guard` is the only way into a route."""

    def __init__(self, *, replies: Replies, clock: Clock) -> None:
        self._replies = replies
        self._clock = clock

    def guard(self, route: str, handler: Handler) -> Handler:
        """Return `handler` with errors answered and the request logged under the template `route`."""

        async def guarded(request: Request) -> Response:
            started = self._clock.monotonic()
            response, code = await self._answer(route, handler, request)
            self._record(request, route, response.status_code, self._clock.monotonic() - started, code)
            return response

        return guarded

    async def unrouted(self, request: Request, exc: Exception) -> Response:
        """Answer what no route took: 404, or 405 with the methods that it takes."""
        error: AipError = RouteUnknown("no such route; see GET /aip/v1/manifest")
        headers: dict[str, str] = {}
        if isinstance(exc, HTTPException) and exc.status_code == 405:
            headers = {"allow": ", ".join(sorted(_taken(request)))}
            error = MethodNotAllowed(f"this route takes {headers['allow']}")
        response = self._replies.refusal(error, headers=headers)
        self._record(request, "", response.status_code, 0.0, error.code)
        return response

    async def _answer(self, route: str, handler: Handler, request: Request) -> tuple[Response, str | None]:
        error: AipError
        try:
            return await handler(request), None
        except AipError as exc:
            error = exc
        except StoreFailure as exc:
            log.error(STORE_FAILED, route=route, kind=getattr(exc, "kind", type(exc).__name__), exc_info=exc)
            error = _store_failed(request, exc)
        except asyncio.CancelledError:
            error = _stopping(request)
        except ClientDisconnect:
            error = EnvelopeUndecodable("the connection closed before the body was complete")
        except Exception:
            log.exception(FAILED, route=route)
            error = GatewayFailed("the server failed; before sending an action again, query its id")
        return self._replies.refusal(error), error.code

    def _record(self, request: Request, route: str, status: int, seconds: float, code: str | None) -> None:
        log.info(
            REQUEST,
            method=request.method if request.method in _METHODS else "other",
            route=route,
            status=status,
            duration_ms=round(seconds * 1000, 1),
            **({} if code is None else {"code": code}),
            **_identities(noted(request)),
        )


def _identities(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out an action id that is none: a caller may write anything in its place, also what no log may hold."""
    action_id = str(fields.get("action_id", ""))
    return {name: value for name, value in fields.items() if name != "action_id" or action_id.startswith("act_")}


def _store_failed(request: Request, failure: StoreFailure) -> StorageUnavailable:
    """Answer a request that met a store that can't be used: what was posted may have been sent by then."""
    if request.method == "POST" and failure.harmless:
        message = "the server's store can't be used now; nothing was changed: send the same action again later"
        return StorageUnavailable(message, retry_after_ms=1000)
    posted = request.method == "POST"
    advice = (
        "query the action's id, or send the same action under the same id again later: it is not run twice"
        if posted
        else "ask again later"
    )
    return StorageUnavailable(f"the server's store can't be used now; {advice}", uncertain=posted, retry_after_ms=1000)


def _stopping(request: Request) -> ServerStopping:
    """Answer a request that the stopping server cancelled; its connection is still there."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    posted = request.method == "POST"
    advice = "query the action's id before sending it again" if posted else "ask again later"
    return ServerStopping(
        f"the server stopped before it had the answer; {advice}", uncertain=posted, retryable=not posted
    )


def _taken(request: Request) -> set[str]:
    """Return the methods of all routes that have the request's path; a route of the table has one."""
    found = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in found for method in getattr(route, "methods", None) or ()}


_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class RawPath:
    """Routes on the path as it was sent, so that an encoded slash inside an id can't move a route; handlers decode."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
            # A server may hand over unencoded bytes; they stay data.
            scope = {**scope, "path": quote(raw.decode("latin-1"), safe="/%:@!$&'()*+,;=-._~", encoding="latin-1")}
        await self._app(scope, receive, send)
