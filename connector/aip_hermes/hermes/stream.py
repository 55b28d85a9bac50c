"""From frames to chunks, to the text and to the end of a stream. Pure; bounded whatever the endpoint sends.

Exactly the first event that ends the stream is its end; nothing after it counts. A stream that stops before such an
event has not succeeded. Source: connector contract §11, §12, §24.7–10; design D17.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from aip_hermes.contract import load_capability_file
from aip_hermes.contract.handler import Chunk, ChunkKind, JsonObject
from aip_hermes.contract.operation import StreamRule
from aip_hermes.hermes.stream_grammar import DONE, GRAMMARS, REPEATING, Ending, ending_of, kind_of
from aip_hermes.sse import Frame
from aip_hermes.wire import JsonProblem, canonical_json, read_json, sha256_hex

__all__ = [
    "DEFAULT_EVENTS",
    "MAX_EVENTS_BYTES",
    "MAX_KEPT_EVENTS",
    "MAX_TEXT_CHARS",
    "StreamCollector",
    "may_exceed",
]

DEFAULT_EVENTS: Final = load_capability_file().connector.default_sse_event_limit
MAX_KEPT_EVENTS: Final = 256
MAX_EVENTS_BYTES: Final = 1_048_576
MAX_TEXT_CHARS: Final = 1_048_576
_MAX_DEPTH: Final = 100  # an AIP message holds 128, and an event stands some levels inside
_SPARE: Final = 128 - _MAX_DEPTH

_FIRST_MEMBER: Final = re.compile(rb'\{\s*"(event|session_id)":\s*("[^"\\]{1,240}")')


def may_exceed(event: str | None, head: bytes) -> bool:
    """Tell whether a frame may be larger than a frame may be: its name is what counts (design D17)."""
    return (_first_member(head).get("event") if event is None else event) in REPEATING


class StreamCollector:
    """Reads one stream.

    max_events: events after which a stream that has not ended is given up. ending: None while it goes on. last_name: of
    the last event.
    """

    def __init__(self, rule: StreamRule, *, operation: str, max_events: int = DEFAULT_EVENTS) -> None:
        self._grammar = GRAMMARS[rule]
        self._operation = operation
        self._max_events = max_events
        self._count = 0
        self._events: list[JsonObject] = []
        self._events_bytes = 0
        self._full = False
        self._text = io.StringIO()
        self._text_chars = 0
        self._text_omitted = 0
        self._failure: Mapping[str, Any] | None = None
        self.ending: Ending | Literal["truncated", "incomplete"] | None = None
        self.last_name: str | None = None
        self.session_id: str | None = None
        """The session that the turn ended in, once an event has said it."""

    @property
    def failure(self) -> Mapping[str, Any]:
        """What the event that failed said."""
        return self._failure or {}

    @property
    def count(self) -> int:
        """Events so far."""
        return self._count

    def take(self, frame: Frame) -> Chunk:
        """Return the chunk of the next frame. Nothing is taken after an ending."""
        if self.ending is not None:
            raise ValueError("the stream has ended")
        name, data = self._read(frame)
        self.last_name = name
        members = data if isinstance(data, Mapping) else {}
        if self._grammar.failed is not None and self._grammar.failed(members):
            self._failure = members
        ending = ending_of(name, data)
        if ending == "completed" and self._failure is not None:
            ending = "failed"
        elif ending == "failed":
            self._failure = members
        if name in self._grammar.effective and isinstance(members.get("session_id"), str):
            self.session_id = members["session_id"] or self.session_id
        text = self._grammar.text(name, members)
        if text is not None:
            self._add_text(text)
        shown = self._shown(frame, name, data, terminal=ending is not None)
        self._count += 1
        self._keep(shown, last=ending is not None or self._count == self._max_events)
        self.ending = ending if ending is not None else "truncated" if self._count == self._max_events else None
        return Chunk(kind=self._kind(name, data), data={"hermes_sse": shown}, text=text)

    def take_rest(self, frame: Frame) -> Chunk | None:
        """Take what stood without its empty line at the end of input, unless it may have been cut: then it is nothing.

        Without data, or with data that is neither whole JSON nor DONE, a name proves nothing.
        """
        data = None if frame.data is None else _value(frame.data)
        whole = data is not None and (not isinstance(data, str) or data.strip() == DONE or frame.data != data)
        return self.take(frame) if whole else None

    def close(self) -> Chunk | None:
        """Mark the end of input; return the chunk that says so where no event had ended the stream."""
        if self.ending is not None:
            return None
        self.ending = "incomplete"
        reason = "upstream_stream_closed_without_terminal_event"
        return Chunk(kind="error", data={"operation": self._operation, "reason": reason})

    def output(self, *, endpoint_id: str, http_status: int) -> JsonObject:
        """Return what there is of the stream, also of one that broke off.

        events: the first ones and the last, at most MAX_KEPT_EVENTS and MAX_EVENTS_BYTES; events_omitted counts the
        rest. text_omitted: characters beyond MAX_TEXT_CHARS, only where there are some.
        """
        output: JsonObject = {
            "endpoint_id": endpoint_id,
            "operation": self._operation,
            "http_status": http_status,
            "events": list(self._events),
            "events_omitted": self._count - len(self._events),
            "text": self._text.getvalue(),
            "terminal": self.ending in ("completed", "cancelled", "failed"),
            "truncated": self.ending == "truncated",
        }
        if self._text_omitted:
            output["text_omitted"] = self._text_omitted
        if self.session_id is not None:
            output["session_id"] = self.session_id
        return output

    def _read(self, frame: Frame) -> tuple[str | None, object]:
        if frame.oversize is not None:
            size, sha256, head = frame.oversize
            data: object = {**_first_member(head), "_aip": {"oversize": {"bytes": size, "sha256": sha256}}}
        else:
            data = None if frame.data is None or not frame.data.strip() else _value(frame.data)
        name = frame.event
        if name is None and isinstance(data, Mapping):
            named = (data.get(member) for member in self._grammar.names)
            name = next((value for value in named if isinstance(value, str) and value), None)
        return name, data

    def _shown(self, frame: Frame, name: str | None, data: object, *, terminal: bool) -> JsonObject:
        shown: JsonObject = {}
        if frame.event is not None:
            shown["event"] = frame.event
        if frame.id is not None:
            shown["id"] = frame.id
        if self._grammar.transcript is not None and isinstance(data, Mapping):
            event, member = self._grammar.transcript
            if name == event and isinstance(data.get(member), list):
                data = dict(data) | {member: {"count": len(data[member]), "sha256": sha256_hex(data[member])}}
        return shown | {"data": data, "terminal": terminal}

    def _keep(self, shown: JsonObject, *, last: bool) -> None:
        if self._full and not last:
            return
        size = len(canonical_json(shown))
        if size > MAX_EVENTS_BYTES:
            cut = {"_aip": {"omitted": {"bytes": size, "sha256": sha256_hex(shown["data"])}}}
            shown = shown | {"data": cut}
            size = len(canonical_json(shown))
        while last and self._events and not self._fits(size):
            self._events_bytes -= len(canonical_json(self._events.pop()))
        if self._fits(size):
            self._events.append(shown)
            self._events_bytes += size
        else:
            self._full = True

    def _fits(self, size: int) -> bool:
        return len(self._events) < MAX_KEPT_EVENTS and self._events_bytes + size <= MAX_EVENTS_BYTES

    def _add_text(self, text: str) -> None:
        kept = text[: MAX_TEXT_CHARS - self._text_chars]
        self._text.write(kept)
        self._text_chars += len(kept)
        self._text_omitted += len(text) - len(kept)

    def _kind(self, name: str | None, data: object) -> ChunkKind:
        if self.ending == "failed":
            return "error"
        if self.ending in ("completed", "cancelled"):
            return "done"
        return kind_of(self._grammar, name, data)


def _first_member(head: bytes) -> dict[str, str]:
    """Return the name or the session of data of which there is only the beginning, where it begins with that."""
    found = _FIRST_MEMBER.match(head)
    if found is None:
        return {}
    value = _value(found[2].decode("utf-8", "replace"))
    return {found[1].decode(): value} if isinstance(value, str) else {}


def _value(text: str) -> object:
    """Return the JSON value of a data field, or the text where it is none that could be written again."""
    deep = text.count("[") + text.count("{") > _MAX_DEPTH
    try:
        if deep:
            read_json("[" * _SPARE + text + "]" * _SPARE)
        return read_json(text)
    except JsonProblem:
        return text if deep else _mended(text)


def _mended(text: str) -> object:
    """Read what Python's own reader takes: a member given twice counts once, half a surrogate pair becomes U+FFFD."""
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
        return read_json(plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        return text
