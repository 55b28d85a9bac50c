"""Pages of what happened to one action: events first, chunks after them, and a position to go on from.

A position is `aev_cursor_<event>_<chunk>`: the last event and the last chunk that were handed out (`none` before the
first). It works over restarts and for every reader; polling with it repeats nothing and skips nothing.
Source: AIP HTTP surface §5.1, §5.2, §7; runtime behaviour §16.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime.failures import CursorExpired, InvalidCursor
from aip_hermes.runtime.store import QUERIES, from_json

__all__ = ["DEFAULT_PAGE", "MAX_PAGE", "MAX_PAGE_BYTES", "Position", "first_chunks", "read_log", "read_page"]

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
_EVENTS_AT_ONCE: Final = 32
_CHUNKS_AT_ONCE: Final = 8
"""A chunk may have a megabyte; an event has some hundred bytes, seldom more."""

_CURSOR = re.compile(r"(?:aev_cursor_(\d{1,18})_(none|\d{1,18})|evt_cursor_(\d{1,18}))", re.ASCII)
_BEFORE_ALL: Final = -1


@dataclass(frozen=True, slots=True)
class Position:
    """event: place of the last event in the log, 0 before the first. chunk: sequence of the last chunk, -1 before."""

    event: int = 0
    chunk: int = _BEFORE_ALL

    @classmethod
    def parse(cls, cursor: str | None) -> Self:
        """Read a cursor. Raises: InvalidCursor."""
        if cursor is None:
            return cls()
        match = _CURSOR.fullmatch(cursor)
        if match is None:
            raise InvalidCursor(
                "an event cursor has the form `aev_cursor_<n>_<n|none>`; an event id is none",
                details={"expected": "aev_cursor_<n>_<n|none>"},
            )
        event, chunk, global_event = match.groups()
        if global_event is not None:
            return cls(int(global_event))
        return cls(int(event), _BEFORE_ALL if chunk == "none" else int(chunk))

    def text(self) -> str:
        """Return the cursor."""
        return f"aev_cursor_{self.event}_{'none' if self.chunk == _BEFORE_ALL else self.chunk}"


@dataclass(slots=True)
class _Room:
    """What still fits on the page."""

    rows: int
    size: int
    untouched: bool = True

    def take(self, text: str) -> bool:
        """Whether one more fits; the first one of a page always does."""
        if self.rows == 0 or (not self.untouched and len(text) > self.size):
            return False
        self.rows, self.untouched = self.rows - 1, False
        self.size -= len(text)
        return True


def _behind(
    connection: Connection, query: str, row: Mapping[str, Any], *, after: int, place: str, at_once: int
) -> Iterator[Mapping[str, Any]]:
    """Yield an action's rows a few at a time: no page reads much more than it hands out, however much there is.

    place: the column that the rows are ordered by.
    """
    address = {"tenant": row["tenant"], "action_id": row["action_id"], "limit": at_once}
    while True:
        found = connection.execute(QUERIES[query], {**address, "after": after})
        yield from found
        if len(found) < at_once:
            return
        after = found[-1][place]


def read_page(
    connection: Connection,
    row: Mapping[str, Any],
    *,
    position: Position,
    limit: int | None,
    kinds: Collection[str],
    include_chunks: bool,
    max_bytes: int = MAX_PAGE_BYTES,
) -> wire.ActionEvents:
    """Return the next page of an action's row. kinds: empty for all. limit: default 100, clamped to 1…1000.

    max_bytes: of events and chunks together; the first one always fits.

    A page looks at MAX_PAGE events at most: where few are of `kinds` it may be empty and still move the position.
    `terminal` is set when the action has ended and nothing follows this page. Raises: CursorExpired for a position
    behind the end of the log.
    """
    _check_inside_log(connection, position, tenant=row["tenant"])
    wanted = min(max(DEFAULT_PAGE if limit is None else limit, 1), MAX_PAGE)
    room = _Room(wanted, max_bytes)
    events, last_event, more = [], position.event, False
    logged = _behind(
        connection,
        "fetch_event_page",
        row,
        after=position.event,
        place="seq",
        at_once=_EVENTS_AT_ONCE if kinds else min(wanted + 1, _EVENTS_AT_ONCE),
    )
    for looked_at, found in enumerate(logged):
        if looked_at == MAX_PAGE:
            more = True
            break
        if not kinds or found["kind"] in kinds:
            if not room.take(found["event"]):
                more = True
                break
            events.append(from_json(found["event"]))
        last_event = found["seq"]
    chunks, last_chunk = [], position.chunk
    if include_chunks:
        at_once = min(room.rows + 1, _CHUNKS_AT_ONCE)
        for found in _behind(connection, "fetch_chunks", row, after=position.chunk, place="sequence", at_once=at_once):
            if not room.take(found["chunk"]):
                more = True
                break
            chunks.append(from_json(found["chunk"]))
            last_chunk = found["sequence"]
    return wire.ActionEvents.model_validate(
        {
            "action_id": row["action_id"],
            "events": events,
            "chunks": chunks,
            "cursor": Position(last_event, last_chunk).text(),
            "terminal": row["settled_at"] is not None and not more,
        }
    )


def first_chunks(connection: Connection, row: Mapping[str, Any]) -> list[wire.StreamChunk]:
    """Return an action's chunks from the first one on, as many as a page holds."""
    room = _Room(MAX_PAGE, MAX_PAGE_BYTES)
    found = _behind(connection, "fetch_chunks", row, after=_BEFORE_ALL, place="sequence", at_once=_CHUNKS_AT_ONCE)
    texts = itertools.takewhile(room.take, (each["chunk"] for each in found))
    return [wire.StreamChunk.model_validate(from_json(text)) for text in texts]


