"""Methods that remove rows one wants gone by name, or because nothing is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Final

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import removal
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.dump_files import remove_files
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["RemovalMethods"]

_GHOST_AGE_S: Final = 86_400
_RECORD_KEPT_S: Final = 400 * 86_400


class RemovalMethods(StoreFile):
    """Delete. sessions_dir, where it is given: files of removed sessions in that folder go, too.

    actor: who works with this store, as the record of removals names them.
    """

    actor: str = "library"

    async def delete_session(
        self,
        session_id: str,
        sessions_dir: PathLike[str] | str | None = None,
        expected_delete_ids: Collection[str] | None = None,
    ) -> bool:
        """Remove the row, its messages and its subagents' rows; other children lose their parent. False: unknown id.

        expected_delete_ids: what `get_session_delete_targets` said; where that has changed meanwhile nothing is removed
        and the answer is False.
        """
        expected = None if expected_delete_ids is None else frozenset(expected_delete_ids)
        return bool(
            await self._removing(
                lambda c: removal.delete(c, session_id, expected=expected), sessions_dir, cause="delete"
            )
        )

    async def get_session_delete_targets(self, session_id: str) -> list[str]:
        """Return what a delete would remove: the id and then its subagents' ids in order; [] for an unknown id."""
        return await self.read(lambda c: removal.targets(c, session_id))

    async def delete_session_if_empty(self, session_id: str, sessions_dir: PathLike[str] | str | None = None) -> bool:
        """Remove the row where it has no title, no message and no child; whether it did."""
        return bool(
            await self._removing(
                lambda c: removal.delete_if_empty(c, session_id), sessions_dir, cause="delete_if_empty"
            )
        )

    async def delete_sessions(self, session_ids: Iterable[str], sessions_dir: PathLike[str] | str | None = None) -> int:
        """Remove these rows, any number of them, and return how many there were; every child loses its parent."""
        ids = list(session_ids)
        return len(await self._removing(lambda c: removal.remove(c, ids), sessions_dir, cause="delete_several"))

    async def delete_empty_sessions(self, sessions_dir: PathLike[str] | str | None = None) -> int:
        """Remove ended rows without title, message and child that are neither pinned nor archived; how many."""
        return len(await self._removing(removal.delete_empty, sessions_dir, cause="delete_empty"))

    async def prune_empty_ghost_sessions(self, sessions_dir: PathLike[str] | str | None = None) -> int:
        """Remove empty, ended rows of the source `tui` that are older than a day; how many."""
        before = self._now() - _GHOST_AGE_S
        return len(
            await self._removing(lambda c: removal.delete_ghosts(c, before=before), sessions_dir, cause="prune_ghosts")
        )

    async def list_removals(self, session_id: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return `{session_id, removed_at, cause, actor}` of what was removed, latest first; kept for 400 days."""
        asked = {
            "any_session": int(session_id is None),
            "session_id": scrubbed(session_id or ""),
            "limit": max(0, limit),
        }
        return await self.read(lambda c: c.execute(QUERIES["list_removals"], asked))

    async def _removing(
        self,
        function: Callable[[Connection], list[str]],
        sessions_dir: PathLike[str] | str | None,
        *,
        cause: str,
    ) -> list[str]:
        """Run a removal and note it, together; then remove the files of what it removed. Returns the ids."""
        now = self._now()

        def remove(connection: Connection) -> list[str]:
            removed = function(connection)
            for one in removed:
                entry = {"session_id": one, "at": now, "cause": cause, "actor": scrubbed(self.actor)}
                connection.execute(QUERIES["note_removal"], entry)
            if removed:
                connection.execute(QUERIES["forget_old_removals"], {"before": now - _RECORD_KEPT_S})
            return removed

        removed = await self.write(remove)
        self._removed_any = self._removed_any or bool(removed)
        if sessions_dir is not None and removed:
            await asyncio.to_thread(remove_files, Path(sessions_dir), removed)
        return removed
