"""Methods on signs of life, and on flags of a conversation."""

from __future__ import annotations

from typing import Any

from aip_hermes.embedded.session_db import sessions, settings
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["ActivityMethods"]


class ActivityMethods(StoreFile):
    """Activity of a row; flags act on each row that compressions cut a conversation into."""

    async def touch_session_activity(
        self,
        session_id: str,
        ts: float | None = None,
        *,
        description: str | None = None,
        provenance: str | None = None,
    ) -> None:
        """Note a sign of life, never earlier than the last one.

        description: at most 120 characters are kept. provenance: agent.compression, agent.compression_timeout or
        agent.compression_cooldown; anything else is unknown.
        """
        at = self._now() if ts is None else float(ts)
        await self.write(
            lambda c: settings.note_activity(c, session_id, at=at, description=description, provenance=provenance)
        )

    async def clear_session_activity_labels(self, session_id: str) -> None:
        """Forget what a session was busy with; the time stays."""
        await self.write(lambda c: c.execute(QUERIES["clear_activity_labels"], {"id": scrubbed(session_id)}))

    async def get_session_activity(self, session_id: str) -> dict[str, Any] | None:
        """Return what is known of the last sign of life, or None for an unknown id.

        `last_activity_at` (also `last_activity_ts`), None where there was none; `last_activity_description` (also
        `last_activity_desc`, `description`), empty where there is none; `last_activity_provenance` (also `provenance`);
        `seconds_since_activity`.
        """
        now = self._now()
        row = await self.read(lambda c: sessions.fetch(c, session_id))
        return None if row is None else settings.activity_of(row, now=now)

    async def set_session_archived(self, session_id: str, archived: bool) -> bool:
        """Put a conversation away, or take it out; False for an unknown id."""
        return await self._set_flag(session_id, "archived", archived)

    async def set_session_pinned(self, session_id: str, pinned: bool) -> bool:
        """Keep a conversation in sight, or not; False for an unknown id."""
        return await self._set_flag(session_id, "pinned", pinned)

    async def set_session_hidden(self, session_id: str, hidden: bool) -> bool:
        """Leave a conversation out of listings, or not; False for an unknown id."""
        return await self._set_flag(session_id, "hidden", hidden)

    async def set_session_read(self, session_id: str, read: bool = True) -> bool:
        """Note that a conversation was read up to now, or that it is unread; False for an unknown id."""
        return await self._set_flag(session_id, "read", read)

    async def _set_flag(self, session_id: str, flag: settings.Flag, value: bool) -> bool:
        now = self._now()
        return await self.write(lambda c: settings.set_flag(c, session_id, flag, value, now=now))
