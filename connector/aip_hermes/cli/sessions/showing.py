"""`aip-hermes sessions list`, `show` and `search`: tables on a terminal, JSON everywhere else."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Final, Literal

from aip_hermes.cli.aipctl.terminal import print_json, print_json_line, say
from aip_hermes.cli.sessions.documents import plain_messages
from aip_hermes.cli.sessions.place import reading, store_in
from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.database.failures import translated
from aip_hermes.embedded.session_db import lineage, listing, sessions, transcript, usage
from aip_hermes.embedded.session_db.listing import Filter
from aip_hermes.embedded.session_db.search import Search, find, index

__all__ = ["resolved", "run_list", "run_search", "run_show"]

_LISTED: Final = (
    "id", "title", "source", "model", "started_at", "last_active", "ended_at", "end_reason", "message_count",
    "parent_session_id", "_lineage_root_id", "archived", "hidden", "pinned", "preview",
)  # fmt: skip


def run_list(*, folder: Path, limit: int, offset: int, source: str | None, everything: bool) -> None:
    """Print a page of conversations, newest activity first, or of every row. Raises SessionsRefused, StoreFailure."""
    wanted = Filter(source=source, include_archived=everything, include_hidden=everything)
    with reading(store_in(folder)) as connection:
        # One more than is shown tells whether there are more.
        rows = listing.page(
            connection, wanted, limit=limit + 1, offset=offset, roots=not everything, project=not everything,
            by_activity=True, prompts=False,
        )  # fmt: skip
    more, rows = len(rows) > limit, rows[:limit]
    if sys.stdout.isatty():
        from aip_hermes.cli.sessions.view import print_rows

        print_rows(rows)
    else:
        for row in rows:
            print_json_line({name: row[name] for name in _LISTED if name in row})
    if more:
        say(f"there are more: go on with --offset {offset + limit}")


def run_show(*, folder: Path, session_id: str, everything: bool) -> None:
    """Print a row, its messages and what it used. Raises SessionsRefused, StoreFailure."""
    with reading(store_in(folder)) as connection:
        found_id = resolved(connection, session_id)
        row = sessions.fetched(connection, found_id)
        messages = transcript.messages(connection, found_id, include_inactive=everything)
        used = usage.by_model(connection, found_id)
        tip = lineage.compression_tip(connection, found_id)
    told = {"session_id": found_id, "reason": "requested", "own": True, "data": plain_messages(messages)}
    if sys.stdout.isatty():
        from aip_hermes.cli.aipctl.transcript_view import print_transcript

        print_transcript({"session": row, "messages": told})
    else:
        print_json({"session": row, "messages": told, "usage": used})
    if tip != found_id:
        say(f"a compression ended it: the conversation goes on as {tip}")


def run_search(
    *, folder: Path, query: str, limit: int, offset: int, source: str | None, sort: Literal["newest", "oldest"] | None
) -> None:
    """Print messages with the words of a query. Raises SessionsRefused, StoreFailure."""
    search = Search(
        query=query,
        sources=None if source is None else (source,),
        excluded=None,
        roles=None,
        limit=limit,
        offset=offset,
        sort=sort,
        include_inactive=False,
    )
    with reading(store_in(folder)) as connection:
        indexed = index.state_of(connection).indexed_through is not None
        try:
            hits = find(connection, search)
        except sqlite3.Error as error:
            failure = translated(error)
            if not isinstance(failure, StoreUnavailable) or not index.concerns_index(failure):
                raise
            indexed, hits = False, find(connection, search, use_index=False)
    if sys.stdout.isatty():
        from aip_hermes.cli.sessions.view import print_hits

        print_hits(hits)
    else:
        for hit in hits:
            print_json_line(hit)
    if not indexed:
        say("there is no sound search index, so this was slow: `aip-hermes sessions doctor --repair` makes it anew")


def resolved(connection: Connection, session_id: str) -> str:
    """Return the id that this is, or the only one that begins so. Raises SessionsRefused."""
    meant = sessions.ids_meant(connection, session_id)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise SessionsRefused(f"several sessions begin with {session_id}; give more of the id")
    raise SessionsRefused(f"there is no session {session_id}; `aip-hermes sessions list --all` shows those that are")
