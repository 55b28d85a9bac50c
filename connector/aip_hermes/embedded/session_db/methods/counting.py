"""Methods that count rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aip_hermes.embedded.session_db import listing, removal
from aip_hermes.embedded.session_db.columns import SKILL_MARK
from aip_hermes.embedded.session_db.listing import Filter
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["CountMethods"]


class CountMethods(StoreFile):
    """How many sessions there are, and small questions about all of them."""

    async def session_count(
        self,
        source: str | None = None,
        sources: Sequence[str] | None = None,
        cwd_prefix: str | None = None,
        min_message_count: int = 0,
        include_archived: bool = False,
        archived_only: bool = False,
        exclude_children: bool = False,
        exclude_sources: Sequence[str] | None = None,
    ) -> int:
        """Return how many rows there are, hidden ones included; exclude_children: those that a listing may show."""
        wanted = Filter(
            source=source,
            sources=sources,
            exclude_sources=exclude_sources,
            cwd_prefix=cwd_prefix,
            min_message_count=min_message_count,
            include_archived=include_archived,
            archived_only=archived_only,
            include_hidden=not exclude_children,
        )
        counts = await self.read(lambda c: listing.counts(c, wanted, listable_only=exclude_children))
        return sum(counts.values())

    async def session_count_by_source(
        self, *, include_archived: bool = False, archived_only: bool = False, exclude_children: bool = False
    ) -> dict[str, int]:
        """Return source → number of rows, as `session_count` counts them."""
        wanted = Filter(
            include_archived=include_archived, archived_only=archived_only, include_hidden=not exclude_children
        )
        return await self.read(lambda c: listing.counts(c, wanted, listable_only=exclude_children))

    async def session_count_ge(self, n: int = 1) -> bool:
        """Tell whether there are at least `n` rows, without counting further."""
        return len(await self.read(lambda c: c.execute(QUERIES["any_sessions"], {"n": max(0, n)}))) >= n

    async def count_empty_sessions(self) -> int:
        """Return how many rows `delete_empty_sessions` would remove."""
        return len(await self.read(removal.empty))

    async def distinct_session_cwds(self, include_archived: bool = False) -> list[dict[str, Any]]:
        """Return `{cwd, sessions, last_active}` of each working folder, the last used first."""
        asked = {"include_archived": int(include_archived)}
        return await self.read(lambda c: c.execute(QUERIES["distinct_cwds"], asked))

    async def list_skill_scaffolded_sessions(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return `{id, title, title_source, source, started_at, preview}` of titled rows that a skill began."""
        asked = {"mark": SKILL_MARK, "limit": max(0, limit)}
        return await self.read(lambda c: c.execute(QUERIES["skill_scaffolded"], asked))
