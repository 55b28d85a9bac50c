"""The session store: transcripts that outlive their process.

Every method is one operation of the database: one hop, one transaction, answered after the commit. Reads run beside
writes and see the last commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.database import Connection
from aip_hermes.embedded.session_db import sessions, transcript
from aip_hermes.embedded.session_db.conversation import conversation_message, repair_message_sequence
from aip_hermes.embedded.session_db.queries import QUERIES
from aip_hermes.embedded.session_db.sessions import NewSession
from aip_hermes.embedded.session_db.store_file import APPLICATION_ID, StoreFile
from aip_hermes.embedded.session_db.transcript import Usage

__all__ = ["APPLICATION_ID", "SessionDB"]


class SessionDB(StoreFile):
    """A durable store of sessions; the constructor touches nothing, the first operation opens.

    path: the SQLite file. read_only: nothing is made or migrated, every write fails with StoreUnavailable.

    Raises, from each operation: RuntimeError once closed; StoreUnavailable and StoreRefused of the database. Ids and
    texts may hold anything; lone surrogates are replaced by U+FFFD. Rows are dictionaries, times are Unix seconds.
    """

    # -- create ---------------------------------------------------------------------------------------------------

    async def create_session(
        self,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        session_key: str | None = None,
        chat_id: str | None = None,
        chat_type: str | None = None,
        thread_id: str | None = None,
        parent_session_id: str | None = None,
        cwd: str | None = None,
        profile_name: str | None = None,
        git_repo_root: str | None = None,
        origin_json: str | None = None,
        display_name: str | None = None,
    ) -> str:
        """Insert a row, or fill the empty places of the one that has this id; returns the id.

        A child inherits place and repository of its parent, after a compression also who it belongs to. Raises
        UnknownSession for an unknown parent.
        """
        new = NewSession(
            id=session_id,
            source=source,
            started_at=self._now(),
            model=model,
            model_config=model_config,
            system_prompt=system_prompt,
            user_id=user_id,
            session_key=session_key,
            chat_id=chat_id,
            chat_type=chat_type,
            thread_id=thread_id,
            parent_session_id=parent_session_id,
            cwd=cwd,
            profile_name=profile_name,
            git_repo_root=git_repo_root,
            origin_json=origin_json,
            display_name=display_name,
        )
        return await self.write(lambda c: sessions.create(c, new))

    async def create_absent_session(
        self,
        session_id: str,
        source: str,
        *,
        title: object = None,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> dict[str, Any]:
        """Insert a row whose id must be free, with its title, in one transaction; returns it.

        Raises SessionExists, TitleRefused. Of several at once, exactly one gets the id.
        """
        new = NewSession(id=session_id, source=source, started_at=self._now(), model=model, system_prompt=system_prompt)
        return await self.write(lambda c: sessions.create_absent(c, new, title=title))

    async def fork_session(
        self,
        session_id: str,
        child_id: str,
        *,
        title: object = None,
        automatic_title: bool = False,
        source: str = "api_server",
        marked: bool = True,
    ) -> dict[str, Any]:
        """Branch a transcript: end the source as `branched` unless it has ended, insert the child marked
        `_branched_from` with the source's live messages, give it its title; all in one transaction. Returns the child.

        automatic_title: the next in the source's lineage instead of `title`. marked: without its mark a fork is taken
        for a continuation where `through_unmarked` resolves. Raises UnknownSession, SessionExists,
        TitleRefused; then nothing has changed.
        """
        now = self._now()
        return await self.write(
            lambda c: sessions.fork(
                c,
                session_id,
                child_id=child_id,
                title=title,
                automatic_title=automatic_title,
                at=now,
                source=source,
                marked=marked,
            )
        )

    # -- transcript -----------------------------------------------------------------------------------------------

    async def append_message(
        self,
        session_id: str,
        role: str,
        content: object = None,
        *,
        tool_name: str | None = None,
        tool_calls: Sequence[Any] | str | None = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: object = None,
        codex_reasoning_items: object = None,
        codex_message_items: object = None,
        platform_message_id: str | None = None,
        observed: bool = False,
        effect_disposition: str | None = None,
        timestamp: object = None,
        api_content: str | None = None,
        display_kind: str | None = None,
        display_metadata: object = None,
        into_compressed: bool = False,
    ) -> int:
        """Append one message, count it on the row, return its row id.

        into_compressed: as transcript.append.
        Raises UnknownSession, CompressionSessionClosedError; then nothing is written.
        """
        message = {
            "role": role,
            "content": content,
            "tool_name": tool_name,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
            "token_count": token_count,
            "finish_reason": finish_reason,
            "reasoning": reasoning,
            "reasoning_content": reasoning_content,
            "reasoning_details": reasoning_details,
            "codex_reasoning_items": codex_reasoning_items,
            "codex_message_items": codex_message_items,
            "platform_message_id": platform_message_id,
            "observed": observed,
            "effect_disposition": effect_disposition,
            "timestamp": timestamp,
            "api_content": api_content,
            "display_kind": display_kind,
            "display_metadata": display_metadata,
        }
        now = self._now()
        (row_id,) = await self.write(
            lambda c: transcript.append(c, session_id, [message], now=now, batch=False, into_compressed=into_compressed)
        )
        return row_id

    async def append_messages_batch(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> int:
        """Append messages given by column names in one transaction; returns how many.

        Row ids and session ids in them are ignored, so rows of another transcript may be given.
        """
        if not messages:
            return 0
        now = self._now()
        return len(await self.write(lambda c: transcript.append(c, session_id, messages, now=now, batch=True)))

    async def record_reply(
        self,
        session_id: str,
        content: str,
        *,
        finish_reason: str,
        usage: Usage,
        model: str,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        into_compressed: bool = False,
    ) -> int:
        """Append one assistant message of a turn and add its usage to the row, together; returns the row id.

        Raises UnknownSession where the row was deleted meanwhile: it does not come back.
        """
        reply = {
            "role": "assistant",
            "content": content,
            "finish_reason": finish_reason,
            "token_count": usage.output_tokens,
            "tool_calls": tool_calls,
        }
        now = self._now()
        return await self.write(
            lambda c: transcript.record_reply(
                c, session_id, reply, usage=usage, model=model, now=now, into_compressed=into_compressed
            )
        )

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
            rows = transcript.messages(connection, session_id, include_inactive=include_inactive)
            found = [conversation_message(row, include_row_id=include_row_ids) for row in rows]
            if repair_alternation:
                repair_message_sequence(found)
            return found

        return await self.read(conversation)

    async def message_count(self, session_id: str) -> int:
        """Return how many rows the transcript has, hidden ones included."""
        rows = await self.read(lambda c: c.execute(QUERIES["count_messages"], {"session_id": session_id}))
        return int(rows[0]["messages"])

    # -- rows -----------------------------------------------------------------------------------------------------

    async def get_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the row, or None."""
        return await self.read(lambda c: sessions.fetch(c, session_id))

    async def get_session_by_title(self, title: str) -> dict[str, Any] | None:
        """Return the row with exactly this title, or None."""

        def by_title(connection: Connection) -> dict[str, Any] | None:
            rows = connection.execute(QUERIES["session_by_title"], {"title": title})
            return sessions.fetch(connection, rows[0]["id"]) if rows else None

        return await self.read(by_title)

    async def list_sessions_rich(
        self,
        source: str | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        include_children: bool = False,
        project_compression_tips: bool = True,
        order_by_last_active: bool = False,
        include_archived: bool = False,
        compact_rows: bool = False,
    ) -> list[dict[str, Any]]:
        """Return one page of rows with `preview`, `last_active` and `unread`, newest first.

        By default one entry per conversation: roots, forks and resets, a compressed root shown as its continuation with
        `_lineage_root_id`. compact_rows: without prompt texts.
        """
        return await self.read(
            lambda c: transcript.listing(
                c,
                source=source,
                limit=limit,
                offset=offset,
                include_children=include_children,
                project_compression_tips=project_compression_tips,
                order_by_last_active=order_by_last_active,
                include_archived=include_archived,
                compact_rows=compact_rows,
            )
        )

    @staticmethod
    def sanitize_title(title: str | None) -> str | None:
        """Return the title as it would be stored. Raises TitleRefused (a ValueError) beyond 100 characters."""
        return sessions.sanitized_title(title)

    async def set_session_title(self, session_id: str, title: object) -> bool:
        """Write or clear the title; False for an unknown id. Raises TitleRefused, naming the holder of one in use."""
        return await self.write(lambda c: sessions.set_title(c, session_id, title))

    async def change_session(self, session_id: str, changes: Mapping[str, object]) -> dict[str, Any]:
        """Apply `title`, then a truthy `end_reason`, each where given, in one transaction; returns the row.

        Raises UnknownSession, TitleRefused; then nothing has changed.
        """
        now = self._now()
        return await self.write(lambda c: sessions.change(c, session_id, changes, at=now))

    async def get_next_title_in_lineage(self, base_title: str) -> str:
        """Return `base_title` if free, else the next number of its lineage."""
        return await self.read(lambda c: sessions.next_title(c, base_title))

    async def end_session(self, session_id: str, reason: str) -> None:
        """Close the row unless it is closed: the first reason wins. An unknown id is nothing to do."""
        now = self._now()
        await self.write(lambda c: sessions.end(c, session_id, reason=reason, at=now))

    async def delete_session(self, session_id: str) -> bool:
        """Remove the row, its messages and its subagents' rows; other children lose their parent. False: unknown id."""
        return await self.write(lambda c: sessions.delete(c, session_id))

    # -- lineage --------------------------------------------------------------------------------------------------

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
