"""What every part of the runtime stands on: one store, one clock, and what the parts of one process tell each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from aip_hermes.database import Database
from aip_hermes.ports import Clock, Faults, NewId
from aip_hermes.runtime.cancellation import RunningActions
from aip_hermes.runtime.limits import RuntimeLimits
from aip_hermes.runtime.waiting import Finished, Watchers

__all__ = ["Footing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Footing:
    """Given once by whoever opens the runtime; every part takes it as its first argument.

    The last four hold nothing that outlives the process. finished: who waits here for an action's end. watchers: who
    follows an action. running: the attempts of this process. queued: set after each enqueue.
    """

    database: Database
    clock: Clock
    new_id: NewId
    faults: Faults
    limits: RuntimeLimits
    finished: Finished = field(default_factory=Finished)
    watchers: Watchers = field(default_factory=Watchers)
    running: RunningActions = field(default_factory=RunningActions)
    queued: asyncio.Event = field(default_factory=asyncio.Event)

    def now_ms(self) -> int:
        """Return Unix time in milliseconds."""
        return self.clock.now_ms()
