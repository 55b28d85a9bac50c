"""A runtime on a scripted connector, callers, and the fault that ends a process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance import people
from aip_hermes.cli.conformance.people import Crash, approval_request, authority
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Offer
from aip_hermes.database import Place, Store, open_store, store_place
from aip_hermes.runtime import Authorities, AuthorityEntry, Caller, MessageContext, Runtime, RuntimeLimits
from aip_hermes.runtime.store import KIND
from aip_hermes.telemetry import Meter, Spans
from tests.support import postgres
from tests.support.runtime_clock import ManualClock
from tests.support.runtime_connector import ScriptedConnector, capability

__all__ = [
    "Crash",
    "CrashAt",
    "Site",
    "action",
    "approval_request",
    "ask",
    "authority",
    "caller",
    "decision",
    "error_code",
    "requester",
    "reviewer",
]

READING = frozenset({"action:read", "approval:read"})
REVIEWING = READING | {"approval:export", "approval:sensitive"}

_numbers = count(1)


@dataclass
class CrashAt:
    """Faults that end the process at one point, once."""

    point: str | None = None
    reached: list[str] = field(default_factory=list)

    async def reach(self, point: str) -> None:
        self.reached.append(point)
        if point == self.point:
            self.point = None
            raise Crash(point)


def caller(
    principal: str = "agent:example:requester",
    *,
    tenant: str | None = "tenant-a",
    scopes: frozenset[str] = READING,
    invoke: tuple[str, ...] = ("*",),
) -> Caller:
    """Return an authenticated caller, a reading one of tenant-a unless said otherwise; the kind is the id's prefix."""
    return people.caller(principal, scopes=scopes, tenant=tenant, invoke=invoke)


def requester(**changes: Any) -> Caller:
    return caller("agent:example:requester", **changes)


def reviewer(**changes: Any) -> Caller:
    return caller(**{"principal": "human:example:reviewer", "scopes": REVIEWING, **changes})


def action(operation: str = "session_create", **members: Any) -> wire.Action:
    """Return an action with a fresh id and, for creates and the like, a usable input."""
    inputs: dict[str, Any] = {
        "session_create": {"body": {"id": "s1"}},
        "session_chat": {"session_id": "s1", "message": "hi"},
    }
    plain: dict[str, Any] = {
        "id": f"act_{next(_numbers):032x}",
        "capability_id": capability(operation),
        "input": inputs.get(operation, {"session_id": "s1"}),
    }
    return wire.Action.model_validate({**plain, **members})


def decision(request: wire.ApprovalRequest, by: Caller | None = None, **changes: Any) -> wire.ApprovalDecision:
    """Return an approving decision on `request`."""
    return people.decision(request, by, **{"decision_id": "decision:example:1", **changes})


@dataclass
class Site:
    """A data folder, its provider and its clock; `open` as often as a process starts there."""

    folder: Path
    connector: ScriptedConnector = field(default_factory=ScriptedConnector)
    clock: ManualClock = field(default_factory=ManualClock)
    faults: CrashAt = field(default_factory=CrashAt)
    authorities: Sequence[AuthorityEntry] = (authority(),)
    limits: RuntimeLimits = field(default_factory=RuntimeLimits)
    meter: Meter | None = None
    spans: Spans | None = None
    approval_waits: Callable[[Mapping[str, Any]], None] | None = None
    published: Callable[[Sequence[Offer]], Catalog] = Catalog
    starts: int = 0
    shared: str | None = field(default_factory=postgres.another_database)

    @property
    def path(self) -> Path:
        return self.folder / "runtime.sqlite3"

    @property
    def place(self) -> Place:
        """Where the store is: the file, or the shared database that `shared` names."""
        return self.path if self.shared is None else store_place(self.shared)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Runtime]:
        """Start the runtime; leaving it after a crash writes nothing.

        What a crash left on a shared store is taken over once its lease has ended, so a later start is that much later.
        """
        if self.shared is not None and self.starts:
            self.clock.advance(self.limits.lease_ms)
        self.starts += 1
        self.connector.faults = self.faults
        runtime = await Runtime.open(
            store=self.place,
            catalog=self.published(self.connector.offers()),
            connectors=[self.connector],
            authorities=Authorities(self.authorities),
            clock=self.clock,
            faults=self.faults,
            limits=self.limits,
            meter=self.meter,
            spans=self.spans,
            approval_waits=self.approval_waits,
        )
        try:
            yield runtime
        finally:
            await runtime.aclose()

    async def rows(self, query: str, **params: object) -> list[dict[str, Any]]:
        """Look into the store while no runtime is open."""
        async with self.store(read_only=True) as database:
            return await database.read(lambda connection: connection.execute(query, params))

    async def edit(self, query: str, **params: object) -> None:
        """Change the store behind the runtime's back."""
        async with self.store(read_only=False) as database:
            await database.write(lambda connection: connection.execute(query, params))

    def store(self, *, read_only: bool) -> Store:
        """Return the store, for who looks into it or changes it while no runtime is open."""
        return open_store(self.place, KIND, read_only=read_only)

    async def submit(self, runtime: Runtime, given: wire.Action, by: Caller | None = None) -> wire.ActionResult:
        answered = await runtime.submit(given, by or requester(), MessageContext())
        assert isinstance(answered, wire.ActionResult)
        return answered


async def ask(site: Site, runtime: Runtime, **members: Any) -> tuple[wire.Action, wire.ApprovalRequest]:
    """Submit a delete under the key `D`; return it and the approval that it waits for."""
    given = action("session_delete", **{"idempotency_key": "D", **members})
    return given, approval_request(await site.submit(runtime, given))


def error_code(result: wire.ActionResult) -> str | None:
    """Return the code of a result's error."""
    return result.error.code if result.error else None
