"""One at a time per session: turns, forks and deletes (design D13).

In this process calls wait in line, first come first served; the row in the store says who holds the session, and keeps
a session closed to exclusive use after a turn that ended uncertain, across restarts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aip_hermes import wire
from aip_hermes.contract.handler import Call, SerialKey
from aip_hermes.database import Connection
from aip_hermes.ids import ActionId
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Busy", "GoesOn", "Held", "SerialLocks", "end_work", "open_session", "release_lock"]


_LOOK_MS: Final = 100

GoesOn = Literal["uncertain_turn", "run"]
"""What keeps a session closed to exclusive use after its action has ended."""

_WHY: Final[Mapping[GoesOn, tuple[str, str, str]]] = {
    "uncertain_turn": (
        "an earlier turn of the session ended uncertain and may still be going on; nothing was sent",
        "closed_by_uncertain_turn",
        "previous_uncertain",
    ),
    "run": (
        "a run that was started in the session goes on; nothing was sent: query the run, its end opens the session",
        "closed_by_run",
        "started_by",
    ),
}
"""Sentence, reason, and the member of the details that names the action."""


class Busy(Exception):
    """The lock was not had. details: JSON for the connector's error. retry_after_ms: when a new try may succeed."""

    def __init__(self, message: str, *, details: Mapping[str, Any], retry_after_ms: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details)
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A lock in hand. previous_uncertain: the turn of this session that may still be running at the provider."""

    key: SerialKey
    previous_uncertain: ActionId | None


@dataclass(slots=True)
class _Line:
    holder: Call | None = None
    waiting: deque[tuple[asyncio.Future[None], Call]] = field(default_factory=deque)


class SerialLocks:
    """The lines of all sessions. A call waits at most the published queue delay."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing
        self._wait_ms = footing.limits.queue_delay_ms
        self._lines: dict[str, _Line] = {}

    async def acquire(self, key: SerialKey, call: Call, *, tenant: str) -> Held:
        """Wait for the session.

        Raises: Busy after `wait_ms`; at once for a call made on behalf of the holder (it would wait for itself) and for
        exclusive use of a session that stays closed longer than the call may wait.
        """
        started = self._footing.clock.monotonic()
        await self._stand_in_line(key, call)
        try:
            while True:
                row = await self._take_whole(key, call, tenant=tenant)
                if isinstance(row, Held):
                    return row
                closed_for_ms = max((row.get("closed_until") or 0) - self._footing.now_ms(), 0)
                left_ms = self._wait_ms - (self._footing.clock.monotonic() - started) * 1000
                held_elsewhere = row["holder_action"] is not None
                if held_elsewhere and not self._footing.alone and left_ms > 0:
                    # By another worker: its line is not ours, so we look again.
                    await self._footing.clock.sleep(min(_LOOK_MS, left_ms) / 1000)
                    continue
                if held_elsewhere or closed_for_ms > left_ms:
                    raise self._closed(key, row, closed_for_ms)
                await self._footing.clock.sleep(closed_for_ms / 1000)
        except BaseException:
            self.free(key)
            raise

    def free(self, key: SerialKey) -> None:
        """Let the next call of the line in. The row must have been given back (`release_lock`)."""
        line = self._lines.get(key.key)
        if line is None:
            return
        while line.waiting:
            turn, call = line.waiting.popleft()
            if not turn.done():
                line.holder = call
                turn.set_result(None)
                return
        del self._lines[key.key]

    async def _stand_in_line(self, key: SerialKey, call: Call) -> None:
        line = self._lines.setdefault(key.key, _Line())
        if line.holder is None:
            line.holder = call
            return
        if _on_behalf_of(call, line.holder):
            raise Busy(
                "the session is held by the very call that this one is made for; waiting would never end",
                details={**key.subject, "reason": "held_by_own_call"},
                retry_after_ms=None,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append((turn, call))
        try:
            await within(self._wait_ms / 1000, asyncio.shield(turn), clock=self._footing.clock)
        except Overrun:
            if turn.done():  # the lock came in the last moment
                return
            turn.cancel()
            raise Busy(
                "another call holds the session; nothing was sent",
                details={**key.subject, "reason": "held", "waited_ms": self._wait_ms},
                retry_after_ms=1000,
            ) from None
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.free(key)
            turn.cancel()
            raise

    async def _take_whole(self, key: SerialKey, call: Call, *, tenant: str) -> Held | dict[str, Any]:
        """Take the row, or leave none behind: a cancelled caller gives back what it may just have taken."""
        taking = asyncio.ensure_future(
            self._footing.database.write(lambda connection: self._take(connection, key, call, tenant=tenant))
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait((taking,))
            address = {"tenant": tenant, "action_id": call.action_id}
            await self._footing.database.write(
                lambda connection: connection.execute(QUERIES["give_lock_back"], address)
            )
            raise

    def _take(self, connection: Connection, key: SerialKey, call: Call, *, tenant: str) -> Held | dict[str, Any]:
        now = self._footing.now_ms()
        taken = connection.execute(
            QUERIES["take_lock"],
            {
                "serial_key": key.key,
                "tenant": tenant,
                "action_id": call.action_id,
                "use_as": key.use,
                "now": now,
                "hold_ms": round(key.hold_s * 1000),
            },
        )
        if not taken:
            return connection.execute(QUERIES["fetch_lock"], {"serial_key": key.key})[0]
        return Held(key=key, previous_uncertain=_still_uncertain(taken[0], now=now))

    def _closed(self, key: SerialKey, row: Mapping[str, Any], closed_for_ms: int) -> Busy:
        if row["holder_action"] is not None:
            return Busy(
                "another call holds the session; nothing was sent",
                details={**key.subject, "reason": "held"},
                retry_after_ms=1000,
            )
        message, reason, names = _WHY[row["closed_by"] or "uncertain_turn"]
        return Busy(
            message,
            details={
                **key.subject,
                "reason": reason,
                names: row["uncertain_action"],
                "closed_until": wire.rfc3339(row["closed_until"]),
            },
            retry_after_ms=closed_for_ms,
        )


def release_lock(
    connection: Connection,
    *,
    tenant: str,
    action_id: str,
    now: int,
    goes_on: GoesOn | None = None,
    work: str | None = None,
) -> None:
    """Give back whatever the action holds; a turn that may go on closes its session to exclusive use for its hold time.

    goes_on: what may, None for nothing. work: the run's name, where it has one.
    """
    params = {"tenant": tenant, "action_id": action_id}
    if goes_on is not None:
        closing = {**params, "now": now, "work": work, "closed_by": goes_on}
        connection.execute(QUERIES["close_session"], closing)
    connection.execute(QUERIES["give_lock_back"], params)
    if connection.changes:
        connection.execute(QUERIES["drop_idle_locks"], {"now": now})


def end_work(connection: Connection, work: str, *, now: int) -> None:
    """Open the session that a run kept closed, as far as nothing else keeps it closed: its end was seen (D13)."""
    connection.execute(QUERIES["end_work"], {"work": work})
    if connection.changes:
        connection.execute(QUERIES["drop_idle_locks"], {"now": now})


def open_session(connection: Connection, serial_key: str, *, action_id: str, now: int) -> bool:
    """Open a session that an uncertain turn keeps closed, whose end was seen (D13); whether it was that turn's.

    What closed it after that turn still does.
    """
    params = {"serial_key": serial_key, "action_id": action_id}
    connection.execute(QUERIES["end_uncertain_turn"], params)
    opened = connection.changes > 0
    connection.execute(QUERIES["forget_uncertain_turn"], params)
    if opened:
        connection.execute(QUERIES["drop_idle_locks"], {"now": now})
    return opened


def _still_uncertain(row: Mapping[str, Any], *, now: int) -> ActionId | None:
    """Return the turn that ended uncertain and may still run; a run that goes on is nothing uncertain."""
    for action, until, by in (
        (row["uncertain_action"], row["closed_until"], row["closed_by"]),
        (row["before_action"], row["before_until"], row["before_by"]),
    ):
        if action is not None and (until or 0) > now and by != "run":
            return ActionId(action)
    return None


def _on_behalf_of(call: Call, holder: Call) -> bool:
    """Whether `call` belongs to the same trace as `holder`, or its delegation chain passes through the holder."""
    if call.trace_id is not None and call.trace_id == holder.trace_id:
        return True
    chain: Sequence[Mapping[str, Any]] = call.delegation_chain
    depth = len(holder.delegation_chain)
    if len(chain) <= depth or list(chain[:depth]) != list(holder.delegation_chain):
        return False
    return bool(chain[depth]["from"]["id"] == holder.actor.principal_id)
