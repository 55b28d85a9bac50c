"""Methods that keep the turns of one conversation apart, between processes too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.embedded.session_db import leases
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["LeaseMethods"]

T = TypeVar("T")

_TTL_S: Final = 300.0


class LeaseMethods(StoreFile):
    """Turn leases: one holder per conversation, whichever row of its chain is named and whether or not it exists.

    holder: any text; one with `pid=<number>` (and `since=`, `host=` as process_holder writes them) is taken over at
    once when that process is gone, any other when its time is over. ttl_seconds: at least 0.1.
    """

    async def try_acquire_session_turn_lease(
        self, session_id: str, holder: str, *, ttl_seconds: float = _TTL_S, patience_s: float | None = None
    ) -> bool:
        """Take the lease, or take one's own again; False where another has it.

        patience_s: how long to wait for a store that is locked; then False. None: as long as the store does.
        """
        now = self._now()

        def take(connection: Connection) -> bool:
            subject = leases.conversation_of(connection, session_id)
            return leases.take(connection, "turn", subject, holder, now=now, ttl_s=ttl_seconds)

        if patience_s is None:
            return await self.write(take)
        return await self._patiently(take, patience_s, otherwise=False)

    async def acquire_session_turn_lease(
        self,
        session_id: str,
        holder: str,
        *,
        ttl_seconds: float = _TTL_S,
        wait_seconds: float = 1800.0,
        poll_interval_seconds: float = 1.0,
        on_wait: Callable[[float], object] | None = None,
        wait_notice_interval_seconds: float = 15.0,
        should_abort: Callable[[], bool] | None = None,
        acquire_patience_s: float = 0.5,
    ) -> bool:
        """Take the lease, waiting for whoever has it; False after `wait_seconds`, or where `should_abort` says so.

        on_wait: told, in seconds, how long it has waited: once at the beginning, then at each notice interval.
        A cancelled wait holds nothing.
        """
        begun = self._clock.monotonic()
        next_notice = 0.0
        try:
            while True:
                taken = await self.try_acquire_session_turn_lease(
                    session_id, holder, ttl_seconds=ttl_seconds, patience_s=acquire_patience_s
                )
                if taken:
                    return True
                waited = self._clock.monotonic() - begun
                if waited >= wait_seconds or (should_abort is not None and should_abort()):
                    # A try that was given up may have succeeded after all.
                    await self.release_session_turn_lease(session_id, holder)
                    return False
                if on_wait is not None and waited >= next_notice:
                    on_wait(waited)
                    next_notice = waited + wait_notice_interval_seconds
                await self._clock.sleep(min(poll_interval_seconds, max(0.0, wait_seconds - waited)))
        except asyncio.CancelledError:
            await asyncio.shield(self.release_session_turn_lease(session_id, holder))
            raise

    async def refresh_session_turn_lease(self, session_id: str, holder: str, *, ttl_seconds: float = _TTL_S) -> bool:
        """Extend the lease; False where it is not the holder's any more."""
        now = self._now()

        def renew(connection: Connection) -> bool:
            subject = leases.conversation_of(connection, session_id)
            return leases.renew(connection, "turn", subject, holder, now=now, ttl_s=ttl_seconds)

        return await self.write(renew)

    async def release_session_turn_lease(self, session_id: str, holder: str) -> bool:
        """Let go; False where there was nothing of the holder's. Idempotent."""
        return await self.write(
            lambda c: leases.free(c, "turn", leases.conversation_of(c, session_id), holder),
        )

    async def get_session_turn_lease_holder(self, session_id: str) -> str | None:
        """Return who holds the conversation now; None where nobody does."""
        now = self._now()
        return await self.read(
            lambda c: leases.holder_of(c, "turn", leases.conversation_of(c, session_id), now=now),
        )

    async def _patiently(self, function: Callable[[Connection], T], patience_s: float, *, otherwise: T) -> T:
        writing = asyncio.ensure_future(self.write(function))
        try:
            await asyncio.wait({writing}, timeout=max(0.0, patience_s))
        except asyncio.CancelledError:
            writing.cancel()
            raise
        if not writing.done():
            writing.cancel()
            return otherwise
        try:
            return writing.result()
        except StoreUnavailable as exc:
            if exc.kind != "locked":
                raise
            return otherwise
