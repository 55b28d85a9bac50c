"""Streams of the double, and single attempts of streaming rows at it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aip_hermes.cli.conformance.stream_double import StreamReply, StreamStub, reply_stream, session_stream
from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer, Chunk
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from tests.support.hermes_calls import FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import KEY, Reply, row_of

__all__ = [
    "RUN_EVENTS",
    "TURN",
    "Kept",
    "StreamReply",
    "StreamStub",
    "answered",
    "failed",
    "reply_stream",
    "session_stream",
    "turn",
]

_CODE = "connector.hermes_agent."
TURN = load_operations()["session_chat_stream"]
RUN_EVENTS = load_operations()["run_events"]


class Kept:
    """Chunks in the order in which they were published. fail_at: the chunk whose storing fails."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.chunks: list[Chunk] = []
        self.first = asyncio.Event()
        self._fail_at = fail_at

    async def __call__(self, chunk: Chunk) -> None:
        if len(self.chunks) == self._fail_at:
            raise ActionFailed("the disk is full")
        self.chunks.append(chunk)
        self.first.set()

    @property
    def kinds(self) -> list[str]:
        return [chunk.kind for chunk in self.chunks]


async def turn(
    stub: StreamStub,
    *,
    kept: Kept | None = None,
    row: Operation = TURN,
    values: Mapping[str, Any] | None = None,
    timeout_s: float = 30.0,
    clock: FakeClock | None = None,
    deadline_ms: int | None = None,
) -> Answer | ActionFailed:
    """Run one attempt of a streaming row as a runtime does."""
    endpoint = endpoint_of(stub.base_url, turn_timeout_s=timeout_s)
    given = {"session_id": "s1", "message": "hi"} if row.name == TURN.name else {"run_id": "run_1"}
    async with connector_of(endpoint, operations={row.name: row}, clock=clock) as connector:
        return await attempt(
            handler_of(connector, row.name),
            call_of(row.name, given | dict(values or {}), deadline_ms=deadline_ms),
            publish=kept or Kept(),
        )


async def answered(reply: Reply, **settings: Any) -> tuple[Answer | ActionFailed, StreamStub]:
    """Run one attempt at an endpoint that answers with `reply`."""
    async with StreamStub([row_of("s1")]) as stub:
        stub.on("POST", "/chat/stream", reply)
        stub.on("GET", "/events", reply)
        return await turn(stub, **settings), stub


def failed(outcome: Answer | ActionFailed, code: str) -> ActionFailed:
    """Return the failure that the outcome must be."""
    assert isinstance(outcome, ActionFailed)
    assert outcome.code == _CODE + code
    assert outcome.details["uncertain_outcome"] is outcome.uncertain
    assert KEY not in outcome.message + repr(outcome.details)
    return outcome
