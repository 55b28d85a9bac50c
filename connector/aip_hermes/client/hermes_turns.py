"""The events of one streamed turn, as they come. Source: Hermes API server §4.2; design D17."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

from aip_hermes import sse
from aip_hermes.client.failures import NoAnswer, TooLarge, Undecodable
from aip_hermes.client.hermes_answers import object_of
from aip_hermes.client.hermes_objects import TurnEvent
from aip_hermes.client.http import HttpConnection, HttpStream
from aip_hermes.client.reply import parsed
from aip_hermes.ids import HermesSessionId, IdentityError

__all__ = ["turn_events"]

_EVENT_STREAM: Final = "text/event-stream"


async def turn_events(
    http: HttpConnection, path: str, body: Mapping[str, Any], *, headers: Mapping[bytes, bytes], idle_s: float
) -> AsyncGenerator[TurnEvent, None]:
    """Send one turn, once, and yield its events up to the terminal one.

    Raises: HermesRefused before the turn; NoAnswer, TooLarge, Undecodable, uncertain, once it may run.
    """
    async with http.post_stream(path, body, headers=headers, accept=_EVENT_STREAM, idle_s=idle_s) as stream:
        if stream.status != 200 or stream.media_type != _EVENT_STREAM:
            object_of(await http.whole(stream), changes=True)
            raise Undecodable("Hermes answered a streamed turn with no stream", http_status=200, uncertain=True)
        async with aclosing(_events(stream, limit=http.max_response_bytes)) as events:
            async for event in events:
                yield event
                if event.terminal:
                    return
    raise NoAnswer("the stream ended before the turn did", http_status=200, uncertain=True)


async def _events(stream: HttpStream, *, limit: int) -> AsyncGenerator[TurnEvent, None]:
    decoder = sse.Decoder(max_line_bytes=limit, max_frame_bytes=limit, max_stream_bytes=None, max_events=None)
    try:
        async for piece in stream.pieces:
            for frame in decoder.feed(piece):
                if frame.event is not None:
                    yield _event(frame.event, frame.data)
    except sse.SseLimit as exc:
        raise TooLarge("an event of the turn exceeded the limit", http_status=200, uncertain=True) from exc
    except sse.SseMalformed as exc:
        raise Undecodable("an event of the turn is no UTF-8", http_status=200, uncertain=True) from exc


def _event(name: str, text: str | None) -> TurnEvent:
    data = parsed((text or "").encode())
    if not isinstance(data, dict):
        raise Undecodable(f"the event `{name}` of the turn is no JSON object", http_status=200, uncertain=True)
    own = data.get("session_id")
    try:
        session_id = HermesSessionId(own) if isinstance(own, str) else None
    except IdentityError:
        session_id = None
    return TurnEvent(name=name, session_id=session_id, data=data)
