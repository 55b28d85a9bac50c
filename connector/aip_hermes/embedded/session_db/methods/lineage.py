"""Methods along the chain of rows."""

from __future__ import annotations

from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import lineage
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["LineageMethods"]


class LineageMethods(StoreFile):
    """Where a conversation began and where it goes on."""

    async def get_compression_tip(self, session_id: str) -> str:
        """Return where the conversation goes on after compressions; the id itself where there was none."""
        return await self.read(lambda c: lineage.compression_tip(c, session_id))

    async def resolve_resume_session_id(self, session_id: str, *, through_unmarked: bool = False) -> str:
        """Return the row that holds the conversation of `session_id` now: its compression tip, never a branch.

        through_unmarked: go on along the newest unmarked child of any row, as release 0.19.0 does.
        """

        def resolve(connection: Connection) -> str:
            tip = lineage.compression_tip(connection, session_id)
            return lineage.unmarked_descendant(connection, tip) if through_unmarked else tip

        return await self.read(resolve)

    async def get_compression_lineage(self, session_id: str) -> list[str]:
        """Return the ids of the chain, first segment to tip; none for an unknown id, a branch alone for a branch."""
        return await self.read(lambda c: lineage.compression_lineage(c, session_id))

    async def get_conversation_root(self, session_id: str) -> str:
        """Return the oldest ancestor over edges of any kind."""
        return await self.read(lambda c: lineage.conversation_root(c, session_id))

    async def find_live_compression_child(self, parent_session_id: str) -> dict[str, Any] | None:
        """Return the one open continuation of a compressed row; None where there is none, or more than one."""
        return await self.read(lambda c: lineage.live_continuation(c, parent_session_id))
