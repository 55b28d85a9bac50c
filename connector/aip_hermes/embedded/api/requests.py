"""What the routes read of a request: key, path, body, query, session header."""

from __future__ import annotations

import hmac
import json
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect, Request

from aip_hermes.embedded.api.answers import Refusal, header_refusal, unauthorized
from aip_hermes.embedded.api.endpoint import Endpoint
from aip_hermes.hermes_api import MAX_SESSION_KEY_CHARS, HermesCode

__all__ = [
    "MAX_BODY_BYTES",
    "check_key",
    "json_object",
    "number",
    "path_session_id",
    "query_text",
    "session_key",
    "truthy",
]

MAX_BODY_BYTES: Final = 10_000_000
_TRUTHY: Final = frozenset({"1", "true", "yes", "on"})
_SCHEME: Final = "Bearer "


def check_key(endpoint: Endpoint, request: Request) -> None:
    """Refuse a request without the endpoint's key: 401. Constant time; the scheme word is case sensitive."""
    header = request.headers.get("authorization", "")
    given = header[len(_SCHEME) :].strip() if header.startswith(_SCHEME) else ""
    if not hmac.compare_digest(given.encode("latin-1"), endpoint.key.reveal().encode("utf-8")):
        raise unauthorized()


def path_session_id(request: Request) -> str:
    """Return the id of the path, percent-decoded, `%2F` included."""
    raw = unquote_to_bytes(str(request.path_params["session_id"]))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(404, "Session not found", code=HermesCode.SESSION_NOT_FOUND) from None


async def json_object(request: Request) -> dict[str, Any]:
    """Return the body. Refused with 400: no JSON, more than MAX_BODY_BYTES without a length saying so, no object."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_BODY_BYTES:
                raise _no_json()
    except ClientDisconnect:
        raise _no_json() from None
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _no_json() from None
    if not isinstance(value, dict):
        raise Refusal(400, "Request body must be a JSON object")
    return value


def session_key(request: Request) -> str | None:
    """Return the memory scope of the header as it came, None where it is absent or blank.

    Refused with 400 beyond 256 characters of UTF-8.
    """
    value = request.headers.get("x-hermes-session-key", "").strip()
    if len(value.encode("latin-1").decode("utf-8", "replace")) > MAX_SESSION_KEY_CHARS:
        raise header_refusal("Session key too long")
    return value or None


def query_text(request: Request, name: str) -> str:
    """Return a query value, the first of several; empty where there is none."""
    return next((value for key, value in request.query_params.multi_items() if key == name), "")


def number(request: Request, name: str, *, default: int, most: int) -> int:
    """Return a query number, capped; a negative one or no integer is the default."""
    try:
        value = int(query_text(request, name))
    except ValueError:
        return default
    return default if value < 0 else min(value, most)


def truthy(request: Request, name: str) -> bool:
    """Return whether a query value says yes, in any case."""
    return query_text(request, name).strip().lower() in _TRUTHY


def _no_json() -> Refusal:
    return Refusal(400, "Invalid JSON in request body")
