"""Methods that remove rows."""

from __future__ import annotations

from aip_hermes.embedded.session_db import sessions
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["RemovalMethods"]


class RemovalMethods(StoreFile):
    """Delete."""

    async def delete_session(self, session_id: str) -> bool:
        """Remove the row, its messages and its subagents' rows; other children lose their parent. False: unknown id."""
        return await self.write(lambda c: sessions.delete(c, session_id))
