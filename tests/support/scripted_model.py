"""A model behind HTTP, in the test's own process: it says when it is asked, and answers when it is let.

A turn whose text begins with `tools` calls the one tool twice, one call a request; every turn ends with `Reply to` and
its text.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["ScriptedModel", "call_id", "reply_to", "scripted_model"]

CALLS = 2


def reply_to(text: str) -> str:
    """Return how the turn with this text ends."""
    return f"Reply to {text}"


def call_id(text: str, number: int) -> str:
    """Return the id of a turn's `number`th tool call."""
    return f"{text}-call-{number}"


class ScriptedModel:
    """asked: awaited before each answer with the turn's text and how many tool results the request holds."""

    def __init__(self) -> None:
        self.asked: Callable[[str, int], Awaitable[None]] = _at_once
        self.requests = 0

    async def answer(self, request: Request) -> Response:
        self.requests += 1
        messages = (await request.json())["messages"]
        text, results = _turn(messages)
        await self.asked(text, results)
        message: dict[str, Any] = {"content": reply_to(text)}
        if text.startswith("tools") and results < CALLS:
            function = {"name": "record_command", "arguments": json.dumps({"command": f"echo {results}"})}
            message = {"tool_calls": [{"id": call_id(text, results), "type": "function", "function": function}]}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


async def _at_once(text: str, results: int) -> None:
    """Answer at once."""


def _turn(messages: list[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the last user message and the tool results behind it."""
    place = max(number for number, message in enumerate(messages) if message["role"] == "user")
    # A turn that was killed has left its question: the repaired history joins it with the next one.
    text = str(messages[place]["content"]).rpartition("\n\n")[2]
    return text, sum(message["role"] == "tool" for message in messages[place:])


@asynccontextmanager
async def scripted_model() -> AsyncIterator[tuple[ScriptedModel, str]]:
    """Yield a model that is served on a free loopback port, and its address."""
    model = ScriptedModel()
    app = Starlette(routes=[Route("/v1/chat/completions", model.answer, methods=["POST"])])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        server.config.timeout_graceful_shutdown = 1
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield model, f"http://127.0.0.1:{port}/v1"
        finally:
            server.should_exit = True
            await serving
