"""What happened to an action: pages, or frames as it happens; and the request to cancel it.

A follower reads from the store page by page, woken by commits of this process and by a look every half second, so a
slow follower slows nobody. Source: AIP HTTP surface §5.2, §6, §7.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from aip_hermes import sse, wire
from aip_hermes.database import StoreFailure
from aip_hermes.errors import AipError
from aip_hermes.ids import ActionId
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES
from aip_hermes.runtime.failures import MemberRefused, RuntimeStopping
from aip_hermes.server.body import check_content_type, parse_json, read_limited
from aip_hermes.server.failures import StorageUnavailable
from aip_hermes.server.gateway import Gateway, check_tenant, noted
from aip_hermes.server.messages import MAX_LIST_LIMIT
from aip_hermes.server.query import Query, path_identity
from aip_hermes.server.reply import json_response

__all__ = ["Streams"]

LOOK_S: Final = 0.5
"""How long a follower waits for a commit that another process may have made."""
HEARTBEAT_S: Final = 15.0
CHUNK_KIND: Final = "aip.stream.chunk"
MAX_REASON: Final = 1024
FOLLOWED_BYTES: Final = 256 * 1024
"""What a follower is handed at a time: one that reads nothing keeps as much of the server's memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """One reader's wish. kinds: empty for all."""

    action_id: ActionId
    caller: Caller
    cursor: str | None
    limit: int | None
    kinds: tuple[str, ...]
    include_chunks: bool
    max_bytes: int


class Streams:
    """Events, chunks and cancellation of one action."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def events(self, request: Request) -> Response:
        """Answer events, with chunks where they are asked for."""
        return await self._answer(request, chunks_only=False)

    async def chunks(self, request: Request) -> Response:
        """Answer chunks and their events."""
        return await self._answer(request, chunks_only=True)

    async def cancel(self, request: Request) -> Response:
        """Cancel; the body is empty or `{"reason": text or null}`."""
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        noted(request)["action_id"] = action_id[:128]
        reason = await self._reason(request)
        result = await self._gateway.runtime.cancel(action_id, caller, reason=reason)
        return json_response({"action_result": result.wire()})

    async def _answer(self, request: Request, *, chunks_only: bool) -> Response:
        caller = self._gateway.authenticate(request)
        action_id = path_identity(request.path_params["action_id"], ActionId, name="action_id")
        query = Query(request.scope["query_string"])
        check_tenant(query.text("tenant_id"), caller)
        single = query.text("kind")
        kinds = {*query.choices("kinds"), *([single] if single else [])}
        last_event_id = request.headers.get("last-event-id", "").strip()
        follow = query.flag("follow")
        asked = _Asked(
            action_id=action_id,
            caller=caller,
            cursor=query.text("cursor") or last_event_id or None,
            limit=query.limit(at_most=MAX_LIST_LIMIT),
            kinds=(CHUNK_KIND,) if chunks_only else tuple(sorted(kinds)),
            include_chunks=query.flag("include_chunks") or chunks_only,
            max_bytes=FOLLOWED_BYTES if follow else MAX_PAGE_BYTES,
        )
        # The first page decides status and error shape also for a follower.
        page = await self._page(asked)
        if not follow:
            return json_response({"action_events": page.wire()})
        return StreamingResponse(
            self._follow(asked, page), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _page(self, asked: _Asked) -> wire.ActionEvents:
        return await self._gateway.runtime.events(
            asked.action_id,
            asked.caller,
            cursor=asked.cursor,
            limit=asked.limit,
            kinds=asked.kinds,
            include_chunks=asked.include_chunks,
            max_bytes=asked.max_bytes,
        )

    async def _follow(self, asked: _Asked, page: wire.ActionEvents) -> AsyncIterator[bytes]:
        runtime, clock = self._gateway.runtime, self._gateway.clock
        spoken = clock.monotonic()
        try:
            async with runtime.watching(asked.action_id, asked.caller) as changed:
                while True:
                    asked, ended, told = replace(asked, cursor=page.cursor), page.terminal, _frames(page)
                    # Whoever reads slowly holds the frames, and not the page that they were made of.
                    del page
                    if told:
                        yield told
                        spoken = clock.monotonic()
                    if ended:
                        yield _terminal(asked)
                        return
                    if clock.monotonic() - spoken >= HEARTBEAT_S:
                        yield sse.comment("keep-alive")
                        spoken = clock.monotonic()
                    changed.clear()
                    page = await self._page(asked)
                    # An empty page that moved on has looked at events of other kinds: more may stand behind them.
                    if page.cursor == asked.cursor and not page.terminal:
                        await _first_of(changed.wait(), clock.sleep(LOOK_S))
        except StoreFailure:
            yield _failure(StorageUnavailable("the server's store can't be used now", retry_after_ms=1000))
        except AipError as exc:
            yield _failure(exc)
        except asyncio.CancelledError:
            # The server stops, or the reader left; who still listens learns that more may come elsewhere.
            yield _failure(RuntimeStopping("the server stopped; go on with the last cursor", retry_after_ms=1000))
            raise

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


async def _first_of(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _frames(page: wire.ActionEvents) -> bytes:
    """Return the page as frames, and the position behind them; nothing for an empty one."""
    if not (page.events or page.chunks):
        return b""
    frames = [sse.encode(_json({"event": event.wire()}), event=event.kind, id=event.id) for event in page.events]
    frames += [
        sse.encode(_json({"chunk": chunk.wire()}), event=CHUNK_KIND, id=f"chunk:{chunk.sequence}")
        for chunk in page.chunks
    ]
    frames.append(sse.encode(_json({"next_cursor": page.cursor}), event="aip.stream.cursor", id=page.cursor))
    return b"".join(frames)


def _terminal(asked: _Asked) -> bytes:
    data = {"terminal": True, "action_id": asked.action_id}
    return sse.encode(_json(data), event="aip.stream.terminal", id=asked.cursor)


def _failure(error: AipError) -> bytes:
    return sse.encode(_json({"error": wire.protocol_error(error).wire()}), event="aip.error")


def _json(value: Any) -> str:
    # Escaped throughout, so that a lone surrogate in a provider's text stays a legal frame.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
