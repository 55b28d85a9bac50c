"""The run routes: start, status, events, approval, stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.agent import Order
from aip_hermes.embedded.agent.events import CHOICES, Choice
from aip_hermes.embedded.agent.runs import ApprovalNotActive, ApprovalNotPending, Run
from aip_hermes.embedded.api.answers import JsonAnswer, Refusal
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.openai_input import asked_model, response_input, run_session_id
from aip_hermes.embedded.api.requests import json_object, session_key
from aip_hermes.embedded.api.streams import EventStream, Feed
from aip_hermes.hermes_api import HermesCode

__all__ = ["approve", "events", "start", "status", "stop"]

_MEANINGS: Final[Mapping[str, Choice]] = {
    **{choice: choice for choice in CHOICES},
    "approve": "once",
    "approved": "once",
    "allow": "once",
}


async def start(endpoint: Endpoint, request: Request) -> Response:
    """POST /v1/runs: 202 at once. The model reads the history that was sent, or the previous response's."""
    endpoint.turns.check_capacity()
    scope = session_key(request)
    body = await json_object(request)
    wanted = response_input(body)
    run_id = endpoint.new_id("run_")
    history, instructions = wanted.history, wanted.system
    if wanted.previous_id:
        before = await endpoint.responses.use(wanted.previous_id)
        if before is None:
            raise Refusal(404, f"Previous response not found: {wanted.previous_id}")
        history = before.history if history is None else history
        instructions = instructions or before.instructions
    order = Order(
        session_id=run_session_id(body) or run_id,
        content=wanted.content,
        stored_text=wanted.stored_text,
        system_message=instructions,
        history=wanted.cut(history or []),
        create=True,
    )
    endpoint.runs.start(run_id, order, model=asked_model(body, endpoint.model_name))
    headers = {} if scope is None else {"X-Hermes-Session-Key": scope}
    return JsonAnswer({"run_id": run_id, "status": "started"}, status=202, headers=headers)


async def status(endpoint: Endpoint, request: Request) -> Response:
    """GET a run."""
    return JsonAnswer(_run(endpoint, request).shown)


async def events(endpoint: Endpoint, request: Request) -> Response:
    """GET …/events: what was told since the start, then what is told; to one reader."""
    run = _run(endpoint, request)
    feed = Feed(endpoint.clock)

    def take(event: dict[str, Any] | None) -> None:
        if event is not None:
            feed.add(event)
        else:
            feed.remark("stream closed")
            feed.end()

    run.read(take)
    return EventStream(feed, on_leave=run.leave)


async def approve(endpoint: Endpoint, request: Request) -> Response:
    """POST …/approval: answer what the run asks."""
    run = _run(endpoint, request)
    body = await json_object(request)
    wanted = str(body.get("choice")).strip().lower()
    if wanted not in _MEANINGS:
        message = f"Invalid approval choice; expected one of: {', '.join(CHOICES)}"
        raise Refusal(400, message, code=HermesCode.INVALID_APPROVAL_CHOICE)
    choice = _MEANINGS[wanted]
    try:
        resolved = run.answer(choice)
    except ApprovalNotActive:
        message = f"The run is over: {run.run_id}"
        raise Refusal(409, message, code=HermesCode.APPROVAL_NOT_ACTIVE) from None
    except ApprovalNotPending:
        message = f"The run asks nothing: {run.run_id}"
        raise Refusal(409, message, code=HermesCode.APPROVAL_NOT_PENDING) from None
    shown: dict[str, Any] = {"object": "hermes.run.approval_response", "run_id": run.run_id, "choice": choice}
    return JsonAnswer(shown | {"resolved": resolved})


async def stop(endpoint: Endpoint, request: Request) -> Response:
    """POST …/stop: the run is cancelled within moments; a run that is over is unknown."""
    run = _run(endpoint, request)
    run.stop()
    return JsonAnswer({"run_id": run.run_id, "status": "stopping"})


def _run(endpoint: Endpoint, request: Request) -> Run:
    return endpoint.runs.find(str(request.path_params["run_id"]))
