"""One turn after the other: history, user row, model, assistant row.

Turns of one session stand in one queue, each runs on the history that the one before left. A turn runs to its end
whether or not its caller still waits. The user row is durable before the model is asked, the assistant row before the
turn is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.models import Model, ModelReply, ModelRequest
from aip_hermes.embedded.session_db import (
    CompressionSessionClosedError,
    SessionDB,
    UnknownSession,
    Usage,
    repair_message_sequence,
)

__all__ = ["HistoryUnreadable", "ReplyNotStored", "TurnInProgress", "TurnResult", "Turns"]

log = structlog.get_logger(__name__)


class TurnInProgress(Exception):
    """A turn of the session runs or waits; nothing was changed."""


class HistoryUnreadable(Exception):
    """The stored history could not be read; no turn ran and nothing was written."""


class ReplyNotStored(Exception):
    """The model replied and its reply could not be stored; the user row is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnResult:
    """session_id: the row that holds the turn, another than the asked one after a compression. usage: of this turn."""

    session_id: str
    text: str
    usage: Usage


@dataclass(slots=True)
class _Queue:
    lock: asyncio.Lock
    users: int = 0
    turns: int = 0


class Turns:
    """Runs turns on a borrowed store and a borrowed model."""

    def __init__(self, *, db: SessionDB, model: Model) -> None:
        self._db = db
        self._model = model
        self._queues: dict[str, _Queue] = {}
        self._running: set[asyncio.Task[TurnResult]] = set()

    @property
    def active(self) -> int:
        """How many turns run or wait."""
        return len(self._running)

    async def run(
        self, session_id: str, *, content: str | list[dict[str, Any]], stored_text: str, system_message: str | None
    ) -> TurnResult:
        """Run one turn on the compression tip of `session_id`. The turn goes on when the caller is cancelled.

        content: what the model reads. stored_text: what the user row holds.
        Raises UnknownSession, HistoryUnreadable and StoreFailure (nothing was written), ModelFailed and ReplyNotStored
        (the user row was).
        """
        turn = asyncio.create_task(self._turn(session_id, content, stored_text, system_message))
        self._running.add(turn)
        turn.add_done_callback(self._ended)
        return await asyncio.shield(turn)

    @asynccontextmanager
    async def undisturbed(self, session_id: str) -> AsyncIterator[None]:
        """Keep turns of the row out for a moment. Raises TurnInProgress at once when one runs or waits."""
        queue = self._queues.get(session_id)
        if queue is not None and queue.turns:
            raise TurnInProgress
        async with self._alone(session_id, turn=False):
            yield

    async def aclose(self) -> None:
        """Stop what runs; user rows stay. The store and the model are the lender's to close."""
        running = list(self._running)
        for turn in running:
            turn.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _turn(
        self, session_id: str, content: str | list[dict[str, Any]], stored_text: str, system_message: str | None
    ) -> TurnResult:
        async with self._at_the_tip(session_id) as target:
            messages = await self._begin(target, content, stored_text)
            reply = await self._model.complete(ModelRequest(messages=messages, system=system_message))
            await self._finish(target, reply)
            return TurnResult(session_id=target, text=reply.text, usage=reply.usage)

    async def _begin(self, target: str, content: str | list[dict[str, Any]], stored_text: str) -> list[dict[str, Any]]:
        """Read the history, then store the user row; nothing is stored where the history can't be read."""
        try:
            messages = await self._db.get_messages_as_conversation(target)
        except Exception as exc:  # whatever the cause: a turn on an empty history would look like success
            log.error("turn.history_unreadable", cause=type(exc).__name__)
            raise HistoryUnreadable from exc
        await self._db.append_message(target, "user", stored_text)
        messages.append({"role": "user", "content": content})
        repair_message_sequence(messages)
        return messages

    async def _finish(self, target: str, reply: ModelReply) -> None:
        try:
            await self._db.record_reply(
                target, reply.text, finish_reason=reply.finish_reason, usage=reply.usage, model=self._model.name
            )
        except (StoreFailure, UnknownSession, CompressionSessionClosedError) as exc:
            log.error("turn.reply_not_stored", cause=type(exc).__name__)
            raise ReplyNotStored from exc

    @asynccontextmanager
    async def _at_the_tip(self, session_id: str) -> AsyncIterator[str]:
        """Wait for the asked row, then for its compression tip where that is another; yields the tip.

        Locks are taken down a chain only, so two waiters can't wait for each other.
        """
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(self._alone(session_id))
            target = session_id
            while (tip := await self._db.get_compression_tip(session_id)) != target:
                await locks.enter_async_context(self._alone(tip))
                target = tip
            yield target

    @asynccontextmanager
    async def _alone(self, session_id: str, *, turn: bool = True) -> AsyncIterator[None]:
        queue = self._queues.setdefault(session_id, _Queue(asyncio.Lock()))
        queue.users += 1
        queue.turns += turn
        try:
            async with queue.lock:
                yield
        finally:
            queue.users -= 1
            queue.turns -= turn
            if queue.users == 0:
                del self._queues[session_id]

    def _ended(self, turn: asyncio.Task[TurnResult]) -> None:
        self._running.discard(turn)
        # Read the outcome here too: nobody may wait for it any more.
        if not turn.cancelled() and turn.exception() is not None:
            log.info("turn.failed", cause=type(turn.exception()).__name__)
