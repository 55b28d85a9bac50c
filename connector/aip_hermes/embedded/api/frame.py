"""What surrounds every route: browsers are kept out, large bodies refused, paths routed as they were sent."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aip_hermes.embedded.api.answers import Refusal
from aip_hermes.embedded.api.requests import MAX_BODY_BYTES
from aip_hermes.hermes_api import HermesCode

__all__ = ["Frame"]

_SECURITY: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Frame:
    """An ASGI app around the routes.

    A request with an `Origin`, and any OPTIONS, gets an empty 403: no page may call this endpoint. A `Content-Length`
    over the limit gets 413 before the key is looked at. The path is routed with its percent-encoding, one spelling per
    segment, so that an encoded slash stays inside its segment.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if headers.get("origin") or scope["method"] == "OPTIONS":
            await Response(status_code=403)(scope, receive, send)
            return
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and (len(length) > 20 or int(length) > MAX_BODY_BYTES):
            refusal = Refusal(413, "Request body too large.", code=HermesCode.BODY_TOO_LARGE)
            await refusal.answer(scope, receive, send)
            return

        async def send_with_security(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SECURITY)
            await send(message)

        await self._app({**scope, "path": _encoded_path(scope)}, receive, send_with_security)


def _encoded_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
    segments = raw.split(b"?")[0].decode("latin-1").split("/")
    return "/".join(quote(unquote_to_bytes(segment), safe="") for segment in segments)
