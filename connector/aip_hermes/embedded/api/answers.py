"""Answers: JSON as Hermes writes it, and refusals that carry theirs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from aip_hermes.embedded.session_db import Usage
from aip_hermes.hermes_api import HermesCode, error_body, header_error_body, message_object, unauthorized_body

__all__ = [
    "JsonAnswer",
    "Refusal",
    "header_refusal",
    "plain_failure",
    "session_headers",
    "transcript_answer",
    "unauthorized",
    "usage_object",
]

_INLINE_ROWS: Final = 200


class JsonAnswer(Response):
    """ASCII JSON, so that lone surrogates and anything else survive every client."""

    media_type = "application/json; charset=utf-8"

    def __init__(self, body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(json.dumps(body, allow_nan=False).encode("ascii"), status_code=status, headers=headers)


class Refusal(Exception):
    """The request is answered with this error and has changed nothing, unless the code says otherwise."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: HermesCode | None = None,
        param: str | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        kind = {429: "rate_limit_error", 500: "server_error", 502: "server_error"}.get(status, "invalid_request_error")
        self.code = None if code is None else code.value
        self.answer = JsonAnswer(
            body or error_body(message, code=code, param=param, type=kind), status=status, headers=headers
        )


def unauthorized() -> Refusal:
    """Return the 401, the same whatever was wrong."""
    body = unauthorized_body()
    return Refusal(401, body["error"]["message"], body=body)


def header_refusal(message: str) -> Refusal:
    """Return the 400 for a bad session header, and for a few bad bodies: two members, no code."""
    return Refusal(400, message, body=header_error_body(message))


def plain_failure() -> Response:
    """Return what stands for a failure that nobody foresaw."""
    return Response(
        "500 Internal Server Error\n\nServer got itself in trouble", status_code=500, media_type="text/plain"
    )


def session_headers(session_id: str, scope: str | None) -> dict[str, str]:
    """Return the headers of a turn: the id of its row, and the memory scope as it came."""
    # Headers carry UTF-8 bytes; control characters that a create accepts (tab, ESC) can't travel there.
    text = session_id.encode("utf-8").decode("latin-1")
    headers = {"X-Hermes-Session-Id": "".join(c for c in text if c >= " " and c != "\x7f")}
    return headers if scope is None else headers | {"X-Hermes-Session-Key": scope}


def usage_object(usage: Usage) -> dict[str, int]:
    """Return the three counts of a turn."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


async def transcript_answer(
    session_id: str, rows: list[dict[str, Any]], page: Mapping[str, int] | None = None
) -> Response:
    """Return the list of message objects for `rows`, which are used up. page: further members, which place the list.

    A large list is made beside the event loop and sent piece by piece: made, sent or freed in one go it would hold up
    every other request.
    """
    frame = {"object": "list", "session_id": session_id, **(page or {})}
    if len(rows) <= _INLINE_ROWS:
        return JsonAnswer(frame | {"data": [message_object(row) for row in rows]})
    head = json.dumps(frame)[:-1] + ', "data": ['
    pieces = [head.encode("ascii"), *await asyncio.to_thread(_encoded_pieces, rows), b"]}"]
    return StreamingResponse(
        _each(pieces),
        media_type=JsonAnswer.media_type,
        headers={"content-length": str(sum(len(piece) for piece in pieces))},
    )


def _encoded_pieces(rows: list[dict[str, Any]]) -> list[bytes]:
    pieces: list[bytes] = []
    rows.reverse()
    while rows:
        piece = ", ".join(
            json.dumps(message_object(rows.pop()), allow_nan=False) for _ in range(min(_INLINE_ROWS, len(rows)))
        )
        pieces.append((piece + ", " if rows else piece).encode("ascii"))
    return pieces


async def _each(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