def read_log(
    connection: Connection,
    *,
    tenant: str,
    owner: str | None,
    position: Position,
    limit: int | None,
    kinds: Collection[str],
    max_bytes: int = MAX_PAGE_BYTES,
) -> wire.EventStream:
    """Return the next page of a tenant's log, and the position behind it; there is always one.

    owner: only events of this principal's actions; None for all. Otherwise as `read_page`.
    Raises: CursorExpired for a position behind the end of the log, or before what was pruned.
    """
    begin = _check_inside_log(connection, position, tenant=tenant)
    if 0 < position.event < begin:
        raise CursorExpired("events behind the cursor were pruned; begin again without one")
    room = _Room(min(max(DEFAULT_PAGE if limit is None else limit, 1), MAX_PAGE), max_bytes)
    events, last = [], position.event
    for found in _log_behind(connection, tenant=tenant, after=position.event):
        if (not kinds or found["kind"] in kinds) and owner in (None, found["principal_id"]):
            if not room.take(found["event"]):
                break
            events.append(from_json(found["event"]))
        last = found["seq"]
    return wire.EventStream.model_validate({"events": events, "next_cursor": f"evt_cursor_{last}"})


def _log_behind(connection: Connection, *, tenant: str, after: int) -> Iterator[Mapping[str, Any]]:
    """Yield at most MAX_PAGE events of a tenant behind a position, a few at a time."""
    for _ in range(MAX_PAGE // _EVENTS_AT_ONCE):
        params = {"tenant": tenant, "after": after, "limit": _EVENTS_AT_ONCE}
        found = connection.execute(QUERIES["fetch_log_page"], params)
        yield from found
        if len(found) < _EVENTS_AT_ONCE:
            return
        after = found[-1]["seq"]


def _check_inside_log(connection: Connection, position: Position, *, tenant: str) -> int:
    """Return the position through which a tenant's log was pruned. Another tenant's events move neither end."""
    newest = connection.execute(QUERIES["last_event_of_tenant"], {"tenant": tenant})
    pruned = connection.execute(QUERIES["log_start"], {"tenant": tenant})
    begin: int = pruned[0]["pruned_through"] if pruned else 0
    if position.event > max(newest[0]["seq"] if newest else 0, begin):
        raise CursorExpired("the cursor lies behind the end of the log; begin again without one")
    return begin
