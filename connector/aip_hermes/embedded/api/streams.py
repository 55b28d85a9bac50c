"""Server-sent events: a feed that never waits for its reader, and the answer that sends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aip_hermes.ports import Clock
from aip_hermes.sse import comment, encode

__all__ = ["EventStream", "Feed"]

_SILENCE_S: Final = 30.0


class Feed:
    """Frames on their way to one reader. Adding one never waits: what is added is bounded by what a turn may say."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._newest = clock.monotonic()
        self._abandoned = False

    def add(self, data: Mapping[str, Any] | str, *, event: str | None = None) -> None:
        """Add an event; an object becomes ASCII JSON."""
        text = data if isinstance(data, str) else json.dumps(data, allow_nan=False)
        self._put(encode(text, event=event))

    def remark(self, text: str) -> None:
        """Add a comment."""
        self._put(comment(text))

    def end(self) -> None:
        """Nothing follows."""
        self._frames.put_nowait(None)

    def abandon(self) -> None:
        """Nobody reads any more: what is added is dropped."""
        self._abandoned = True

    async def next(self) -> bytes | None:
        """Return the next frame, or all that wait; None at the end."""
        frame = await self._frames.get()
        if frame is None:
            return None
        frames = [frame]
        while not self._frames.empty():
            frame = self._frames.get_nowait()
            if frame is None:
                self._frames.put_nowait(None)
                break
            frames.append(frame)
        return b"".join(frames)

    async def keep_alive(self) -> None:
        """Add a comment after each half minute of silence, until cancelled."""
        while True:
            rest = self._newest + _SILENCE_S - self._clock.monotonic()
            if rest <= 0:
                self.remark("keepalive")
            else:
                await self._clock.sleep(rest)

    def _put(self, frame: bytes) -> None:
        self._newest = self._clock.monotonic()
        if not self._abandoned:
            self._frames.put_nowait(frame)


class EventStream(Response):
    """Sends a feed to its end. on_leave: called once when the client is gone before that."""

    def __init__(
        self, feed: Feed, *, headers: Mapping[str, str] | None = None, on_leave: Callable[[], object] | None = None
    ) -> None:
        super().__init__(
            headers={**(headers or {}), "Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
            media_type="text/event-stream",
        )
        del self.headers["content-length"]
        self._feed = feed
        self._on_leave = on_leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(send))
        helpers = (asyncio.create_task(_gone(receive)), asyncio.create_task(self._feed.keep_alive()))
        try:
            await asyncio.wait({sending, helpers[0]}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            finished = sending.done() and not sending.cancelled() and sending.exception() is None
            for task in (sending, *helpers):
                task.cancel()
            await asyncio.gather(sending, *helpers, return_exceptions=True)
            self._feed.abandon()
            if not finished and self._on_leave is not None:
                self._on_leave()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # A client that is gone ends the sending; what is left of the feed is nobody's.
        while (frames := await self._feed.next()) is not None:
            await send({"type": "http.response.body", "body": frames, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    with suppress(OSError):
        while (await receive())["type"] != "http.disconnect":
            pass
