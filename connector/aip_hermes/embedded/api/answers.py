"""Answers: JSON as Hermes writes it, and refusals that carry theirs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from aip_hermes.hermes_api import HermesCode, error_body, header_error_body, message_object, unauthorized_body

__all__ = ["JsonAnswer", "Refusal", "header_refusal", "plain_failure", "transcript_answer", "unauthorized"]

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
    ) -> None:
        super().__init__(message)
        kind = "server_error" if status in (500, 502) else "invalid_request_error"
        self.answer = JsonAnswer(body or error_body(message, code=code, param=param, type=kind), status=status)


def unauthorized() -> Refusal:
    """Return the 401, the same whatever was wrong."""
    body = unauthorized_body()
    return Refusal(401, body["error"]["message"], body=body)


def header_refusal(message: str) -> Refusal:
    """Return the 400 for a bad session header."""
    return Refusal(400, message, body=header_error_body(message))


def plain_failure() -> Response:
    """Return what stands for a failure that nobody foresaw."""
    return Response(
        "500 Internal Server Error\n\nServer got itself in trouble", status_code=500, media_type="text/plain"
    )


async def transcript_answer(session_id: str, rows: list[dict[str, Any]]) -> Response:
    """Return the list of message objects for `rows`, which are used up.

    A large list is made beside the event loop and sent piece by piece: made, sent or freed in one go it would hold up
    every other request.
    """
    if len(rows) <= _INLINE_ROWS:
        return JsonAnswer({"object": "list", "session_id": session_id, "data": [message_object(row) for row in rows]})
    head = json.dumps({"object": "list", "session_id": session_id})[:-1] + ', "data": ['
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
