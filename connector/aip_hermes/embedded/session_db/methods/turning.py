"""Methods that begin a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.embedded.session_db.ground import TurnGround, begin, ground_of
from aip_hermes.embedded.session_db.sessions import NewSession
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["TurnMethods"]


class TurnMethods(StoreFile):
    """What a turn reads first, and its question."""

    async def get_turn_ground(self, session_id: str, *, follows_compression: bool = True) -> TurnGround:
        """Return where a turn of this conversation would be, and how that row stands."""
        return await self.read(lambda c: ground_of(c, session_id, follows_compression=follows_compression))

    async def begin_turn(
        self,
        ground: TurnGround,
        question: Mapping[str, Any],
        *,
        turn_lease_holder: str | None,
        turn_lease_ttl_seconds: float = 300.0,
        row: Mapping[str, Any] | None = None,
        follows_compression: bool = True,
    ) -> int:
        """Take the turn lease and append the question, in one transaction; returns its row id.

        ground: as it was when the conversation was read. question: columns of the user row. row: columns of the
        session's row where there is none yet. The turn's last record_reply lets the lease go, or
        release_session_turn_lease does.
        Raises ConversationTaken where another has the lease, ConversationMoved where the conversation has gone on since
        it was read, UnknownSession, CompressionSessionClosedError; then nothing is written.
        """
        now = self._now()
        new = None if row is None else NewSession(id=ground.session_id, started_at=now, **row)
        return await self.write(
            lambda c: begin(
                c,
                ground,
                question,
                holder=turn_lease_holder,
                new=new,
                now=now,
                ttl_s=turn_lease_ttl_seconds,
                follows_compression=follows_compression,
            )
        )
