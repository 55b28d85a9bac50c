"""Methods that make a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.embedded.session_db import sessions
from aip_hermes.embedded.session_db.sessions import NewSession
from aip_hermes.embedded.session_db.store_file import StoreFile

__all__ = ["CreateMethods"]


class CreateMethods(StoreFile):
    """Create, enrich, fork."""

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

    async def ensure_session(
        self, session_id: str, source: str = "unknown", model: str | None = None, **fields: Any
    ) -> str:
        """Do what `create_session` does, with its fields."""
        return await self.create_session(session_id, source, model=model, **fields)

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
