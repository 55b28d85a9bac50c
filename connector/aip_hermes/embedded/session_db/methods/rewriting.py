"""Methods that change a transcript that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.embedded.session_db import rewriting
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["RewriteMethods"]


class RewriteMethods(StoreFile):
    """Replace, clear, rewind, restore; each is one transaction."""

    async def replace_messages(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any]],
        active_only: bool = False,
        archive_dropped: bool = False,
    ) -> None:
        """Put messages, given by column names, in the place of all rows; the counters are those of the new ones.

        Rows of another transcript may be given: their ids are ignored. active_only: hidden rows stay. archive_dropped:
        the live rows are hidden instead of removed. Raises UnknownSession, CompressionSessionClosedError; then nothing
        has changed.
        """
        now = self._now()
        await self.write(
            lambda c: rewriting.replace(
                c, session_id, messages, now=now, active_only=active_only, archive_dropped=archive_dropped
            )
        )
        self._removed_any = self._removed_any or not archive_dropped

    async def clear_messages(self, session_id: str) -> None:
        """Remove all rows of a transcript and start its counters again."""
        await self.write(lambda c: rewriting.clear(c, session_id))
        self._removed_any = True

    async def set_latest_user_api_content(self, session_id: str, content: object, api_content: str) -> int:
        """Note what was really sent for the newest live user row, if that row still holds `content`; rows changed."""
        return await self.write(
            lambda c: rewriting.set_latest_user_api_content(c, session_id, content, api_content),
        )

    async def rewind_to_message(self, session_id: str, target_message_id: int) -> dict[str, Any]:
        """Hide a user's row and all later live ones; returns `{rewound_count, target_message, new_head_id}`.

        `message_count` stays, `rewind_count` grows. Raises ValueError where the row is missing or no user's.
        """
        return await self.write(lambda c: rewriting.rewind(c, session_id, target_message_id))

    async def restore_rewound(self, session_id: str, since_message_id: int) -> int:
        """Show the rows from one on again that a rewind had hidden; returns how many."""
        return await self.write(lambda c: rewriting.restore(c, session_id, since_message_id))
