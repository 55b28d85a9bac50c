"""What each fault does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from starlette.responses import HTMLResponse
from starlette.types import Message, Receive, Scope, Send

from aip_hermes.database import StoreUnavailable
from aip_hermes.embedded.faults.exchange import COMPRESSION, LATE_S, Exchange

__all__ = ["Deed", "after"]

Deed = Callable[[Exchange], Awaitable[None]]

_TERMINAL: Final = re.compile(
    rb"^(?:event: (?:run\.completed|response\.(?:completed|failed)|error|done)$"
    rb'|data: \{"event": "run\.(?:completed|failed|cancelled)"|data: \[DONE\]$)',
    re.MULTILINE,
)
_GATEWAY: Final = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"


async def lost_request(exchange: Exchange) -> None:
    """Nothing is carried out, the connection ends."""
    exchange.hang_up()
    await exchange.end()


async def lost_answer(exchange: Exchange) -> None:
    """Carried out, the connection ends without an answer."""
    await exchange.carried_out()
    exchange.hang_up()
    await exchange.end()


async def late_answer(exchange: Exchange) -> None:
    """Carried out at once, answered late."""
    for number, message in enumerate(await exchange.carried_out()):
        if not number:
            await exchange.clock.sleep(LATE_S)
        await exchange.send(message)


async def late_effect(exchange: Exchange) -> None:
    """The connection ends at once; the request is carried out late."""
    body = await exchange.request_body()
    exchange.hang_up()
    await exchange.clock.sleep(LATE_S)
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            # Nobody is heard to leave: a route that ends with its reader would not carry it out.
            await asyncio.Event().wait()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    await replace(exchange, receive=again).carried_out()
    await exchange.end()


async def reset_mid_body(exchange: Exchange) -> None:
    """Carried out; the connection ends in the middle of the answer's body."""
    start, *parts = await exchange.carried_out()
    body = b"".join(part.get("body", b"") for part in parts)
    await exchange.send(start)
    await exchange.send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    exchange.hang_up()
    await exchange.end()


async def html_502(exchange: Exchange) -> None:
    """Carried out; a gateway in between answers 502 with a page."""
    await exchange.carried_out()
    await HTMLResponse(_GATEWAY, status_code=502)(exchange.scope, exchange.receive, exchange.send)


async def stalled_stream(exchange: Exchange) -> None:
    """Carried out; after its first event the stream says nothing more and stays open."""
    said = False

    def change(message: Message) -> Message | None:
        nonlocal said
        if said:
            return None
        if message["type"] != "http.response.body" or not message.get("body"):
            return message
        said = True
        return {**message, "body": message["body"].partition(b"\n\n")[0] + b"\n\n", "more_body": True}

    await exchange.answered_through(change)
    await exchange.until_left()


async def no_terminal_event(exchange: Exchange) -> None:
    """Carried out; the stream ends in good order, without the events that say how the turn ended."""

    def change(message: Message) -> Message:
        if message["type"] != "http.response.body":
            return message
        blocks = message.get("body", b"").split(b"\n\n")
        return {**message, "body": b"\n\n".join(block for block in blocks if not _TERMINAL.search(block))}

    await exchange.answered_through(change)


async def locked_database(exchange: Exchange) -> None:
    """Somebody else holds the store's write lock: what writes waits for it, what only reads does not."""
    async with exchange.store_locked():
        await exchange.app(exchange.scope, exchange.receive, exchange.send)


async def refused_database(exchange: Exchange) -> None:
    """Nothing is carried out: the store can't be used."""
    refused = StoreUnavailable("the store is not available: a fault was asked for", kind="locked")
    await exchange.failed(refused)(exchange.scope, exchange.receive, exchange.send)


def after(first: Deed, then: Deed) -> Deed:
    """Return both on one request: it is carried out as `first` has it, and `then` hides what came of it."""

    async def both(exchange: Exchange) -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await first(replace(exchange, scope=scope, receive=receive, send=send))

        await then(replace(exchange, app=app))

    return both


async def compress(exchange: Exchange) -> None:
    """The turn begins with a rotating compression."""
    await _with_compression(exchange, "rotating")


async def compress_in_place(exchange: Exchange) -> None:
    """The turn begins with a compression that keeps the id."""
    await _with_compression(exchange, "in-place")


async def _with_compression(exchange: Exchange, how: str) -> None:
    await exchange.app({**exchange.scope, COMPRESSION: how}, exchange.receive, exchange.send)
