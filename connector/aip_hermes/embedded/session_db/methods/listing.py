"""Methods that list rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import listing
from aip_hermes.embedded.session_db.listing import Filter
from aip_hermes.embedded.session_db.methods.usage import UsageMethods

__all__ = ["ListMethods"]


class ListMethods(UsageMethods):
    """Pages of sessions, and searches by their names."""

    async def list_sessions_rich(
        self,
        source: str | None = None,
        sources: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
        cwd_prefix: str | None = None,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        min_message_count: int = 0,
        project_compression_tips: bool = True,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        archived_only: bool = False,
        id_query: str | None = None,
        search_query: str | None = None,
        compact_rows: bool = False,
        include_pinned: bool = False,
        session_key: str | None = None,
        include_hidden: bool = False,
    ) -> list[dict[str, Any]]:
        """Return one page of rows with `preview`, `last_active` and `unread`, newest first.

        By default one entry per conversation: roots, forks and resets, a compressed root shown as its continuation with
        `_lineage_root_id`; archived and hidden ones are left out. order_by_last_active: by the newest activity anywhere
        in the conversation instead of its start. id_query, search_query (both with order_by_last_active only): part of
        an id of the conversation; part of an id or a title. cwd_prefix: the folder itself or one below it.
        include_pinned: pinned entries follow that the page doesn't hold. compact_rows: without prompt texts. limit and
        offset count entries; a limit of 0 is an empty page.
        """
        if limit <= 0:
            return []
        await self.flush_token_counts()

        def listed(connection: Connection) -> list[dict[str, Any]]:
            roots, ids = not include_children, None
            if order_by_last_active:
                ids = listing.named(connection, id_query=id_query, search_query=search_query, roots=roots)
            asked: dict[str, Any] = {
                "source": source,
                "sources": sources,
                "exclude_sources": exclude_sources,
                "cwd_prefix": cwd_prefix,
                "min_message_count": min_message_count,
                "include_archived": include_archived,
                "archived_only": archived_only,
                "include_hidden": include_hidden,
                "session_key": session_key,
                "ids": ids,
            }
            how: dict[str, Any] = {
                "roots": roots,
                "project": project_compression_tips and roots,
                "by_activity": order_by_last_active,
                "prompts": not compact_rows,
            }
            found = listing.page(connection, Filter(**asked), limit=limit, offset=offset, **how)
            if include_pinned:
                shown = {row["id"] for row in found}
                pinned = listing.page(connection, Filter(**asked, pinned_only=True), **how)
                found += [row for row in pinned if row["id"] not in shown]
            return found

        return await self.read(listed)

    async def get_session_rich_row(self, session_id: str, compact_rows: bool = False) -> dict[str, Any] | None:
        """Return the row as a listing shows it, whatever its flags, or None."""
        return await self.read(lambda c: listing.rich_row(c, session_id, prompts=not compact_rows))

    async def search_sessions(
        self, source: str | None = None, limit: int = 20, offset: int = 0, workspace_key: str | None = None
    ) -> list[dict[str, Any]]:
        """Return plain rows with `last_active`, the latest first, whatever their flags.

        workspace_key: a repository's root, or the working folder of sessions without one.
        """
        wanted = Filter(source=source, workspace_key=workspace_key, include_archived=True, include_hidden=True)
        found = await self.read(
            lambda c: listing.page(c, wanted, limit=limit, offset=offset, roots=False, project=False, by_activity=True)
        )
        return [{name: value for name, value in row.items() if name not in ("preview", "unread")} for row in found]

    async def search_sessions_by_id(
        self,
        query: str,
        limit: int = 20,
        include_archived: bool = True,
        source: str | None = None,
        sources: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the conversations whose id, or the id of one of their segments, fits: exact, prefix, then anywhere."""
        part = query.strip()
        if not part or limit <= 0:
            return []

        def searched(connection: Connection) -> list[dict[str, Any]]:
            wanted = Filter(
                source=source,
                sources=sources,
                exclude_sources=exclude_sources,
                include_archived=include_archived,
                ids=listing.named(connection, id_query=part, search_query=None),
            )
            found = listing.page(connection, wanted, by_activity=True)
            return sorted(found, key=lambda row: _rank(row, part.casefold()))[:limit]

        return await self.read(searched)

    @staticmethod
    def session_unread(session_row: Mapping[str, Any]) -> bool:
        """Tell whether something happened in a listed row since it was read; one never marked as read is not unread."""
        return listing.unread(session_row)


def _rank(row: Mapping[str, Any], part: str) -> int:
    names = [str(row[key]).casefold() for key in ("id", "_lineage_root_id") if row.get(key)]
    if part in names:
        return 0
    return 1 if any(name.startswith(part) for name in names) else 2
