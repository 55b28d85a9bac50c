"""Following an action over broken connections: every frame once, in order, from a position to the action's end.

Only reads are repeated. A frame that a broken connection had already brought is not handed out again, so nothing is
waited for: a frame is handed out as it comes. Source: AIP HTTP surface §7.2.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal

from aip_hermes import sse
from aip_hermes.client.failures import (
    ClientFailure,
    HttpFailed,
    NoAnswer,
    NotReachable,
    PeerError,
    StreamLost,
    TooLarge,
    Undecodable,
)
from aip_hermes.client.http import HttpConnection
from aip_hermes.client.reply import JsonObject, parsed, protocol_error, read_body
from aip_hermes.ports import Clock

__all__ = ["FrameKind", "Patience", "StreamFrame", "follow"]

FrameKind = Literal["event", "chunk", "position", "terminal"]

_EVENT_STREAM: Final = "text/event-stream"
_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 5.0
_LONGEST_ASKED_S: Final = 30.0
_KEPT_IDS: Final = 10_000
"""Of the last events, to know them again; a page of a server has at most a tenth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a follower bears with a server.

    max_tries: connections in a row that brought nothing new. idle_s: without a byte; a comment is a sign of life.
    steady_s: a connection that lived this long and gave a sign of life is no failed try.
    """

    max_tries: int = 8
    idle_s: float = 45.0
    steady_s: float = 14.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamFrame:
    """One frame. data: as received, `{"event": …}`, `{"chunk": …}`, `{"next_cursor": …}` or `{"terminal": true, …}`.

    cursor: of a position or the end: who follows from there gets what came after, and nothing twice.
    """

    kind: FrameKind
    data: JsonObject
    cursor: str | None = None


async def follow(
    http: HttpConnection,
    path: str,
    params: Mapping[str, str],
    *,
    cursor: str | None,
    patience: Patience,
    clock: Clock,
) -> AsyncGenerator[StreamFrame, None]:
    """Yield frames up to and with the terminal one. Raises: as AipConnection.follow."""
    reading = _Reading(http, path, params, cursor=cursor, patience=patience)
    tries = 0
    while True:
        began, reading.alive = clock.monotonic(), False
        try:
            async with aclosing(reading.frames()) as frames:
                async for frame in frames:
                    if frame.kind != "event":
                        tries = 0
                    yield frame
                    if frame.kind == "terminal":
                        return
            failure: ClientFailure = NoAnswer("the stream ended before the action did")
        except (NoAnswer, NotReachable, PeerError, HttpFailed) as exc:
            if not reading.attached or not _may_pass(exc):
                raise
            failure = exc
        if reading.alive and clock.monotonic() - began >= patience.steady_s:
            tries = 0
        tries += 1
        if tries >= patience.max_tries:
            raise StreamLost(
                f"the stream broke {tries} times in a row: {failure.message}", cursor=reading.cursor
            ) from failure
        asked_ms = max(failure.retry_after_ms or 0, reading.retry_ms or 0)
        wait_s = min(_FIRST_WAIT_S * 2 ** (tries - 1), _LONGEST_WAIT_S)
        await clock.sleep(max(wait_s, min(asked_ms / 1000, _LONGEST_ASKED_S)))


def _may_pass(failure: ClientFailure) -> bool:
    """Whether the same read may succeed later."""
    if isinstance(failure, PeerError | HttpFailed):
        return failure.retryable or (failure.http_status or 0) >= 500
    return True


class _Reading:
    """What is known over all connections. cursor: the last position. attached: a stream has begun before."""

    def __init__(
        self, http: HttpConnection, path: str, params: Mapping[str, str], *, cursor: str | None, patience: Patience
    ) -> None:
        self.cursor = cursor
        self.attached = False
        self.alive = False
        self.retry_ms: int | None = None
        self._http = http
        self._path = path
        self._params = params
        self._patience = patience
        self._last_chunk = -1
        self._events: dict[str, None] = {}

    async def frames(self) -> AsyncGenerator[StreamFrame, None]:
        """Read one connection to its end."""
        params = {**self._params, "follow": "true", **({} if self.cursor is None else {"cursor": self.cursor})}
        limit = self._http.max_response_bytes
        decoder = sse.Decoder(max_line_bytes=limit, max_frame_bytes=limit, max_stream_bytes=None, max_events=None)
        async with self._http.stream(self._path, params, accept=_EVENT_STREAM, idle_s=self._patience.idle_s) as stream:
            if stream.status != 200 or stream.media_type != _EVENT_STREAM:
                read_body(await self._http.whole(stream), expected="event stream")
                raise _no_stream(f"HTTP {stream.status} with {stream.media_type or 'no media type'}", stream.status)
            self.attached = True
            try:
                # What is left at the end is no frame: it comes again, whole.
                async for piece in stream.pieces:
                    for frame in decoder.feed(piece):
                        self.alive = True
                        taken = self._taken(frame)
                        if taken is not None:
                            yield taken
                    self.alive = self.alive or decoder.comments > 0
                    self.retry_ms = decoder.retry_ms
            except sse.SseLimit as exc:
                raise TooLarge(f"a frame of the stream exceeded the {limit}-byte limit", http_status=200) from exc
            except sse.SseMalformed as exc:
                raise _no_stream("a frame that is no UTF-8", 200) from exc

    def _taken(self, frame: sse.Frame) -> StreamFrame | None:
        """Return what the frame says, or None where it is known already, or of a kind that is not."""
        if frame.data is None:
            return None
        data = parsed(frame.data.encode())
        if not isinstance(data, dict):
            raise _no_stream("a frame that is no JSON object", 200)
        if isinstance(data.get("event"), dict):
            return StreamFrame(kind="event", data=data) if self._is_new_event(data["event"]) else None
        if isinstance(data.get("chunk"), dict):
            return StreamFrame(kind="chunk", data=data) if self._is_new_chunk(data["chunk"]) else None
        match frame.event:
            case "aip.stream.cursor":
                return self._position(data.get("next_cursor"), StreamFrame(kind="position", data=data))
            case "aip.stream.terminal" if data.get("terminal") is True:
                return StreamFrame(kind="terminal", data=data, cursor=frame.id or self.cursor)
            case "aip.error":
                error = protocol_error(data)
                if error is None:
                    raise _no_stream("an error frame without an error", 200)
                raise PeerError(error, http_status=200)
            case _:
                return None

    def _position(self, cursor: Any, frame: StreamFrame) -> StreamFrame | None:
        if not isinstance(cursor, str) or not cursor:
            raise _no_stream("a position that is none", 200)
        if cursor == self.cursor:
            return None
        self.cursor = cursor
        return StreamFrame(kind=frame.kind, data=frame.data, cursor=cursor)

    def _is_new_event(self, event: Mapping[str, Any]) -> bool:
        identity = event.get("id")
        if not isinstance(identity, str):
            raise _no_stream("an event without an id", 200)
        if identity in self._events:
            return False
        if len(self._events) >= _KEPT_IDS:
            del self._events[next(iter(self._events))]
        self._events[identity] = None
        return True

    def _is_new_chunk(self, chunk: Mapping[str, Any]) -> bool:
        sequence = chunk.get("sequence")
        if not isinstance(sequence, int) or isinstance(sequence, bool):
            raise _no_stream("a chunk without a sequence", 200)
        if sequence <= self._last_chunk:
            return False
        self._last_chunk = sequence
        return True


def _no_stream(what: str, status: int) -> Undecodable:
    return Undecodable(f"AIP response is not an event stream: {what}", http_status=status)
