"""What is left of removed rows when a store closes: nothing, within reason."""

from __future__ import annotations

from typing import Final

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.session_db.methods.looking import LookMethods
from aip_hermes.embedded.session_db.methods.removal import RemovalMethods
from aip_hermes.embedded.session_db.methods.search import SearchMethods

__all__ = ["EraseMethods"]

log = structlog.get_logger(__name__)

ERASED_AT_CLOSE: Final = 200_000
"""Messages of a store whose index is written anew in a second or two."""


class EraseMethods(LookMethods, RemovalMethods, SearchMethods):
    """Rows are overwritten when they go; their words stay in pages of the index until its parts are made one."""

    async def close(self) -> None:
        """Take the words of removed messages out of the index where this store removed any, then close.

        A store of more than 200,000 messages, and one that was killed, keeps them until `optimize_fts`, `vacuum` or a
        rebuild of the index.
        """
        if self._removed_any and not self._closed and not self.is_shared:
            self._removed_any = False
            try:
                if await self.message_count() <= ERASED_AT_CLOSE:
                    await self.optimize_fts()
            except StoreFailure as failure:
                log.warning("session_db.words_of_removed_stay", file=self.path.name, cause=type(failure).__name__)
        await super().close()
