"""Methods on titles."""

from __future__ import annotations

from aip_hermes.embedded.session_db import sessions
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["TitleMethods"]


class TitleMethods(StoreFile):
    """Clean, set, number."""

    @staticmethod
    def sanitize_title(title: str | None) -> str | None:
        """Return the title as it would be stored. Raises TitleRefused (a ValueError) beyond 100 characters."""
        return sessions.sanitized_title(title)

    async def set_session_title(self, session_id: str, title: object) -> bool:
        """Write or clear the title; False for an unknown id. Raises TitleRefused, naming the holder of one in use."""
        return await self.write(lambda c: sessions.set_title(c, session_id, title))

    async def get_next_title_in_lineage(self, base_title: str) -> str:
        """Return `base_title` if free, else the next number of its lineage."""
        return await self.read(lambda c: sessions.next_title(c, base_title))
