"""What every part of the runtime stands on: one store, one clock, and what the parts of one process tell each other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.database import Store
from aip_hermes.ports import Clock, Faults, NewId, new_id
from aip_hermes.runtime.cancellation import RunningActions
from aip_hermes.runtime.limits import RuntimeLimits
from aip_hermes.runtime.retry import Jitter, no_jitter
from aip_hermes.runtime.waiting import Finished, Watchers
from aip_hermes.telemetry import Meter, NoMeter, NoSpans, Spans

__all__ = ["Footing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Footing:
    """Given once by whoever opens the runtime; every part takes it as its first argument.

    finished: who waits here for an action's end. watchers: who follows an action. running: the attempts of this
    process. queued: set when the queue's worker should look. None of these outlives the process.

    worker: names this process in the leases of what it works on; another one after each start. jitter: how much longer
    than the policy says a failed try waits. meter, spans: who counts and who follows what happens here. alone: no other
    process works on the store.
    """

    database: Store
    clock: Clock
    new_id: NewId
    faults: Faults
    limits: RuntimeLimits
    finished: Finished = field(default_factory=Finished)
    watchers: Watchers = field(default_factory=Watchers)
    running: RunningActions = field(default_factory=RunningActions)
    queued: asyncio.Event = field(default_factory=asyncio.Event)
    parked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after each approval that was asked."""
    not_ended: dict[str, int] = field(default_factory=dict)
    """Approvals whose time was up and that could not be ended → when that is tried again, Unix milliseconds."""
    alone: bool = True
    worker: str = field(default_factory=lambda: new_id("worker:"))
    jitter: Jitter = no_jitter
    meter: Meter = field(default_factory=NoMeter)
    spans: Spans = field(default_factory=NoSpans)

    def ended(self, *, tenant: str, action_id: str, stored: Mapping[str, Any]) -> None:
        """Tell who waits for the end of an action, or for its approval, and who follows it; after the commit.

        stored: what is kept of its result.
        """
        self.finished.tell(tenant=tenant, action_id=action_id, stored=stored)
        self.watchers.changed(tenant=tenant, action_id=action_id)

    def now_ms(self) -> int:
        """Return Unix time in milliseconds."""
        return self.clock.now_ms()
