"""How much a page reads of what there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from aip_hermes.database import Connection
from aip_hermes.runtime.event_pages import MAX_PAGE, Position, read_page
from aip_hermes.runtime.store import QUERIES

ROW = {"tenant": "t", "action_id": "act_1", "settled_at": 1}
EVENTS = 5_000


class CountingLog:
    """An action with as many events, each with its chunk. read: rows that were handed out."""

    def __init__(self) -> None:
        self.read = 0

    def execute(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        if query == QUERIES["last_event_of_tenant"]:
            return [{"seq": EVENTS}]
        if query == QUERIES["log_start"]:
            return []
        assert params is not None
        chunks = query == QUERIES["fetch_chunks"]
        places = range(params["after"] + 1, EVENTS if chunks else EVENTS + 1)[: params["limit"]]
        self.read += len(places)
        return [self._chunk(place) if chunks else self._event(place) for place in places]

    def _chunk(self, sequence: int) -> dict[str, Any]:
        chunk = {"action_id": "act_1", "sequence": sequence, "kind": "data", "data": {}}
        return {"sequence": sequence, "chunk": json.dumps(chunk)}

    def _event(self, seq: int) -> dict[str, Any]:
        event = {
            "id": f"evt_{seq}",
            "kind": "aip.stream.chunk",
            "occurred_at": "2030-01-01T00:00:00Z",
            "action_id": "act_1",
            "data": {},
        }
        return {"seq": seq, "kind": "aip.stream.chunk", "event": json.dumps(event)}


@pytest.mark.requirement("runtime:events:page-cost")
@pytest.mark.parametrize("position", [Position(), Position(EVENTS // 2), Position(EVENTS)])
@pytest.mark.parametrize("limit", [1, 10])
def test_a_small_page_reads_little_of_a_long_log(limit: int, position: Position) -> None:
    log = CountingLog()
    page = read_page(cast("Connection", log), ROW, position=position, limit=limit, kinds=(), include_chunks=True)
    assert len(page.events) + len(page.chunks) == limit
    assert not page.terminal
    assert log.read <= 4 * limit + 8


@pytest.mark.requirement("runtime:events:page-cost")
def test_a_page_of_rare_kinds_ends_and_moves_on() -> None:
    log, cursor, pages = CountingLog(), None, 0
    while True:
        page = read_page(
            cast("Connection", log),
            ROW,
            position=Position.parse(cursor),
            limit=1,
            kinds=("aip.action.result",),
            include_chunks=False,
        )
        assert (page.events, page.cursor == cursor) == ([], False)
        cursor, pages = page.cursor, pages + 1
        if page.terminal:
            break
    assert pages == EVENTS // MAX_PAGE
    assert log.read <= EVENTS + 32 * pages
