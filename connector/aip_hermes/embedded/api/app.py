"""The HTTP surface of the embedded Hermes: one table of routes, one table of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent import HistoryUnreadable, Model, ModelFailed, ReplyNotStored, TurnInProgress, Turns
from aip_hermes.embedded.api import chat, jobs, listings, reads, sessions
from aip_hermes.embedded.api.answers import Refusal, plain_failure
from aip_hermes.embedded.api.endpoint import Endpoint, chosen_quirks
from aip_hermes.embedded.api.frame import Frame
from aip_hermes.embedded.api.requests import check_key
from aip_hermes.embedded.listen import check_key_strength
from aip_hermes.embedded.session_db import JobStore, SessionDB, SessionExists, TitleRefused, UnknownSession
from aip_hermes.hermes_api import HermesCode
from aip_hermes.ports import Clock, NewId, SystemClock
from aip_hermes.ports import new_id as random_id
from aip_hermes.secret import Secret

__all__ = ["ROUTES", "build_app"]

log = structlog.get_logger(__name__)

Handler = Callable[[Endpoint, Request], Awaitable[Response]]

ROUTES: Final[Mapping[str, Mapping[str, Handler]]] = {
    "/health": {"GET": reads.health},
    "/v1/health": {"GET": reads.health},
    "/health/detailed": {"GET": reads.health_detailed},
    "/v1/models": {"GET": reads.models},
    "/v1/capabilities": {"GET": reads.capabilities},
    "/v1/skills": {"GET": listings.skills},
    "/v1/toolsets": {"GET": listings.toolsets},
    "/api/sessions": {"GET": sessions.listed, "POST": sessions.create},
    "/api/sessions/{session_id}": {"GET": sessions.read, "PATCH": sessions.change, "DELETE": sessions.delete},
    "/api/sessions/{session_id}/messages": {"GET": sessions.messages},
    "/api/sessions/{session_id}/fork": {"POST": sessions.fork},
    "/api/sessions/{session_id}/chat": {"POST": chat.chat},
    "/api/jobs": {"GET": jobs.listed, "POST": jobs.create},
    "/api/jobs/{job_id}": {"GET": jobs.read, "PATCH": jobs.change, "DELETE": jobs.delete},
    "/api/jobs/{job_id}/pause": {"POST": jobs.pause},
    "/api/jobs/{job_id}/resume": {"POST": jobs.resume},
    "/api/jobs/{job_id}/run": {"POST": jobs.run_now},
}
"""Path → method → handler. Only liveness is open; everything else wants the key."""

_OPEN: Final = frozenset({"/health", "/v1/health"})


def build_app(
    *,
    db: SessionDB,
    model: Model,
    key: Secret,
    quirks: Iterable[str] = (),
    model_name: str = "hermes-agent",
    clock: Clock | None = None,
    new_id: NewId | None = None,
) -> Starlette:
    """Return the ASGI application of one endpoint.

    db, model: borrowed; who opened them closes them, after the application's lifespan has ended. Ending the lifespan
    stops running turns, whose user rows stay. key: at least 16 characters. quirks: names of QUIRKS.
    Raises ValueError for an unknown quirk, UnsafeKey for a weak key.
    """
    check_key_strength(key)
    moments = clock or SystemClock()
    turns = Turns(db=db, model=model)
    endpoint = Endpoint(
        db=db,
        jobs=JobStore(db),
        turns=turns,
        key=key,
        quirks=chosen_quirks(quirks),
        model_name=model_name,
        clock=moments,
        new_id=new_id or random_id,
        started_at_ms=moments.now_ms(),
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await turns.aclose()

    app = Starlette(
        routes=[_route(endpoint, path, handlers) for path, handlers in ROUTES.items()],
        middleware=[Middleware(Frame)],
        exception_handlers={HTTPException: _unrouted},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def _route(endpoint: Endpoint, path: str, handlers: Mapping[str, Handler]) -> Route:
    async def answer(request: Request) -> Response:
        try:
            if path not in _OPEN:
                check_key(endpoint, request)
            return await handlers[request.method](endpoint, request)
        except Refusal as refusal:
            return refusal.answer
        except Exception as exc:  # the outermost place: every failure gets its answer here
            return _failure(exc)

    route = Route(path, answer, methods=list(handlers))
    # Starlette lets HEAD follow GET; Hermes answers 405.
    route.methods = set(handlers)
    return route


def _failure(exc: Exception) -> Response:
    match exc:
        case UnknownSession():
            refusal = Refusal(404, f"Session not found: {exc.session_id}", code=HermesCode.SESSION_NOT_FOUND)
        case SessionExists():
            refusal = Refusal(409, str(exc), code=HermesCode.SESSION_EXISTS)
        case TitleRefused():
            refusal = Refusal(400, str(exc), code=HermesCode.INVALID_TITLE)
        case TurnInProgress():
            refusal = Refusal(409, "A turn of this session is running", code=HermesCode.TURN_IN_PROGRESS)
        case ModelFailed():
            refusal = Refusal(502, f"Model failed: {exc}", code=HermesCode.MODEL_FAILED)
        case ReplyNotStored():
            refusal = Refusal(500, "The reply could not be stored", code=HermesCode.REPLY_NOT_STORED)
        case StoreFailure() | HistoryUnreadable():
            log.warning("embedded.store_unavailable", cause=type(exc).__name__, reason=str(exc))
            refusal = Refusal(503, "Session database unavailable", code=HermesCode.SESSION_DB_UNAVAILABLE)
        case _:
            log.exception("embedded.unforeseen")
            return plain_failure()
    return refusal.answer


async def _unrouted(_request: Request, exc: Exception) -> Response:
    if not isinstance(exc, HTTPException):
        return plain_failure()
    text = f"{exc.status_code}: {HTTPStatus(exc.status_code).phrase}"
    return Response(text, status_code=exc.status_code, headers=exc.headers, media_type="text/plain")
