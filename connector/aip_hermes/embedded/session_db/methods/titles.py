"""Methods on titles."""

from __future__ import annotations

from aip_hermes.embedded.session_db import titles
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["TitleMethods"]


class TitleMethods(StoreFile):
    """Clean, set, number. A title of a person (rank 2) is never replaced by one of a model (1) or a derived one (0)."""

    @staticmethod
    def sanitize_title(title: str | None) -> str | None:
        """Return the title as it would be stored. Raises TitleRefused (a ValueError) beyond 100 characters."""
        return titles.sanitized_title(title)

    async def set_session_title(self, session_id: str, title: object) -> bool:
        """Write or clear the title; False for an unknown id. Raises TitleRefused, naming the holder of one in use.

        A title that a compressed ancestor holds is handed over.
        """
        return await self.write(lambda c: titles.set_title(c, session_id, title))

    async def set_auto_title(self, session_id: str, title: str, *, source: str = "derived") -> bool:
        """Write a title that no person gave, over one of strictly lower rank; tells whether it was written.

        source: llm or derived, else ValueError. Raises TitleRefused as set_session_title.
        """
        return await self.write(lambda c: titles.set_automatic(c, session_id, title, source=source, empty_only=False))

    async def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Write a derived title where there is none; tells whether it was written."""
        return await self.write(lambda c: titles.set_automatic(c, session_id, title, source="derived", empty_only=True))

    async def set_session_title_source(self, session_id: str, source: str) -> bool:
        """Change who is said to have given a title; False where there is none. ValueError for an unknown source."""
        return await self.write(lambda c: titles.set_source(c, session_id, source))

    async def get_session_title(self, session_id: str) -> str | None:
        """Return the title, or None."""
        row = await self.read(lambda c: titles.title_of(c, session_id))
        return None if row is None else row["title"]

    async def get_session_title_source(self, session_id: str) -> str | None:
        """Return user, llm, derived, or None."""
        row = await self.read(lambda c: titles.title_of(c, session_id))
        return None if row is None else row["title_source"]

    async def get_next_title_in_lineage(self, base_title: str) -> str:
        """Return `base_title` if free, else the next number of its lineage."""
        return await self.read(lambda c: titles.next_title(c, base_title))
