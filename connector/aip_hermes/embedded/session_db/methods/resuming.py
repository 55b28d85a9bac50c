"""Methods that load a conversation."""

from __future__ import annotations

from typing import Any

from aip_hermes.embedded.session_db import resume
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["ResumeMethods"]


class ResumeMethods(StoreFile):
    """What a model reads, what a person reads, and how much of it may be loaded."""

    max_resume_messages: int = resume.MAX_RESUME_MESSAGES
    max_export_messages: int = resume.MAX_EXPORT_MESSAGES

    async def get_messages_as_conversation(
        self,
        session_id: str,
        include_ancestors: bool = False,
        include_inactive: bool = False,
        repair_alternation: bool = False,
        include_row_ids: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the transcript as a model reads it: role, content and what else a row has.

        include_ancestors: what a person reads, from the first segment on; a text that was only sent again stands once.
        repair_alternation: join neighbours and drop stray tool results; the rows stay as they are. include_row_ids:
        `_row_id` in each message. Recalled memory and background reviews are left out.
        """
        return await self.read(
            lambda c: resume.conversation_of(
                c,
                session_id,
                include_ancestors=include_ancestors,
                include_inactive=include_inactive,
                repair_alternation=repair_alternation,
                include_row_ids=include_row_ids,
            )
        )

    async def get_resume_conversations(self, session_id: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return (model history, display history), both with `_row_id`; give it the resolved id.

        The first holds the live rows of this id, repaired; the second those of the whole lineage in their order.
        Raises SessionResumeTooLargeError beyond `max_resume_messages` (20,000; 0: any number).
        """
        return await self.read(
            lambda c: resume.resume_conversations(c, session_id, limit=self.max_resume_messages),
        )

    async def get_ancestor_display_prefix(self, session_id: str) -> list[dict[str, Any]]:
        """Return the part of the display history that stands in the ancestors of this id."""
        return await self.read(lambda c: resume.ancestor_prefix(c, session_id))

    async def get_resume_message_count(self, session_id: str) -> int:
        """Return how many live messages the whole lineage has."""
        return await self.read(lambda c: resume.resume_message_count(c, session_id))

    async def assert_resume_safe(self, session_id: str, max_messages: int | None = None) -> int:
        """Return how many messages a resume loads. Raises SessionResumeTooLargeError beyond the limit."""
        limit = self.max_resume_messages if max_messages is None else max_messages
        return await self.read(lambda c: resume.check_resume(c, session_id, limit=limit))

    async def assert_export_safe(self, session_id: str, max_messages: int | None = None) -> int:
        """Return how many messages an export holds. Raises SessionExportTooLargeError beyond the limit."""
        limit = self.max_export_messages if max_messages is None else max_messages
        return await self.read(lambda c: resume.check_export(c, session_id, limit=limit))
