"""What other workers of a shared store commit, passed on to those of this process who wait for it.

Nothing depends on it but time: whoever waits looks into the store when the waiting is over.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from aip_hermes.database import MISSED, Connection, StoreFailure
from aip_hermes.database.connection import Note
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.notices import CANCEL_ASKED, CHANGED
from aip_hermes.runtime.store import QUERIES, from_json

__all__ = ["Hearing"]

log = structlog.get_logger(__name__)


class Hearing:
    """Given to the store, which calls it with each note of another worker. start: runs work in the background."""

    def __init__(self) -> None:
        self._footing: Footing | None = None
        self._start: Callable[[Coroutine[Any, Any, None]], object] | None = None

    def open(self, footing: Footing, start: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Begin to pass on; what was heard before concerned nobody."""
        self._footing, self._start = footing, start

    def __call__(self, note: Note) -> None:
        footing, start = self._footing, self._start
        if footing is None or start is None:
            return
        name, facts = note
        if name == MISSED:
            footing.queued.set()
            footing.parked.set()
            footing.watchers.all_changed()
            for tenant, action_id in footing.finished.waited_for():
                start(self._tell(footing, tenant, action_id))
        elif name == CANCEL_ASKED:
            running = footing.running.find(tenant=facts["tenant"], action_id=facts["action_id"])
            if running is not None:
                running.ask(facts["reason"])
        elif name == CHANGED:
            footing.queued.set()
            footing.parked.set()
            footing.watchers.changed(tenant=facts["tenant"], action_id=facts["action_id"])
            if (facts["tenant"], facts["action_id"]) in footing.finished.waited_for():
                start(self._tell(footing, facts["tenant"], facts["action_id"]))

    async def _tell(self, footing: Footing, tenant: str, action_id: str) -> None:
        """Hand on the stored end of an action, if it has one."""
        address = {"tenant": tenant, "action_id": action_id}

        def stored(connection: Connection) -> Any:
            rows = connection.execute(QUERIES["fetch_action"], address)
            ended = rows and (rows[0]["settled_at"] is not None or rows[0]["state"] == "pending_approval")
            return from_json(rows[0]["result"]) if ended else None

        try:
            found = await footing.database.read(stored)
        except StoreFailure as exc:
            log.warning("hearing.store_failed", action_id=action_id, error_type=type(exc).__name__)
            return
        if found is not None:
            footing.finished.tell(**address, stored=found)
