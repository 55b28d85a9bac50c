"""Each message once: its id is taken for as long as its `sent_at` is inside the window.

The id of a message with an action travels with the action: it is stored in the first transaction that the action makes
anyway, before anything is sent for a mutation, with the end of a safe read; where there is none, in one of its own
before the answer. Until then this process remembers it. What a crash leaves unstored has done nothing: a safe read has
left no record, so its message may come again. A tenant's ids are its own: nobody takes or finds those of another one.
Source: runtime behaviour §8; design §3; the issue on a runtime that never lies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from aip_hermes import wire
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.runtime.caller import Arrival, Caller
from aip_hermes.runtime.failures import MessageReplayed
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import QUERIES

__all__ = ["MessageClaim", "Messages"]

T = TypeVar("T")

_SWEEP_MS: Final = 1000


@dataclass(slots=True)
class MessageClaim:
    """The id of a message under way. sweeps: taking it drops those whose window has passed. stored: by the transaction
    that runs, or an earlier one.
    """

    tenant: str
    message_id: str
    expires_at: int
    now: int
    sweeps: bool = True
    stored: bool = False

    def look(self, connection: Connection) -> None:
        """Refuse an id that is known. Raises: MessageReplayed."""
        asked = {**self._address, "now": self.now}
        if not self.stored and connection.execute(QUERIES["find_message"], asked):
            raise _replayed()

    def store(self, connection: Connection) -> None:
        """Take the id. Raises: MessageReplayed."""
        if not self.stored:
            if not self.take(connection):
                raise _replayed()
            self.stored = True
        elif connection.engine == "postgres":
            # The transaction that took it may be this very one, undone and run again.
            self.take(connection)

    def take(self, connection: Connection) -> bool:
        """Return whether the id was free."""
        if self.sweeps:
            connection.execute(QUERIES["drop_expired_messages"], {"now": self.now})
        taken = {**self._address, "expires_at": self.expires_at, "now": self.now}
        return bool(connection.execute(QUERIES["claim_message"], taken))

    @property
    def _address(self) -> dict[str, str]:
        return {"tenant": self.tenant, "message_id": self.message_id}


class Messages:
    """The messages of this process that are under way, and those that the store knows."""

    def __init__(self, footing: Footing) -> None:
        self._footing = footing
        self._under_way: set[tuple[str, str]] = set()
        self._swept_at = 0

    async def claim(self, arrival: Arrival, caller: Caller) -> None:
        """Take a message id at once. Raises: MessageReplayed."""
        if not await self._footing.database.write(self._claim(arrival, caller).take):
            raise _replayed()

    async def once(
        self, arrival: Arrival | None, caller: Caller, work: Callable[[MessageClaim | None], Awaitable[T]]
    ) -> T:
        """Return what `work` returns; when it ends, however it ends, the id is taken.

        Raises: MessageReplayed; then the work has done nothing, or answered from the store.
        """
        if arrival is None:
            return await work(None)
        claim = self._claim(arrival, caller)
        under_way = (claim.tenant, claim.message_id)
        if under_way in self._under_way:
            raise _replayed()
        self._under_way.add(under_way)
        try:
            answered = await self._worked(claim, work)
            if not claim.stored:
                await self._footing.database.write(claim.store)
            return answered
        finally:
            self._under_way.discard(under_way)

    async def _worked(self, claim: MessageClaim, work: Callable[[MessageClaim | None], Awaitable[T]]) -> T:
        try:
            return await work(claim)
        except MessageReplayed:
            raise
        except Exception as exc:
            # What was stored may have been undone with its transaction, so it is asked again.
            free = True
            with suppress(StoreFailure):
                free = await self._footing.database.write(claim.take)
            if not free and not claim.stored:
                raise _replayed() from exc
            raise

    def _claim(self, arrival: Arrival, caller: Caller) -> MessageClaim:
        now, limits = self._footing.now_ms(), self._footing.limits
        if not now - limits.past_ms <= arrival.sent_at_ms <= now + limits.ahead_ms:
            raise MessageReplayed(
                "sent_at is outside the accepted window; check the clock and send a new message",
                details={"server_time": wire.rfc3339(now)},
            )
        # Whoever takes an id takes over one past its window, so a look a second is enough to be rid of the others.
        sweeps = abs(now - self._swept_at) >= _SWEEP_MS
        if sweeps:
            self._swept_at = now
        return MessageClaim(
            tenant=caller.tenant_id or "",
            message_id=str(arrival.message_id),
            expires_at=arrival.sent_at_ms + limits.past_ms,
            now=now,
            sweeps=sweeps,
        )


def _replayed() -> MessageReplayed:
    return MessageReplayed("this message id was used before; a retry needs a new one and the same Action ID")
