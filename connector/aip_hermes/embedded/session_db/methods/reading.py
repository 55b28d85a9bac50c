"""Methods that read rows and transcripts."""

from __future__ import annotations

from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, transcript
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.conversation import conversation as as_conversation
from aip_hermes.embedded.session_db.conversation import repair_message_sequence
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["ReadMethods"]


class ReadMethods(StoreFile):
    """One row, its messages, its conversation."""

    async def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the row, or None."""
        return await self.read(lambda c: sessions.fetch(c, session_id))

    async def get_session_by_title(self, title: str) -> dict[str, Any] | None:
        """Return the row with exactly this title, or None."""

        def by_title(connection: Connection) -> dict[str, Any] | None:
            rows = connection.execute(QUERIES["session_by_title"], {"title": title})
            return sessions.fetch(connection, rows[0]["id"]) if rows else None

        return await self.read(by_title)

    async def get_messages(
        self,
        session_id: str,
        include_inactive: bool = False,
        limit: int | None = None,
        offset: int = 0,
        latest: bool = False,
        after_id: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return live messages by row id ascending; an unknown session has none.

        latest: `offset` counts back from the newest. after_id: only later rows; ValueError with `latest` or `offset`.
        """
        if after_id is not None and (latest or offset):
            raise ValueError("after_id goes with neither latest nor offset")
        return await self.read(
            lambda c: transcript.messages(
                c,
                session_id,
                include_inactive=include_inactive,
                limit=limit,
                offset=offset,
                latest=latest,
                after_id=after_id,
            )
        )

    async def get_message_page(self, session_id: str, *, limit: int, offset: int) -> tuple[list[dict[str, Any]], int]:
        """Return at most `limit` live messages after the first `offset`, and how many live ones there are: one view."""
        return await self.read(lambda c: transcript.message_page(c, session_id, limit=limit, offset=offset))

    async def get_messages_as_conversation(
        self,
        session_id: str,
        *,
        include_inactive: bool = False,
        repair_alternation: bool = False,
        include_row_ids: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the transcript as a model reads it: role, content and what else a row has.

        repair_alternation: join neighbours and drop stray tool results; the rows stay as they are.
        """

        def conversation(connection: Connection) -> list[dict[str, Any]]:
            asked = {"session_id": scrubbed(session_id), "include_inactive": int(include_inactive)}
            found = as_conversation(
                connection.tuples(QUERIES["fetch_told_messages"], asked), include_row_ids=include_row_ids
            )
            if repair_alternation:
                repair_message_sequence(found)
            return found

        return await self.read(conversation)

    async def message_count(self, session_id: str) -> int:
        """Return how many rows the transcript has, hidden ones included."""
        rows = await self.read(lambda c: c.execute(QUERIES["count_messages"], {"session_id": session_id}))
        return int(rows[0]["messages"])
