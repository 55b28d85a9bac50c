"""Methods that look at single messages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aip_hermes.embedded.session_db import looking
from aip_hermes.embedded.session_db.columns import scrubbed
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["LookMethods"]


class LookMethods(StoreFile):
    """One row, the last of a role, what stands around a row."""

    async def message_count(self, session_id: str | None = None) -> int:
        """Return how many rows a transcript has, hidden ones included; without an id, how many the store has."""
        if session_id is None:
            rows = await self.read(lambda c: c.execute(QUERIES["count_all_messages"]))
        else:
            asked = {"session_id": scrubbed(session_id)}
            rows = await self.read(lambda c: c.execute(QUERIES["count_messages"], asked))
        return int(rows[0]["messages"])

    async def get_message_role(self, session_id: str, row_id: int) -> str | None:
        """Return the role of a row of this transcript, or None."""
        asked = {"session_id": scrubbed(session_id), "id": row_id}
        rows = await self.read(lambda c: c.execute(QUERIES["fetch_message"], asked))
        return str(rows[0]["role"]) if rows else None

    async def latest_message_row_id(
        self, session_id: str, *, role: str = "user", offset: int = 0, require_text: bool = True
    ) -> int | None:
        """Return the newest live row of a role, or the one `offset` before it; with text where that is required.

        role: user or assistant, else ValueError.
        """
        if role not in ("user", "assistant"):
            raise ValueError(f"role must be 'user' or 'assistant', not {role!r}")
        asked = {
            "session_id": scrubbed(session_id),
            "role": role,
            "offset": max(0, offset),
            "require_text": int(require_text),
        }
        rows = await self.read(lambda c: c.execute(QUERIES["latest_row_of_role"], asked))
        return int(rows[0]["id"]) if rows else None

    async def latest_user_message_row_id(self, session_id: str) -> int | None:
        """Return the newest live row of the user that has a text."""
        return await self.latest_message_row_id(session_id)

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Tell whether a message of the platform was stored."""
        asked = {"session_id": scrubbed(session_id), "platform_message_id": scrubbed(platform_message_id)}
        return bool(await self.read(lambda c: c.execute(QUERIES["has_platform_message"], asked)))

    async def has_archived_messages(self, session_id: str) -> bool:
        """Tell whether a transcript has hidden rows, which replacing all of it would remove."""
        asked = {"session_id": scrubbed(session_id)}
        return bool(await self.read(lambda c: c.execute(QUERIES["has_inactive_messages"], asked)))

    async def get_first_assistant_text(self, session_id: str) -> str:
        """Return the first text of the assistant, empty where it said none."""
        return await self.read(lambda c: looking.first_assistant_text(c, session_id))

    async def list_recent_user_messages(
        self, session_id: str, limit: int = 20, include_inactive: bool = False
    ) -> list[dict[str, Any]]:
        """Return `{id, timestamp, preview}` of what the user said last, newest first; no synthesized turns."""
        return await self.read(
            lambda c: looking.recent_user_messages(c, session_id, limit=limit, include_inactive=include_inactive)
        )

    async def get_messages_around(self, session_id: str, around_message_id: int, window: int = 5) -> dict[str, Any]:
        """Return `{window, messages_before, messages_after}`: up to `window` rows on each side, hidden ones included.

        An unknown row has an empty window and zeros.
        """
        return await self.read(lambda c: looking.around(c, session_id, around_message_id, window=window))

    async def get_anchored_view(
        self,
        session_id: str,
        around_message_id: int,
        window: int = 5,
        bookend: int = 3,
        keep_roles: Collection[str] | None = ("user", "assistant"),
    ) -> dict[str, Any]:
        """Return what `get_messages_around` does with `bookend_start` and `bookend_end`: up to `bookend` messages with
        text before and after the window.

        keep_roles: whose rows are kept, None for all; the row in the middle is always there.
        """
        return await self.read(
            lambda c: looking.anchored(
                c, session_id, around_message_id, window=window, bookend=bookend, keep_roles=keep_roles
            )
        )
