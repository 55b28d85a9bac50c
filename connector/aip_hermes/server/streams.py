"""What happened: of one action or of all that a caller may see, in pages or frames; and the request to cancel.

A page waits for its first entry where `wait_ms` says so. Source: AIP HTTP surface §5.2, §6, §7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.ids import ActionId
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES
from aip_hermes.runtime.failures import MemberRefused
from aip_hermes.server.body import check_content_type, parse_json, read_limited
from aip_hermes.server.following import CHUNK_KIND, FOLLOWED_BYTES, Portion, Reader, following
from aip_hermes.server.gateway import Gateway, check_tenant, noted
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response
from aip_hermes.server.waiting import LOOK_S, until

__all__ = ["LOOK_S", "Streams"]

MAX_REASON: Final = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """One reader's wish. action_id: None for the whole log. kinds: empty for all."""

    action_id: ActionId | None
    caller: Caller
    cursor: str | None
    limit: int | None
    kinds: tuple[str, ...]
    include_chunks: bool
    max_bytes: int
    follow: bool
    wait_ms: int | None


class Streams:
    """Events and chunks, as pages and as streams; cancellation of one action."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def events(self, request: Request) -> Response:
        """Answer events of an action, with chunks where they are asked for."""
        return await self._answer(self._asked(request, chunks_only=False))

    async def chunks(self, request: Request) -> Response:
        """Answer chunks of an action and their events."""
        return await self._answer(self._asked(request, chunks_only=True))

    async def log(self, request: Request) -> Response:
        """Answer the events of all actions that the caller may see."""
        return await self._answer(self._asked(request, chunks_only=False, whole_log=True))

    async def cancel(self, request: Request) -> Response:
        """Cancel; the body is empty or `{"reason": text or null}`."""
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        noted(request)["action_id"] = action_id[:128]
        reason = await self._reason(request)
        result = await self._gateway.runtime.cancel(action_id, caller, reason=reason)
        return json_response({"action_result": result.wire()})

    def _asked(self, request: Request, *, chunks_only: bool, whole_log: bool = False) -> _Asked:
        caller = self._gateway.authenticate(request)
        action_id = None if whole_log else path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        check_tenant(query.text("tenant_id"), caller)
        single = query.text("kind")
        kinds = {*query.choices("kinds"), *([single] if single else [])}
        last_event_id = request.headers.get("last-event-id", "").strip()
        follow = query.flag("follow")
        return _Asked(
            action_id=action_id,
            caller=caller,
            cursor=query.text("cursor") or last_event_id or None,
            limit=query.limit(at_most=MAX_LIST_LIMIT),
            kinds=(CHUNK_KIND,) if chunks_only else tuple(sorted(kinds)),
            include_chunks=query.flag("include_chunks") or chunks_only,
            max_bytes=FOLLOWED_BYTES if follow else MAX_PAGE_BYTES,
            follow=follow,
            wait_ms=query.wait_ms(),
        )

    async def _answer(self, asked: _Asked) -> Response:
        runtime, clock = self._gateway.runtime, self._gateway.clock
        if asked.action_id is None:
            changed = partial(runtime.watching_log, asked.caller)
        else:
            changed = partial(runtime.watching, asked.action_id, asked.caller)
        if asked.follow:
            # The first page decides status and error shape.
            first = await self._portion(asked, asked.cursor)
            return following(Reader(read=partial(self._portion, asked), changed=changed, clock=clock), first)
        page = await until(
            partial(self._portion, asked, asked.cursor),
            enough=lambda found: bool(found.events or found.chunks) or found.ended is not None,
            changed=changed,
            wait_ms=asked.wait_ms,
            clock=clock,
        )
        return json_response(_body(asked, page))

    async def _portion(self, asked: _Asked, cursor: str | None) -> Portion:
        if asked.action_id is None:
            log = await self._gateway.runtime.records.events(
                asked.caller, cursor=cursor, limit=asked.limit, kinds=asked.kinds, max_bytes=asked.max_bytes
            )
            return Portion(events=log.events, chunks=[], cursor=log.next_cursor or "", ended=None)
        page = await self._gateway.runtime.events(
            asked.action_id,
            asked.caller,
            cursor=cursor,
            limit=asked.limit,
            kinds=asked.kinds,
            include_chunks=asked.include_chunks,
            max_bytes=asked.max_bytes,
        )
        ended = {"terminal": True, "action_id": asked.action_id} if page.terminal else None
        return Portion(events=page.events, chunks=page.chunks, cursor=page.cursor or "", ended=ended)

    async def _reason(self, request: Request) -> str | None:
        data = await read_limited(
            request.stream(),
            announced=request.headers.get("content-length"),
            max_bytes=self._gateway.max_request_bytes,
        )
        if not data.strip():
            return None
        check_content_type(request.headers)
        body = parse_json(data)
        reason = body.get("reason") if isinstance(body, dict) else body
        fits = reason is None or (isinstance(reason, str) and len(reason.strip()) > 0 and len(reason) <= MAX_REASON)
        if not isinstance(body, dict) or set(body) - {"reason"} or not fits:
            raise MemberRefused(
                f'the body of a cancel is empty or {{"reason": a text of at most {MAX_REASON} characters, or null}}'
            )
        return reason.strip() if isinstance(reason, str) else None


def _body(asked: _Asked, page: Portion) -> dict[str, object]:
    if asked.action_id is None:
        return {"event_stream": wire.EventStream(events=list(page.events), next_cursor=page.cursor).wire()}
    events = wire.ActionEvents(
        action_id=asked.action_id,
        events=list(page.events),
        chunks=list(page.chunks),
        cursor=page.cursor,
        terminal=page.ended is not None,
    )
    return {"action_events": events.wire()}
