"""Methods that close a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.embedded.session_db import sessions
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["EndMethods"]


class EndMethods(StoreFile):
    """End and change."""

    async def change_session(self, session_id: str, changes: Mapping[str, object]) -> dict[str, Any]:
        """Apply `title`, then a truthy `end_reason`, each where given, in one transaction; returns the row.

        Raises UnknownSession, TitleRefused; then nothing has changed.
        """
        now = self._now()
        return await self.write(lambda c: sessions.change(c, session_id, changes, at=now))

    async def end_session(self, session_id: str, reason: str) -> None:
        """Close the row unless it is closed: the first reason wins. An unknown id is nothing to do."""
        now = self._now()
        await self.write(lambda c: sessions.end(c, session_id, reason=reason, at=now))
