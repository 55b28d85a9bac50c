"""Responses in OpenAI's form: chained by the previous one or by a named conversation, and kept for later.

Two requests of one conversation follow each other. What was asked for is answered, and kept, whether or not its client
stays: a client that left reads it with GET.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent import Order, ReplyNotStored, TurnResult
from aip_hermes.embedded.api.answers import JsonAnswer, Refusal, header_refusal, session_headers
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.openai_input import Exchange, asked_model, flag, response_input
from aip_hermes.embedded.api.repeats import fingerprint
from aip_hermes.embedded.api.requests import json_object, session_key
from aip_hermes.embedded.api.response_story import ResponseStory, response_object
from aip_hermes.embedded.api.streams import EventStream
from aip_hermes.embedded.session_db import StoredResponse

__all__ = ["create", "delete", "read"]

_SAME: Final = (
    "model", "input", "instructions", "previous_response_id", "conversation", "conversation_history", "store",
    "truncation", "tools", "tool_choice", "stream",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class _Chain:
    """session_id: the row of the chain. history, instructions: what was before."""

    session_id: str
    history: list[dict[str, Any]]
    instructions: str | None


async def create(endpoint: Endpoint, request: Request) -> Response:
    """POST /v1/responses."""
    endpoint.turns.check_capacity()
    scope = session_key(request)
    body = await _body(request)
    wanted = response_input(body)
    model = asked_model(body, endpoint.model_name)
    if flag(body.get("stream")):
        return await _streamed(endpoint, wanted, model, scope)

    async def response_to_keep() -> StoredResponse:
        # What a key keeps for minutes is the answer, not all that the model read.
        return replace(await _exchange(endpoint, wanted, ResponseStory(endpoint, model)), history=[])

    def start() -> asyncio.Task[StoredResponse]:
        endpoint.turns.check_capacity()
        return endpoint.turns.start(response_to_keep())

    stored, repeated = await endpoint.repeats.once(request, fingerprint("responses", body, _SAME), start)
    if repeated:
        stored = await _again(endpoint, stored)
    return JsonAnswer(stored.document, headers=session_headers(stored.session_id, scope))


async def read(endpoint: Endpoint, request: Request) -> Response:
    """GET a kept response."""
    response_id = str(request.path_params["response_id"])
    stored = await endpoint.responses.use(response_id)
    if stored is None:
        raise _unknown(response_id)
    return JsonAnswer(stored.document)


async def delete(endpoint: Endpoint, request: Request) -> Response:
    """DELETE a kept response; the rows of its session stay."""
    response_id = str(request.path_params["response_id"])
    if not await endpoint.responses.delete(response_id):
        raise _unknown(response_id)
    return JsonAnswer({"id": response_id, "object": "response", "deleted": True})


async def _streamed(endpoint: Endpoint, wanted: Exchange, model: str, scope: str | None) -> Response:
    story = ResponseStory(endpoint, model, streamed=True)
    endpoint.turns.check_capacity()
    task = endpoint.turns.start(_told(endpoint, wanted, story))
    # The session, or why there is none, is known before the first event.
    either: set[asyncio.Future[Any]] = {task, story.session_id}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not story.session_id.done():
        await task
    return EventStream(story.feed, headers=session_headers(await story.session_id, scope))


async def _told(endpoint: Endpoint, wanted: Exchange, story: ResponseStory) -> None:
    try:
        await _exchange(endpoint, wanted, story)
    except Exception as exc:
        if not story.session_id.done():
            raise
        # The outermost place of a stream: every failure becomes its event.
        story.fail(exc)
    finally:
        story.feed.end()


async def _exchange(endpoint: Endpoint, wanted: Exchange, story: ResponseStory) -> StoredResponse:
    async with AsyncExitStack() as locks:
        if wanted.conversation:
            await locks.enter_async_context(endpoint.conversations.alone(wanted.conversation))
        chain = await _chain(endpoint, wanted)
        story.begin(chain.session_id)
        instructions = wanted.system or chain.instructions
        order = Order(
            session_id=chain.session_id,
            content=wanted.content,
            stored_text=wanted.stored_text,
            system_message=instructions,
            history=wanted.cut(chain.history if wanted.history is None else wanted.history),
            create=True,
            listener=story.hear,
        )
        turn = await endpoint.turns.take(order)
        stored = _stored(story, turn, instructions)
        if wanted.store:
            await _keep(endpoint, stored, wanted.conversation)
        story.complete(stored.document)
        return stored


async def _chain(endpoint: Endpoint, wanted: Exchange) -> _Chain:
    before = None
    if wanted.previous_id:
        before = await endpoint.responses.use(wanted.previous_id)
        if before is None:
            raise Refusal(404, f"Previous response not found: {wanted.previous_id}")
    elif wanted.conversation:
        before = await endpoint.responses.end_of(wanted.conversation)
    if before is None:
        return _Chain(session_id=str(UUID(hex=endpoint.new_id(""))), history=[], instructions=None)
    return _Chain(session_id=before.session_id, history=before.history, instructions=before.instructions)


def _stored(story: ResponseStory, turn: TurnResult, instructions: str | None) -> StoredResponse:
    return StoredResponse(
        id=story.response_id,
        session_id=turn.session_id,
        instructions=instructions,
        history=turn.read,
        document=story.document(turn),
    )


async def _again(endpoint: Endpoint, stored: StoredResponse) -> StoredResponse:
    """Return the same response under an id of its own, kept where the first one still is."""
    new_id = response_object(endpoint, "")["id"]
    document = stored.document | {"id": new_id}
    first = await endpoint.responses.use(stored.id)
    if first is not None:
        await endpoint.responses.keep(replace(first, id=new_id, document=document), conversation=None)
    return replace(stored, id=new_id, document=document)


async def _keep(endpoint: Endpoint, stored: StoredResponse, conversation: str | None) -> None:
    try:
        await endpoint.responses.keep(stored, conversation=conversation)
    except StoreFailure as exc:
        raise ReplyNotStored from exc


async def _body(request: Request) -> dict[str, Any]:
    try:
        return await json_object(request)
    except Refusal as refusal:
        raise header_refusal(str(refusal)) from None


def _unknown(response_id: str) -> Refusal:
    return Refusal(404, f"Response not found: {response_id}")
