"""One turn with a JSON answer."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.agent import Order
from aip_hermes.embedded.api.answers import JsonAnswer, session_headers, usage_object
from aip_hermes.embedded.api.compressing import demanded_compression
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.embedded.api.message_input import turn_input
from aip_hermes.embedded.api.requests import json_object, path_session_id, session_key
from aip_hermes.embedded.api.sessions import existing_row

__all__ = ["chat"]


async def chat(endpoint: Endpoint, request: Request) -> Response:
    """POST …/chat: one turn on the row, or on its continuation after a compression.

    The answer names the row that holds the turn, in the body and in `X-Hermes-Session-Id`. A closed row takes turns and
    stays closed. A memory scope in `X-Hermes-Session-Key` is echoed; there is no memory behind it here.
    """
    scope = session_key(request)
    session_id = path_session_id(request)
    await existing_row(endpoint, session_id)
    wanted = turn_input(await json_object(request))
    turn = await endpoint.turns.run(
        Order(
            session_id=session_id,
            content=wanted.content,
            stored_text=wanted.stored_text,
            system_message=wanted.system_message,
            habits=endpoint.habits,
            compression=demanded_compression(endpoint, request),
        )
    )
    return JsonAnswer(
        {
            "object": "hermes.session.chat.completion",
            "session_id": turn.session_id,
            "message": {"role": "assistant", "content": turn.text},
            "usage": usage_object(turn.usage),
        },
        headers=session_headers(turn.session_id, scope),
    )
