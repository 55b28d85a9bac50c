"""The real connector, catalogue, runtime and store before a provider double on loopback, for the connector kit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.double import KEY, row_of
from aip_hermes.cli.conformance.people import (
    Crash,
    Unexpected,
    approval_request,
    authority,
    decision,
    requester,
    reviewer,
)
from aip_hermes.cli.conformance.stream_double import StreamStub
from aip_hermes.contract import Catalog
from aip_hermes.contract.publish import Published
from aip_hermes.hermes import Endpoint, HermesConnector
from aip_hermes.ids import EndpointId, TenantId
from aip_hermes.ports import Clock, SystemClock
from aip_hermes.runtime import Authorities, Caller, MessageContext, Runtime, RuntimeLimits
from aip_hermes.runtime.failures import ActionNotFound
from aip_hermes.secret import Secret

__all__ = ["Holding", "KitSite", "Page", "capability", "endpoint_of"]

_PATIENT_S = 10.0


def capability(operation: str, endpoint: str = "primary") -> str:
    return f"cap:hermes_agent:{endpoint}:{operation}"


def endpoint_of(base_url: str, *, name: str = "primary", tenant: str = "tenant-a", **members: Any) -> Endpoint:
    return Endpoint(
        id=EndpointId(name), base_url=base_url, key=Secret(KEY), **{"tenant_id": TenantId(tenant), **members}
    )


class Hasty(SystemClock):
    """The machine's clock for those who repeat a read: they do it at once. Who waits for an end waits."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0 if seconds < _PATIENT_S else seconds)


@dataclass
class Holding:
    """Faults that hold an action at one point, or end the process there. entered: it is there."""

    point: str | None = None
    crash_at: str | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def reach(self, point: str) -> None:
        if point == self.crash_at:
            self.crash_at = None
            raise Crash(point)
        if point == self.point:
            self.point = None
            self.entered.set()
            await self.go_on.wait()


@dataclass(frozen=True, kw_only=True)
class Page:
    """What one reading of an action's chunks gave. cursor: where to read on."""

    sequences: list[int]
    kinds: list[str]
    cursor: str | None
    terminal: bool


@dataclass
class KitSite:
    """Endpoint `primary` belongs to tenant-a and `other` to tenant-b; one double answers for both.

    faults: of the runtime. endpoint_faults: of the connector.
    """

    folder: Path
    provider: StreamStub
    connector: HermesConnector
    catalog: Catalog
    faults: Holding
    endpoint_faults: Holding
    made: int = 0

    @classmethod
    @asynccontextmanager
    async def before(cls, folder: Path) -> AsyncIterator[KitSite]:
        faults, endpoint_faults = Holding(), Holding()
        async with StreamStub([row_of("s1")]) as provider:
            endpoints = [
                endpoint_of(provider.base_url, name=name, tenant=tenant)
                for name, tenant in (("primary", "tenant-a"), ("other", "tenant-b"))
            ]
            async with HermesConnector(endpoints, clock=Hasty(), faults=endpoint_faults) as connector:
                yield cls(
                    folder=folder,
                    provider=provider,
                    connector=connector,
                    catalog=Catalog(connector.offers()),
                    faults=faults,
                    endpoint_faults=endpoint_faults,
                )

    @property
    def store(self) -> Path:
        return self.folder / "runtime.sqlite3"

    @property
    def caller(self) -> Caller:
        return requester()

    @property
    def published(self) -> list[Published]:
        return list(self.catalog)

    @asynccontextmanager
    async def open(self, *, clock: Clock | None = None, limits: RuntimeLimits | None = None) -> AsyncIterator[Runtime]:
        """Start a runtime on the same store, as often as a process starts there."""
        runtime = await Runtime.open(
            store=self.store,
            catalog=self.catalog,
            connectors=[self.connector],
            authorities=Authorities((authority(),)),
            faults=self.faults,
            clock=clock,
            limits=limits,
        )
        async with runtime, asyncio.timeout(30):
            yield runtime

    def action(self, operation: str, *, endpoint: str = "primary", **members: Any) -> wire.Action:
        self.made += 1
        plain = {"id": f"act_kit_{self.made}", "capability_id": capability(operation, endpoint), "mode": "sync"}
        return wire.Action.model_validate({**plain, **members})

    async def submit(
        self, runtime: Runtime, action: wire.Action, context: MessageContext | None = None
    ) -> wire.ActionResult:
        answered = await runtime.submit(action, self.caller, context or MessageContext())
        if not isinstance(answered, wire.ActionResult):
            raise Unexpected("an action in sync mode was answered without a result")
        return answered

    async def approved(self, runtime: Runtime, action: wire.Action) -> wire.ActionResult:
        """Submit an action that waits for a decision, let the reviewer approve it, and return its result."""
        request = approval_request(await self.submit(runtime, action))
        await runtime.decide(decision(request, decision_id=f"decision:{action.id}"), reviewer())
        return await runtime.result(action.id, self.caller)

    async def settled(self, runtime: Runtime, action: wire.Action) -> wire.ActionResult:
        """Return the result of an action once it has ended."""
        async with runtime.watching(action.id, self.caller) as changed:
            while (await runtime.status(action.id, self.caller)).completed_at is None:
                await changed.wait()
                changed.clear()
        return await runtime.result(action.id, self.caller)

    async def read(self, runtime: Runtime, action: wire.Action, cursor: str | None = None, *, limit: int = 100) -> Page:
        """Read one page of chunks behind `cursor`."""
        page = await runtime.events(
            action.id, self.caller, cursor=cursor, limit=limit, kinds=["aip.stream.chunk"], include_chunks=True
        )
        return Page(
            sequences=[chunk.sequence for chunk in page.chunks],
            kinds=[chunk.kind for chunk in page.chunks],
            cursor=page.cursor,
            terminal=page.terminal,
        )

    async def read_until(self, runtime: Runtime, action: wire.Action, count: int) -> Page:
        """Read the first chunks once there are `count`."""
        async with runtime.watching(action.id, self.caller) as changed:
            while True:
                changed.clear()
                try:
                    page = await self.read(runtime, action)
                except ActionNotFound:
                    page = Page(sequences=[], kinds=[], cursor=None, terminal=False)
                if len(page.sequences) >= count:
                    return page
                await changed.wait()

    async def read_on(self, runtime: Runtime, action: wire.Action, cursor: str | None) -> Page:
        """Read everything behind `cursor`, two at a time, until the action has ended."""
        sequences: list[int] = []
        kinds: list[str] = []
        while True:
            page = await self.read(runtime, action, cursor, limit=2)
            sequences += page.sequences
            kinds += page.kinds
            cursor = page.cursor
            if page.terminal:
                return Page(sequences=sequences, kinds=kinds, cursor=cursor, terminal=True)

    def starts(self, ending: str) -> int:
        """Return how many mutating requests reached the path that ends so."""
        return sum(request.target.split("?")[0].endswith(ending) for request in self.provider.mutations)
