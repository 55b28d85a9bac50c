"""Methods that compress a transcript, and the locks that keep two compressors apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import compression, leases
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["CompressionMethods"]

_TTL_S: Final = 300.0


class CompressionMethods(StoreFile):
    """Locks and publications of compressions; holders are as those of turn leases."""

    async def try_acquire_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = _TTL_S) -> bool:
        """Take the lock, or take one's own again; False where somebody else compresses the session."""
        now = self._now()
        return await self.write(lambda c: leases.take(c, "compression", session_id, holder, now=now, ttl_s=ttl_seconds))

    async def refresh_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = _TTL_S) -> bool:
        """Extend the lock; False where it is not the holder's any more."""
        now = self._now()
        return await self.write(
            lambda c: leases.renew(c, "compression", session_id, holder, now=now, ttl_s=ttl_seconds)
        )

    async def release_compression_lock(self, session_id: str, holder: str) -> bool:
        """Let go; False where there was nothing of the holder's. Idempotent."""
        return await self.write(lambda c: leases.free(c, "compression", session_id, holder))

    async def get_compression_lock_holder(self, session_id: str) -> str | None:
        """Return who compresses the session now; None where nobody does."""
        now = self._now()
        return await self.read(lambda c: leases.holder_of(c, "compression", session_id, now=now))

    async def archive_and_compact(
        self,
        session_id: str,
        compacted: Sequence[Mapping[str, Any]],
        model_config_patch: Mapping[str, Any] | None = None,
        watermark: int | None = None,
        lock_holder: str | None = None,
        *,
        covered: Collection[int] = (),
        turn_lease_holder: str | None = None,
    ) -> int:
        """Compress in place, in one transaction; returns how many rows are live afterwards.

        compacted: what stands in the place of the live rows, which stay readable as hidden ones and stay searchable.
        watermark: row id of the newest message that was compressed; messages that came later follow behind, but not
        those that are `covered`: compressed, too.
        model_config_patch: members to set; None takes one away. A failure noted before is forgotten.
        Raises ValueError for an empty list, UnknownSession, CompressionSessionClosedError, CompressionSessionBusyError
        where the lock is not `lock_holder`'s, SessionTurnLeaseLostError; then nothing has changed.
        """
        now = self._now()

        def archive(connection: Connection) -> int:
            leases.check_turn_lease(connection, session_id, turn_lease_holder, now=now)
            live = compression.archive_and_compact(
                connection,
                session_id,
                compacted,
                now=now,
                watermark=watermark,
                covered=covered,
                lock_holder=lock_holder,
                model_config_patch=model_config_patch,
            )
            return len(live)

        return await self.write(archive)

    async def publish_compression_child(
        self,
        parent_session_id: str,
        child_session_id: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        watermark: int | None = None,
        covered: Collection[int] = (),
        lock_holder: str | None = None,
        turn_lease_holder: str | None = None,
    ) -> int:
        """End the parent as `compression` and insert the child that goes on with `messages`, in one transaction;
        returns how many messages the child has.

        The child inherits who and where the parent was; a title becomes the next of its lineage. watermark, covered: as
        above.
        Raises ValueError for an empty list, UnknownSession, SessionExists, CompressionSessionBusyError (the parent has
        ended, or the lock is not `lock_holder`'s), SessionTurnLeaseLostError; then the parent stays as it was.
        """
        now = self._now()

        def publish(connection: Connection) -> int:
            leases.check_turn_lease(connection, parent_session_id, turn_lease_holder, now=now)
            rows = compression.publish_child(
                connection,
                parent_session_id,
                child_session_id,
                messages,
                now=now,
                watermark=watermark,
                covered=covered,
                lock_holder=lock_holder,
            )
            return len(rows)

        return await self.write(publish)
