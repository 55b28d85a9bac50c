"""Server-sent events of the embedded endpoint, as a test reads them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from aip_hermes.sse import Decoder

__all__ = ["Event", "EventReader", "events_of", "opened"]


class Event(NamedTuple):
    """name: None where the frame has none. data: parsed, or the text where it is no JSON."""

    name: str | None
    data: Any


class EventReader:
    """Reads one stream, event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.decoder = _decoder()
        self._bytes = answer.aiter_bytes()
        self._waiting: list[Event] = []

    async def next(self) -> Event:
        """Return the next event; StopAsyncIteration at the end."""
        while not self._waiting:
            self._waiting = [_event(frame) for frame in self.decoder.feed(await anext(self._bytes))]
        return self._waiting.pop(0)

    async def until(self, name: str) -> Event:
        """Return the next event of that name, in the frame or in its data."""
        while True:
            event = await self.next()
            if name in (event.name, isinstance(event.data, dict) and event.data.get("event")):
                return event

    async def rest(self) -> list[Event]:
        """Return what follows, to the end."""
        events: list[Event] = []
        try:
            while True:
                events.append(await self.next())
        except StopAsyncIteration:
            return events


def events_of(answer: httpx.Response) -> list[Event]:
    """Return the events of a complete answer."""
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    return [_event(frame) for frame in _decoder().feed(answer.content)]


@asynccontextmanager
async def opened(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> AsyncIterator[EventReader]:
    """Open a stream; leaving the block hangs up."""
    async with client.stream(method, path, **options) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield EventReader(answer)


def _decoder() -> Decoder:
    return Decoder(max_line_bytes=1 << 20, max_frame_bytes=1 << 20, max_stream_bytes=None, max_events=None)


def _event(frame: Any) -> Event:
    try:
        return Event(frame.event, json.loads(frame.data))
    except ValueError:
        return Event(frame.event, frame.data)
