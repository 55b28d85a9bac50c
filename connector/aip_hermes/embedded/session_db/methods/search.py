"""Methods that search in transcripts, and keep what makes that quick."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from aip_hermes.database import Connection, StoreFailure, StoreUnavailable
from aip_hermes.embedded.session_db.search import (
    FIELDS,
    Search,
    SearchIndex,
    find,
    find_if_complete,
    in_rows,
    index,
    projection,
)
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["SearchMethods"]

T = TypeVar("T")
log = structlog.get_logger(__name__)

_CHUNKS_PER_SEARCH: Final = 10
_EVERYTHING: Final = 2**53
_NOT_THE_INDEX: Final = frozenset({"locked", "disk_full", "io", "missing", "closed"})


class SearchMethods(StoreFile):
    """Search, and the index of words below it.

    The index is made with the first write or search of a store that has none, grows with the rows, and is given up when
    it is damaged: then messages are stored as before, texts are searched without it, and the next store that opens the
    file for writing, `optimize_fts` or `rebuild_search_index` makes it anew. On PostgreSQL the words of a message stand
    in its row, and the server looks after what finds them.
    """

    _index_settled = False

    async def search_messages(
        self,
        query: str,
        source_filter: Iterable[str] | None = None,
        exclude_sources: Iterable[str] | None = None,
        role_filter: Iterable[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        sort: str | None = None,
        include_inactive: bool = False,
        fields: Iterable[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Return messages with the words of `query`: `{id, session_id, role, snippet, timestamp, tool_name, source,
        model, session_started, context}`.

        query: words that must all be there, `OR`, `NOT`, `"a phrase"`, `begin*`; read up to 2,048 characters. sort:
        `newest` or `oldest` by the time of the message; else the best fit, weighed among 1,000 matches at a time, the
        newest thousand first. Compacted messages are found, rewound ones only with include_inactive. snippet: 40 words,
        matches between `>>>` and `<<<`. context: the message before, this one and the one after, 200 characters each.
        source_filter: an empty list finds nothing. fields: the members to return.
        Raises TypeError for a text as `fields`, ValueError for a field that no hit has; never for a query.
        """
        chosen = projection(fields)
        search = Search(
            query=query or "",
            sources=_names(source_filter),
            excluded=_names(exclude_sources) or None,
            roles=_names(role_filter) or None,
            limit=min(limit, _EVERYTHING),
            offset=min(max(0, offset), _EVERYTHING),
            sort=sort,
            include_inactive=include_inactive,
        )
        hits = await self._found(search)
        return hits if chosen == FIELDS else [{name: hit[name] for name in chosen} for hit in hits]

    async def optimize_fts(self) -> int:
        """Make the index one part, which also takes deleted texts out of the file; make it anew if it was given up.

        Returns how many indexes there are: 1, or 0 where the engine can make none.
        """
        state = await self.read(index.state_of)
        try:
            if state.indexed_through is None:
                await self.rebuild_search_index()
            else:
                await self._catch_up(None)
            await super().write(index.optimize)
        except StoreUnavailable as failure:
            if self.is_shared or not index.concerns_index(failure):
                raise
            await self._give_up_index(failure)
            return 0
        return 1

    async def rebuild_search_index(self, progress: Callable[[int, int], object] | None = None) -> SearchIndex:
        """Make the index anew from the messages, some thousand at a time; writes and searches go on in between.

        progress: called with the row ids done and the last one. A kill on the way leaves a part that later writes,
        searches or another rebuild complete. Raises StoreUnavailable where the engine has no full-text search.
        """
        if self.is_shared:
            return await self._rewrite_words(progress)
        await super().write(index.start_over)
        self._index_settled = True
        return await self._catch_up(progress)

    async def rebuild_fts(self) -> int:
        """Do the same, under the name that scripts of Hermes know; returns how many indexes were made."""
        await self.rebuild_search_index()
        return 1

    async def search_index_status(self, *, check: bool = False) -> dict[str, Any]:
        """Return `{indexed, indexed_through, waiting, cause, damage}`.

        indexed: whether there is an index. waiting: at most so many rows are not in it yet; they are found, too.
        cause: why it was given up. damage: what a check of the whole index found, None where that is nothing.
        """
        state = await self.read(index.state_of)
        damage = None
        if check and state.indexed_through is not None:
            try:
                await super().write(index.check)
            except StoreUnavailable as failure:
                if failure.kind in _NOT_THE_INDEX:
                    raise
                damage = str(failure)
        return {
            "indexed": state.indexed_through is not None,
            "indexed_through": state.indexed_through,
            "waiting": state.waiting,
            "cause": state.cause,
            "damage": damage,
        }

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run `function` in one transaction; returns after its commit. A damaged index does not stop it."""
        self._check_open()
        if self.is_shared:
            return await super().write(function)
        await self._settle_index()
        try:
            return await super().write(function)
        except StoreFailure as failure:
            if not index.concerns_index(failure):
                raise
            return await self._write_without_index(function, failure)

    async def _found(self, search: Search) -> list[dict[str, Any]]:
        try:
            found = await self.read(lambda c: find_if_complete(c, search))
            if found is not None:
                return found
            # Rows wait. A store that can't be written now is searched as it is.
            with suppress(StoreUnavailable):
                await self._settle_index()
                await self._catch_up(None, chunks=_CHUNKS_PER_SEARCH)
            return await self.read(lambda c: find(c, search))
        except StoreUnavailable as failure:
            if failure.kind in _NOT_THE_INDEX or self.is_shared:
                raise
            if index.concerns_index(failure):
                with suppress(StoreUnavailable):
                    await self._give_up_index(failure)
            return await self.read(lambda c: find(c, search, use_index=False))

    async def _catch_up(
        self, progress: Callable[[int, int], object] | None, *, chunks: int | None = None
    ) -> SearchIndex:
        state = await self.read(index.state_of)
        while state.indexed_through is not None and state.waiting and chunks != 0:
            state = await self.write(index.catch_up)
            chunks = None if chunks is None else chunks - 1
            if progress is not None and state.indexed_through is not None:
                progress(state.indexed_through, state.newest)
        return state

    async def _rewrite_words(self, progress: Callable[[int, int], object] | None) -> SearchIndex:
        """Take the words of all rows from their texts again."""
        state, done = await self.read(index.state_of), 0
        while (last := await self.write(partial(in_rows.rewrite, after=done, rows=index.INDEX_CHUNK))) is not None:
            done = last
            if progress is not None:
                progress(done, max(done, state.newest))
        return await self.read(index.state_of)

    async def _settle_index(self) -> None:
        """Make an index where there is none, once per store: one that is given up meanwhile stays so."""
        if self._index_settled:
            return
        try:
            if (await self.read(index.state_of)).indexed_through is None:
                await super().write(index.attach)
        except StoreUnavailable as failure:
            if failure.kind in _NOT_THE_INDEX:
                return
            log.warning("session_db.no_search_index", file=self.name, kind=failure.kind)
        self._index_settled = True

    async def _give_up_index(self, failure: StoreFailure) -> None:
        await self._write_without_index(lambda _: None, failure)

    async def _write_without_index(self, function: Callable[[Connection], T], failure: StoreFailure) -> T:
        """Give the index up and run `function`, together: where that fails, too, the index was not the cause."""

        def alone(connection: Connection) -> tuple[bool, T]:
            return index.detach(connection, cause=str(failure)), function(connection)

        given_up, result = await super().write(alone)
        self._index_settled = True
        if given_up:
            log.error("session_db.search_index_given_up", file=self.name, cause=str(failure))
        return result


def _names(chosen: Iterable[str] | None) -> tuple[str, ...] | None:
    if chosen is None:
        return None
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)
