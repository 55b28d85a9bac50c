"""Methods that remove or put away what is old, and give the room back."""

from __future__ import annotations

from os import PathLike
from typing import Any, Final

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.session_db import meta, pruning
from aip_hermes.embedded.session_db.methods.removal import RemovalMethods
from aip_hermes.embedded.session_db.methods.search import SearchMethods
from aip_hermes.embedded.session_db.selection import Selection, selected

__all__ = ["PruneMethods"]

_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3600.0


class PruneMethods(RemovalMethods, SearchMethods):
    """Prune, archive, vacuum. `filters` everywhere: the members of `selection.Selection`, by keyword."""

    async def prune_sessions(
        self,
        older_than_days: float | None = 90,
        source: str | None = None,
        sessions_dir: PathLike[str] | str | None = None,
        *,
        limit: int | None = None,
        **filters: Any,
    ) -> int:
        """Remove ended rows without activity for so many days, None for any age; returns how many.

        Their children, subagents' rows included, stay without a parent. sessions_dir: as `delete_session`. limit: the
        longest inactive first, at most so many, for a prune in steps beside a server. Raises TypeError, ValueError for
        filters that make no sense.
        """
        chosen = self._older(older_than_days, source, filters)
        return len(await self._removing(lambda c: pruning.prune(c, chosen, limit=limit), sessions_dir, cause="prune"))

    async def list_prune_candidates(
        self, older_than_days: float | None = None, source: str | None = None, limit: int | None = None, **filters: Any
    ) -> list[dict[str, Any]]:
        """Return the rows that `prune_sessions` would remove, with `last_active`, the longest inactive first; of any
        age where none is given.
        """
        chosen = self._older(older_than_days, source, filters)
        return await self.read(lambda c: pruning.candidates(c, chosen, limit=limit))

    async def count_open_prune_matches(
        self, older_than_days: float | None = None, source: str | None = None, **filters: Any
    ) -> int:
        """Return how many rows the same selection means that stay because they have not ended."""
        chosen = self._older(older_than_days, source, filters)
        return len(await self.read(lambda c: selected(c, chosen, ended=False)))

    async def archive_sessions(
        self, older_than_days: float | None = None, source: str | None = None, **filters: Any
    ) -> int:
        """Put away the rows that `prune_sessions` would remove, of any age where none is given; returns how many were
        not away yet.
        """
        chosen = self._older(older_than_days, source, filters)
        return await self.write(lambda c: pruning.archive(c, chosen))

    async def archive_stale_sessions(self, idle_days: float, exclude_pinned: bool = True) -> int:
        """Put away conversations idle for so many days, whether ended or not; returns how many rows that were."""
        before = self._before(idle_days)
        return await self.write(lambda c: pruning.archive_idle(c, before=before, pinned_too=not exclude_pinned))

    async def maybe_auto_prune_and_vacuum(
        self,
        retention_days: float = 90,
        min_interval_hours: float = 24,
        vacuum: bool = True,
        sessions_dir: PathLike[str] | str | None = None,
    ) -> dict[str, Any]:
        """Prune what is older, and vacuum if anything went, unless that was done within the interval.

        Never raises for what the store can't do: returns {skipped, pruned, vacuumed} and then `error`, a sentence.
        """
        done: dict[str, Any] = {"skipped": False, "pruned": 0, "vacuumed": False}
        now = self._now()
        try:
            if not await self.write(
                lambda c: meta.claim(c, "last_auto_prune", now=now, every_s=min_interval_hours * _HOUR_S)
            ):
                return done | {"skipped": True}
            done["pruned"] = await self.prune_sessions(retention_days, sessions_dir=sessions_dir)
            if vacuum and done["pruned"]:
                await self.vacuum()
                await self.write(lambda c: meta.claim(c, "last_vacuum", now=now, every_s=0))
                done["vacuumed"] = True
        except StoreFailure as error:
            done["error"] = str(error)
        return done

    async def maybe_auto_archive(
        self, idle_days: float = 30, min_interval_hours: float = 24, exclude_pinned: bool = True
    ) -> dict[str, Any]:
        """Put away what is idle unless that was done within the interval; {skipped, archived} and perhaps `error`."""
        now, before = self._now(), self._before(idle_days)
        try:
            if not await self.write(
                lambda c: meta.claim(c, "last_auto_archive", now=now, every_s=min_interval_hours * _HOUR_S)
            ):
                return {"skipped": True, "archived": 0}
            archived = await self.write(lambda c: pruning.archive_idle(c, before=before, pinned_too=not exclude_pinned))
        except StoreFailure as error:
            return {"skipped": False, "archived": 0, "error": str(error)}
        return {"skipped": False, "archived": archived}

    async def vacuum(self) -> int:
        """Give back the room of removed rows; returns how many search indexes were put in order before.

        A file is rewritten: it needs room for a second copy meanwhile, and writes wait.
        """
        optimized = await self.optimize_fts()
        await self._store().vacuum()
        return optimized

    async def logical_size_bytes(self) -> int:
        """Return the bytes that rows and indexes take; what removed rows left free doesn't count."""
        return await self.read(pruning.logical_size)

    def _older(self, days: float | None, source: str | None, filters: dict[str, Any]) -> Selection:
        return Selection.older(days, now=self._now(), source=source, **filters)

    def _before(self, days: float) -> float:
        if not days >= 0:
            raise ValueError("an age in days is zero or more")
        return self._now() - days * _DAY_S
