"""What is recorded about an action while it runs.

Source: wire model §7 "StreamChunk", "ActionEventsRequest" to "EventStream".
"""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes.wire.closed_sets import StreamChunkKind
from aip_hermes.wire.model import U32, U64, Bool, Json, Time, Wire, absent_list
from aip_hermes.wire.principal import Principal
from aip_hermes.wire.result import MessagePart

__all__ = ["ActionEvents", "ActionEventsRequest", "Event", "EventStream", "EventStreamRequest", "StreamChunk"]


class StreamChunk(Wire):
    """sequence: ascending per action."""

    action_id: str
    sequence: U64
    kind: StreamChunkKind
    data: Json | None = None
    part: MessagePart | None = None


class Event(Wire):
    """kind: dotted label such as `aip.action.result`."""

    id: str
    kind: str
    occurred_at: Time
    session_id: str | None = None
    action_id: str | None = None
    correlation_id: str | None = None
    actor: Principal | None = None
    data: Json | None = None


class EventStream(Wire):
    events: list[Event]
    next_cursor: str | None = None


class EventStreamRequest(Wire):
    cursor: str | None = None
    limit: U32 | None = None
    kinds: list[str] = absent_list()


class ActionEventsRequest(Wire):
    """follow asks the transport to keep streaming. A cursor is opaque; an event id is none."""

    action_id: str
    tenant_id: str | None = None
    cursor: str | None = None
    limit: U32 | None = None
    kinds: list[str] = absent_list()
    include_chunks: Bool = False
    follow: Bool = False

    def broken_rules(self) -> Iterator[str]:
        if self.tenant_id is not None and not self.tenant_id.strip():
            yield "tenant_id is blank"
        if any(not kind.strip() for kind in self.kinds):
            yield "kinds has a blank entry"


class ActionEvents(Wire):
    """terminal: the action is in one of `TERMINAL_STATES`."""

    action_id: str
    events: list[Event]
    chunks: list[StreamChunk] = absent_list()
    cursor: str | None = None
    terminal: Bool

    def broken_rules(self) -> Iterator[str]:
        if any(event.action_id != self.action_id for event in self.events):
            yield "events has one of another action"
        if any(chunk.action_id != self.action_id for chunk in self.chunks):
            yield "chunks has one of another action"
