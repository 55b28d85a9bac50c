"""Where the steps of one turn are stored, and what it means when they can't be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.habits import Habits
from aip_hermes.embedded.agent.models import ModelReply
from aip_hermes.embedded.session_db import CompressionSessionClosedError, SessionDB, UnknownSession

__all__ = ["Keeper", "ReplyNotStored"]

log = structlog.get_logger(__name__)


class ReplyNotStored(Exception):
    """The model replied and its reply could not be stored; the user row is there."""


class Keeper:
    """Stores the rows of one turn in one session. model_name: the label of a row that has none."""

    def __init__(self, db: SessionDB, session_id: str, *, model_name: str, habits: Habits) -> None:
        self._db = db
        self._model_name = model_name
        self._habits = habits
        self.session_id = session_id

    async def reply(self, reply: ModelReply, tool_calls: Sequence[Mapping[str, Any]] | None) -> None:
        """Store an assistant row and what it used. Raises ReplyNotStored."""
        with self._storing():
            await self._db.record_reply(
                self.session_id,
                reply.text,
                finish_reason=reply.finish_reason,
                usage=reply.usage,
                model=self._model_name,
                tool_calls=tool_calls,
                into_compressed=not self._habits.follows_compression,
            )

    async def result(self, row: Mapping[str, Any]) -> None:
        """Store a tool row. Raises ReplyNotStored."""
        with self._storing():
            await self._db.append_message(
                self.session_id,
                "tool",
                row["content"],
                tool_name=row["tool_name"],
                tool_call_id=row["tool_call_id"],
                into_compressed=not self._habits.follows_compression,
            )

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except (StoreFailure, UnknownSession, CompressionSessionClosedError) as exc:
            log.error("turn.reply_not_stored", cause=type(exc).__name__)
            if self._habits.admits_failure:
                raise ReplyNotStored from exc
