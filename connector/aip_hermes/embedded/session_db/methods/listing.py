"""Methods that list rows."""

from __future__ import annotations

from typing import Any

from aip_hermes.embedded.session_db import transcript
from aip_hermes.embedded.session_db.methods.usage import UsageMethods

__all__ = ["ListMethods"]


class ListMethods(UsageMethods):
    """Pages of sessions."""

    async def list_sessions_rich(
        self,
        source: str | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        project_compression_tips: bool = True,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        compact_rows: bool = False,
    ) -> list[dict[str, Any]]:
        """Return one page of rows with `preview`, `last_active` and `unread`, newest first.

        By default one entry per conversation: roots, forks and resets, a compressed root shown as its continuation with
        `_lineage_root_id`. compact_rows: without prompt texts.
        """
        await self.flush_token_counts()
        return await self.read(
            lambda c: transcript.listing(
                c,
                source=source,
                limit=limit,
                offset=offset,
                include_children=include_children,
                project_compression_tips=project_compression_tips,
                order_by_last_active=order_by_last_active,
                include_archived=include_archived,
                compact_rows=compact_rows,
            )
        )
