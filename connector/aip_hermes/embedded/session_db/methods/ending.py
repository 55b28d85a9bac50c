"""Methods that close a row and open it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.embedded.session_db import ending, sessions
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["EndMethods"]


class EndMethods(StoreFile):
    """End, reopen, change."""

    async def end_session(self, session_id: str, end_reason: str) -> None:
        """Close the row unless it is closed: the first reason wins. An unknown id is nothing to do."""
        now = self._now()
        await self.write(lambda c: ending.end(c, session_id, reason=end_reason, at=now))

    async def reopen_session(self, session_id: str) -> None:
        """Open the row again; children whose kind only its reason told are marked, so that they stay what they are."""
        await self.write(lambda c: ending.reopen(c, session_id))

    async def change_session(self, session_id: str, changes: Mapping[str, object]) -> dict[str, Any]:
        """Apply `title`, then a truthy `end_reason`, each where given, in one transaction; returns the row.

        Raises UnknownSession, TitleRefused; then nothing has changed.
        """
        now = self._now()
        return await self.write(lambda c: sessions.change(c, session_id, changes, at=now))
