"""A real runtime and connector before an embedded endpoint, with a relay that loses answers and a clock to move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.embedded import Model
from aip_hermes.hermes import HermesConnector
from aip_hermes.hermes.reconcile import QuietTimes
from aip_hermes.ids import ActionId
from aip_hermes.ports import NoFaults, SystemClock
from aip_hermes.runtime import Authorities, Caller, MessageContext, Runtime
from aip_hermes.secret import Secret
from tests.support.cutting_relay import Cut, CuttingRelay
from tests.support.embedded_endpoint import KEY, Running, served
from tests.support.hermes_calls import endpoint_of
from tests.support.runtime_site import approval_request, authority, caller, decision

__all__ = ["OWNER", "Losing", "LostAnswers", "MovableClock", "losing", "lost_answers"]

OWNER = caller(scopes=frozenset({"action:read", "action:write", "approval:read", "events:read"}))

_numbers = count(1)


class MovableClock(SystemClock):
    """The machine's time, moved on by `advance`."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def advance(self, seconds: float) -> None:
        self._ahead_ms += round(seconds * 1000)


@dataclass(frozen=True, kw_only=True)
class Losing:
    """relay: between the endpoint and the connector."""

    runtime: Runtime
    relay: CuttingRelay
    clock: MovableClock = field(default_factory=MovableClock)

    async def act(
        self, operation: str, values: Mapping[str, Any], *, cut: Cut | None = None, approve: bool = False
    ) -> wire.ActionResult:
        """Submit an action whose answer is lost at `cut`; return its result."""
        number = next(_numbers)
        action = wire.Action.model_validate(
            {
                "id": f"act_{number:032x}",
                "capability_id": f"cap:hermes_agent:primary:{operation}",
                "idempotency_key": f"key-{number}",
                "input": dict(values),
            }
        )
        self.relay.cut = None if approve else cut
        answered = await self.runtime.submit(action, OWNER, MessageContext())
        assert isinstance(answered, wire.ActionResult)
        if approve:
            self.relay.cut = cut
            await self.runtime.decide(decision(approval_request(answered)), REVIEWER)
            answered = await self.runtime.result(ActionId(action.id), OWNER)
        return answered

    async def reconcile(self, result: wire.ActionResult, by: Caller = OWNER) -> dict[str, Any]:
        """Reconcile an action, and check that this changed nothing at the endpoint nor in the result."""
        action_id = ActionId(str(result.action_id))
        before = list(self.relay.mutations)
        verdict = await self.runtime.reconciliations.reconcile(action_id, by)
        assert self.relay.mutations == before
        assert (await self.runtime.result(action_id, OWNER)).wire() == result.wire()
        return verdict


@dataclass(frozen=True, kw_only=True)
class LostAnswers(Losing):
    """hermes: the endpoint as it is, for arranging and looking."""

    hermes: Running


REVIEWER = caller(
    "human:example:reviewer", scopes=frozenset({"approval:read", "approval:export", "approval:sensitive"})
)


@asynccontextmanager
async def losing(
    folder: Path, url: str, *, key: str = KEY, quiet: QuietTimes | None = None, within_s: float = 60
) -> AsyncIterator[Losing]:
    """Yield a runtime whose answers from the endpoint at `url` can be lost. within_s: all that a test does there."""
    clock = MovableClock()
    async with CuttingRelay(url) as relay:
        endpoint = endpoint_of(relay.url, key=Secret(key))
        connector = HermesConnector([endpoint], clock=clock, faults=NoFaults(), quiet=quiet or QuietTimes())
        async with (
            connector,
            await Runtime.open(
                store=folder / "aip" / "runtime.sqlite3",
                catalog=Catalog(connector.offers()),
                connectors=[connector],
                authorities=Authorities((authority(),)),
                clock=clock,
            ) as runtime,
            asyncio.timeout(within_s),
        ):
            yield Losing(runtime=runtime, relay=relay, clock=clock)


@asynccontextmanager
async def lost_answers(
    folder: Path, *, model: Model | None = None, quirks: Iterable[str] = (), quiet: QuietTimes | None = None
) -> AsyncIterator[LostAnswers]:
    """Yield the whole site; reading times of the endpoint are the machine's."""
    async with (
        served(folder, model=model, quirks=quirks) as hermes,
        losing(folder, str(hermes.client.base_url), quiet=quiet) as site,
    ):
        yield LostAnswers(runtime=site.runtime, relay=site.relay, clock=site.clock, hermes=hermes)
