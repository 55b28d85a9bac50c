"""Methods that read rows and transcripts."""

from __future__ import annotations

from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, titles, transcript
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["ReadMethods"]


class ReadMethods(StoreFile):
    """One row, its messages, and whom an id or a title means."""

    async def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the row, or None."""
        return await self.read(lambda c: sessions.fetch(c, session_id))

    async def get_session_by_title(self, title: str) -> dict[str, Any] | None:
        """Return the row with exactly this title, or None."""

        def by_title(connection: Connection) -> dict[str, Any] | None:
            rows = connection.execute(QUERIES["session_by_title"], {"title": scrubbed(title)})
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

    async def resolve_session_id(self, session_id_or_prefix: str) -> str | None:
        """Return the id that this is or, where only one begins so, that one; None where there is none or several."""
        meant = await self.read(lambda c: sessions.ids_meant(c, session_id_or_prefix))
        return meant[0] if len(meant) == 1 else None

    async def resolve_session_by_title(self, title: str) -> str | None:
        """Return the row that goes on under a title: the newest `title #n`, else the one that has it exactly."""
        return await self.read(lambda c: titles.resolve(c, title))
