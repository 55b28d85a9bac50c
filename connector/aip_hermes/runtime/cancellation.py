"""Cancelling: what was not sent is not sent, what can be stopped is stopped once, what can't be is said.

| the action | cancelling it |
|---|---|
| waits for an approval | ends it, certain; its approval is revoked |
| waits in the queue or for its session, or reads before sending | ends it, certain: nothing was sent |
| was sent, capability supports cancel | the connector stops what it can, once; a mutation's outcome is uncertain |
| was sent, capability does not support cancel | refused; it goes on |
| answered, is being read back or stored | goes on to its result, which is the answer |
| ended | answers its result; nothing changes |

Source: runtime behaviour §10; design D8, D17, D22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from aip_hermes.errors import ActionFailed

__all__ = ["Cancelled", "Phase", "RunningAction", "RunningActions"]

Phase = Literal["before", "sending", "after"]
"""before: nothing was sent. sending: the request may have left. after: there is an outcome."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """An attempt that was cancelled. failure: the code, and whether the effect may have happened. evidence: what the
    connector said about stopping; None where it was not asked."""

    failure: ActionFailed
    reason: str | None
    evidence: Mapping[str, Any] | None = None


@dataclass(slots=True)
class RunningAction:
    """One attempt of this process. cancel_ms: how long stopping it at the provider may take. asked: whether somebody
    cancels it, with the reason; the first one to ask wakes who waits for that."""

    cancellable: bool
    cancel_ms: int
    phase: Phase = "before"
    asked: bool = False
    reason: str | None = None
    _waiting: Callable[[], None] | None = None

    def when_asked(self, wake: Callable[[], None]) -> None:
        """Call `wake` when it is asked to stop from now on."""
        self._waiting = wake

    def begin_sending(self) -> bool:
        """Enter the phase `sending`; False for one that was asked to stop before: then nothing may be sent."""
        if self.asked:
            return False
        self.phase = "sending"
        return True

    def ask(self, reason: str | None) -> bool:
        """Ask it to stop; False where that comes too late or can't be done any more."""
        if self.phase == "after" or (self.phase == "sending" and not self.cancellable):
            return False
        if not self.asked:
            self.asked, self.reason = True, reason
            if self._waiting is not None:
                self._waiting()
        return True


class RunningActions:
    """The attempts that run in this process, by tenant and Action ID."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], RunningAction] = {}
        self._asked_early: dict[tuple[str, str], list[str | None]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def find(self, *, tenant: str, action_id: str) -> RunningAction | None:
        """Return the running attempt of an action."""
        return self._running.get((tenant, action_id))

    def enter(self, running: RunningAction, *, tenant: str, action_id: str) -> None:
        """Make an attempt known; it hears at once of who asked before it was."""
        self._running[(tenant, action_id)] = running
        for reason in self._asked_early.get((tenant, action_id), ())[:1]:
            running.ask(reason)

    def leave(self, *, tenant: str, action_id: str) -> None:
        """Forget an attempt that has settled."""
        self._running.pop((tenant, action_id), None)

    @contextmanager
    def asking_early(self, reason: str | None, *, tenant: str, action_id: str) -> Iterator[None]:
        """Ask an attempt that is claimed and not known yet, should it enter within this context."""
        early = self._asked_early.setdefault((tenant, action_id), [])
        early.append(reason)
        try:
            yield
        finally:
            early.remove(reason)
            if not early:
                del self._asked_early[(tenant, action_id)]
