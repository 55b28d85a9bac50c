"""Methods along the chain of rows."""

from __future__ import annotations

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import transcript
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["LineageMethods"]


class LineageMethods(StoreFile):
    """Where a conversation goes on."""

    async def get_compression_tip(self, session_id: str) -> str:
        """Return where the conversation goes on after compressions; the id itself where there was none."""
        return await self.read(lambda c: transcript.compression_tip(c, session_id))

    async def resolve_resume_session_id(self, session_id: str, *, through_unmarked: bool = False) -> str:
        """Return the row that holds the conversation of `session_id` now: its compression tip, never a branch.

        through_unmarked: go on along the newest unmarked child of any row, as release 0.19.0 does.
        """

        def resolve(connection: Connection) -> str:
            tip = transcript.compression_tip(connection, session_id)
            return transcript.unmarked_descendant(connection, tip) if through_unmarked else tip

        return await self.read(resolve)
