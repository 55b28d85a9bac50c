"""The HTTP surface of the embedded Hermes: one table of routes, one table of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aip_hermes.embedded.agent import Model, Turns
from aip_hermes.embedded.agent.queues import Queues
from aip_hermes.embedded.agent.runs import Runs
from aip_hermes.embedded.agent.windows import Window
from aip_hermes.embedded.api import chat, chat_stream, completions, jobs, listings, reads, responses, runs, sessions
from aip_hermes.embedded.api.answers import Refusal, plain_failure
from aip_hermes.embedded.api.endpoint import Endpoint, chosen_quirks
from aip_hermes.embedded.api.failures import failure_answer
from aip_hermes.embedded.api.faulty import Application, planned_faults
from aip_hermes.embedded.api.frame import Frame
from aip_hermes.embedded.api.repeats import Repeats
from aip_hermes.embedded.api.requests import check_key
from aip_hermes.embedded.listen import check_key_strength
from aip_hermes.embedded.session_db import JobStore, ResponseStore, SessionDB
from aip_hermes.ports import Clock, NewId, SystemClock
from aip_hermes.ports import new_id as random_id
from aip_hermes.secret import Secret

__all__ = ["ROUTES", "build_app"]

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
    "/api/sessions/{session_id}/chat/stream": {"POST": chat_stream.chat_stream},
    "/v1/chat/completions": {"POST": completions.completions},
    "/v1/responses": {"POST": responses.create},
    "/v1/responses/{response_id}": {"GET": responses.read, "DELETE": responses.delete},
    "/v1/runs": {"POST": runs.start},
    "/v1/runs/{run_id}": {"GET": runs.status},
    "/v1/runs/{run_id}/events": {"GET": runs.events},
    "/v1/runs/{run_id}/approval": {"POST": runs.approve},
    "/v1/runs/{run_id}/stop": {"POST": runs.stop},
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
    faults: Iterable[str] = (),
    model_name: str = "hermes-agent",
    max_concurrent_runs: int = 10,
    model_window: int | None = None,
    clock: Clock | None = None,
    new_id: NewId | None = None,
) -> Starlette:
    """Return the ASGI application of one endpoint.

    db, model: borrowed; who opened them closes them, after the application's lifespan has ended. Ending the lifespan
    stops running turns, whose user rows stay. key: at least 16 characters. quirks: names of QUIRKS.
    faults: `NAME:OPERATION:COUNT` each, names of FAULTS, operations as `/v1/capabilities` names them.
    max_concurrent_runs: how many turns may run when a `/v1` route starts another; 0: any number. model_window: tokens
    that the model reads; a conversation that outgrows them is compressed in place, by a summary of the model's.
    Raises ValueError for an unknown quirk or fault and a window below 1, UnsafeKey for a weak key.
    """
    check_key_strength(key)
    plan = planned_faults(faults)
    moments = clock or SystemClock()
    window = None if model_window is None else Window(tokens=model_window)
    turns = Turns(db=db, model=model, clock=moments, at_once=max_concurrent_runs, window=window)
    endpoint = Endpoint(
        db=db,
        jobs=JobStore(db),
        responses=ResponseStore(db),
        turns=turns,
        runs=Runs(turns=turns, clock=moments),
        repeats=Repeats(moments),
        conversations=Queues(),
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

    app = Application(
        routes=[_route(endpoint, path, handlers) for path, handlers in ROUTES.items()],
        middleware=[Middleware(Frame)],
        exception_handlers={HTTPException: _unrouted},
        lifespan=lifespan,
    )
    app.plan, app.endpoint = plan, endpoint
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
            return failure_answer(exc)

    route = Route(path, answer, methods=list(handlers))
    # Starlette lets HEAD follow GET; Hermes answers 405.
    route.methods = set(handlers)
    return route


async def _unrouted(_request: Request, exc: Exception) -> Response:
    if not isinstance(exc, HTTPException):
        return plain_failure()
    text = f"{exc.status_code}: {HTTPStatus(exc.status_code).phrase}"
    return Response(text, status_code=exc.status_code, headers=exc.headers, media_type="text/plain")
