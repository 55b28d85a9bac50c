"""The session routes: list, create, read, change, delete, transcript, fork."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes.embedded.api.answers import JsonAnswer, Refusal, transcript_answer
from aip_hermes.embedded.api.endpoint import FORK_CHILD_RESOLVES, FORK_NOT_ATOMIC, UNCHECKED_FORK_ID, Endpoint
from aip_hermes.embedded.api.forks import fork_in_steps
from aip_hermes.embedded.api.requests import json_object, number, path_session_id, query_text, truthy
from aip_hermes.hermes_api import (
    MAX_SESSION_ID_CHARS,
    HermesCode,
    generated_session_id,
    list_entry,
    refused_new_id,
    session_object,
)

__all__ = ["change", "create", "delete", "existing_row", "fork", "listed", "messages", "read"]

_SOURCE: Final = "api_server"
_PAGE_ROWS: Final = 50
_MOST_PAGE_ROWS: Final = 200
_MOST_OFFSET: Final = 1_000_000
_BREAKING: Final = frozenset("\r\n\0")
_CHANGEABLE: Final = frozenset({"title", "end_reason"})


async def listed(endpoint: Endpoint, request: Request) -> Response:
    """GET /api/sessions: newest activity first. `has_more` says that the page is full."""
    limit = number(request, "limit", default=_PAGE_ROWS, most=_MOST_PAGE_ROWS)
    offset = number(request, "offset", default=0, most=_MOST_OFFSET)
    rows = await endpoint.db.list_sessions_rich(
        query_text(request, "source") or None,
        limit=limit,
        offset=offset,
        include_children=truthy(request, "include_children"),
        order_by_last_active=True,
        compact_rows=True,
    )
    data = [list_entry(row) for row in rows]
    return JsonAnswer(
        {"object": "list", "data": data, "limit": limit, "offset": offset, "has_more": len(data) == limit}
    )


async def create(endpoint: Endpoint, request: Request) -> Response:
    """POST /api/sessions: id free, row and title in one transaction."""
    body = await json_object(request)
    session_id = _new_id(endpoint, body)
    prompt = body.get("system_prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise Refusal(400, "system_prompt must be a string", code=HermesCode.INVALID_SYSTEM_PROMPT)
    row = await endpoint.db.create_absent_session(
        session_id,
        _SOURCE,
        title=body.get("title"),
        model=str(body.get("model") or endpoint.model_name),
        system_prompt=prompt,
    )
    return _session(row, status=201)


async def read(endpoint: Endpoint, request: Request) -> Response:
    """GET one row by its exact id; continuations are not followed."""
    return _session(await existing_row(endpoint, path_session_id(request)))


async def change(endpoint: Endpoint, request: Request) -> Response:
    """PATCH title and end reason in one transaction. A key besides these, or a bad title, changes nothing."""
    session_id = path_session_id(request)
    await existing_row(endpoint, session_id)
    body = await json_object(request)
    if unknown := sorted(body.keys() - _CHANGEABLE):
        message = f"Unsupported session fields: {', '.join(unknown)}"
        raise Refusal(400, message, code=HermesCode.UNSUPPORTED_SESSION_FIELD)
    return _session(await endpoint.db.change_session(session_id, body))


async def delete(endpoint: Endpoint, request: Request) -> Response:
    """DELETE the row with its transcript; refused while a turn of it runs, so that no turn brings it back."""
    session_id = path_session_id(request)
    await existing_row(endpoint, session_id)
    async with endpoint.turns.undisturbed(session_id):
        deleted = await endpoint.db.delete_session(session_id)
    return JsonAnswer({"object": "hermes.session.deleted", "id": session_id, "deleted": deleted})


async def messages(endpoint: Endpoint, request: Request) -> Response:
    """GET the transcript of the row, or of its continuation after a compression; never of a fork.

    A query with `limit` or `offset` gets one page (an extension: 0.19.0 reads neither), as numbers of the session list;
    `total` counts all rows and `has_more` says that some follow.
    """
    session_id = path_session_id(request)
    await existing_row(endpoint, session_id)
    resolved = await endpoint.db.resolve_resume_session_id(
        session_id, through_unmarked=FORK_CHILD_RESOLVES in endpoint.quirks
    )
    if not request.query_params.keys() & {"limit", "offset"}:
        return await transcript_answer(resolved, await endpoint.db.get_messages(resolved))
    limit = number(request, "limit", default=_PAGE_ROWS, most=_MOST_PAGE_ROWS)
    offset = number(request, "offset", default=0, most=_MOST_OFFSET)
    rows, total = await endpoint.db.get_message_page(resolved, limit=limit, offset=offset)
    page = {"limit": limit, "offset": offset, "total": total, "has_more": offset + len(rows) < total}
    return await transcript_answer(resolved, rows, page)


async def fork(endpoint: Endpoint, request: Request) -> Response:
    """POST …/fork: source ended, child made, copied and titled in one transaction; ids by the rules of create."""
    source_id = path_session_id(request)
    await existing_row(endpoint, source_id)
    body = await json_object(request)
    child_id = _new_id(endpoint, body, checked=UNCHECKED_FORK_ID not in endpoint.quirks)
    title = body.get("title")
    if FORK_NOT_ATOMIC in endpoint.quirks:
        row = await fork_in_steps(endpoint, source_id=source_id, child_id=child_id, title=title)
    else:
        row = await endpoint.db.fork_session(
            source_id,
            child_id,
            title=title,
            automatic_title=title is None,
            source=_SOURCE,
            marked=FORK_CHILD_RESOLVES not in endpoint.quirks,
        )
    return _session(row, status=201)


async def existing_row(endpoint: Endpoint, session_id: str) -> dict[str, Any]:
    """Return the row. Refused with 404."""
    row = await endpoint.db.get_session(session_id)
    if row is None:
        raise Refusal(404, f"Session not found: {session_id}", code=HermesCode.SESSION_NOT_FOUND)
    return row


def _new_id(endpoint: Endpoint, body: Mapping[str, Any], *, checked: bool = True) -> str:
    wanted = body.get("id") or body.get("session_id")
    if not wanted:
        return generated_session_id(now_ms=endpoint.clock.now_ms(), random_hex=endpoint.new_id(""))
    session_id = str(wanted).strip()
    if not checked and session_id and not _BREAKING.intersection(session_id):
        return session_id
    if len(session_id) > MAX_SESSION_ID_CHARS:
        raise Refusal(400, "Session ID too long", code=HermesCode.INVALID_SESSION_ID)
    if problem := refused_new_id(session_id):
        raise Refusal(400, f"Invalid session ID: {problem}", code=HermesCode.INVALID_SESSION_ID)
    return session_id


def _session(row: Mapping[str, Any], *, status: int = 200) -> JsonAnswer:
    return JsonAnswer({"object": "hermes.session", "session": session_object(row)}, status=status)
