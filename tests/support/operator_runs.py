"""An endpoint with one run, told what happens to it, and calls of the operator on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.cli.conformance.run_events import ASKS, ENDED, QUESTION, STARTED, told
from aip_hermes.contract.handler import Answer, Call, Handler, Prepared
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.operator import OperatorPolicy
from aip_hermes.ids import ActionId
from aip_hermes.ports import Clock, Faults, SystemClock
from tests.support.hermes_calls import attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import Kept, StreamStub, reply_stream
from tests.support.hermes_stub import RUN, Arrived, Reply, reply_error, reply_json
from tests.support.memory_state import MemoryState

__all__ = ["ASKS", "ENDED", "GONE", "QUESTION", "QUICK", "STARTED", "Site", "told"]

QUICK = OperatorPolicy(poll_interval_ms=10)
GONE = reply_error(404, "run_not_found")


@dataclass
class Site:
    """stub: the endpoint. state: what the runtime keeps. statuses: what the run's status says, one after the other, the
    last one again and again."""

    stub: StreamStub
    handler: Handler
    state: MemoryState
    kept: Kept = field(default_factory=Kept)
    statuses: list[Mapping[str, Any]] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        events: Reply = GONE,
        statuses: tuple[Mapping[str, Any], ...] = ({"status": "completed", "output": "All four hold."},),
        policy: OperatorPolicy = QUICK,
        clock: Clock | None = None,
        faults: Faults | None = None,
        state: MemoryState | None = None,
    ) -> AsyncIterator[Site]:
        async with StreamStub() as stub, asyncio.timeout(30):
            connecting = connector_of(
                endpoint_of(stub.base_url), clock=clock or SystemClock(), operator=policy, faults=faults
            )
            async with connecting as connector:
                site = cls(stub=stub, handler=handler_of(connector, "operator"), state=state or MemoryState())
                site.statuses = list(statuses)
                stub.on("GET", "/v1/runs/run_1", site.status)
                stub.on("GET", "/events", GONE)
                stub.on("GET", "/events", events, times=1)
                yield site

    def status(self, _request: Arrived) -> Reply:
        told = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return reply_json({**RUN, "status": "running", "last_event": None, **told})

    def streams(self, *events: tuple[str, Mapping[str, Any]], behaviour: str = "answer") -> None:
        """Let the next reader have these events."""
        self.stub.on("GET", "/events", reply_stream(told(*events), behaviour=behaviour), times=1)

    async def run(self, values: Mapping[str, Any] | None = None, **members: Any) -> Answer | ActionFailed:
        """Run one attempt as a runtime does."""
        return await attempt(self.handler, call_of("operator", values, **members), state=self.state, publish=self.kept)

    async def resume(self, action_id: str, choice: str = "once", **members: Any) -> Answer | ActionFailed:
        """Answer what the run of `act_1` asks."""
        values = {"resume": {"source_action_id": "act_1", "choice": choice}}
        return await self.run(values, action_id=ActionId(action_id), **members)

    async def send(self, call: Call) -> Answer:
        return await self.handler.send(call, Prepared(), publish=self.kept, state=self.state)

    def posts(self, ending: str) -> list[Arrived]:
        """Return the mutating requests whose path ends so."""
        return [request for request in self.stub.mutations if request.target.endswith(ending)]

    @property
    def starts(self) -> int:
        return len(self.posts("/v1/runs"))

    @property
    def shown(self) -> Iterator[Mapping[str, Any]]:
        """Yield what the chunks told."""
        return (chunk.data["hermes_operator"] for chunk in self.kept.chunks)
