"""Frames of what happens, as it happens: of one action to its end, or of a tenant's whole log without one.

A follower reads from the store page by page, woken by commits of this process and by a look every half second, so a
slow follower slows nobody. Source: AIP HTTP surface §7.2.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import StreamingResponse

from aip_hermes import sse, wire
from aip_hermes.database import StoreFailure
from aip_hermes.errors import AipError
from aip_hermes.ports import Clock
from aip_hermes.runtime.failures import RuntimeStopping
from aip_hermes.server.failures import StorageUnavailable
from aip_hermes.server.waiting import LOOK_S, first_of

__all__ = ["CHUNK_KIND", "FOLLOWED_BYTES", "Portion", "Reader", "following"]

HEARTBEAT_S: Final = 15.0
CHUNK_KIND: Final = "aip.stream.chunk"
FOLLOWED_BYTES: Final = 256 * 1024
"""What a follower is handed at a time: one that reads nothing keeps as much of the server's memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Portion:
    """One page. cursor: the position behind it. ended: what the last frame says, or None while more may come."""

    events: Sequence[wire.Event]
    chunks: Sequence[wire.StreamChunk]
    cursor: str
    ended: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Where pages come from. read: the page behind a cursor. changed: set after commits that concern the reader."""

    read: Callable[[str], Awaitable[Portion]]
    changed: Callable[[], AbstractAsyncContextManager[asyncio.Event]]
    clock: Clock


def following(reader: Reader, first: Portion) -> StreamingResponse:
    """Return the stream that begins with `first`."""
    return StreamingResponse(
        _frames_of(reader, first), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _frames_of(reader: Reader, page: Portion) -> AsyncIterator[bytes]:
    clock = reader.clock
    spoken = clock.monotonic()
    try:
        async with reader.changed() as changed:
            while True:
                cursor, ended, told = page.cursor, page.ended, _frames(page)
                # Whoever reads slowly holds the frames, and not the page that they were made of.
                del page
                if told:
                    yield told
                    spoken = clock.monotonic()
                if ended is not None:
                    yield sse.encode(_json(ended), event="aip.stream.terminal", id=cursor)
                    return
                if clock.monotonic() - spoken >= HEARTBEAT_S:
                    yield sse.comment("keep-alive")
                    spoken = clock.monotonic()
                changed.clear()
                page = await reader.read(cursor)
                # An empty page that moved on has looked at events of other kinds: more may stand behind them.
                if page.cursor == cursor and page.ended is None:
                    await first_of(changed.wait(), clock.sleep(LOOK_S))
    except StoreFailure:
        yield _failure(StorageUnavailable("the server's store can't be used now", retry_after_ms=1000))
    except AipError as exc:
        yield _failure(exc)
    except asyncio.CancelledError:
        # The server stops, or the reader left; who still listens learns that more may come elsewhere.
        yield _failure(RuntimeStopping("the server stopped; go on with the last cursor", retry_after_ms=1000))
        raise


def _frames(page: Portion) -> bytes:
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


def _failure(error: AipError) -> bytes:
    return sse.encode(_json({"error": wire.protocol_error(error).wire()}), event="aip.error")


def _json(value: Any) -> str:
    # Escaped throughout, so that a lone surrogate in a provider's text stays a legal frame.
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
