"""One turn after the other: history, user row, the agent's steps.

Turns of one session stand in one queue, each runs on the history that the one before left. A turn runs to its end
whether or not its caller still waits. The user row is durable before the model is asked, the last assistant row before
the turn is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.compressing import Compression, compressed
from aip_hermes.embedded.agent.events import Approver, Listener, Nobody, TurnBegan, unheard
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.habits import RIGHT, Habits
from aip_hermes.embedded.agent.keeping import ReplyNotStored
from aip_hermes.embedded.agent.loop import Agent, AgentAnswer
from aip_hermes.embedded.agent.models import Model, ModelFailed
from aip_hermes.embedded.agent.queues import Queues
from aip_hermes.embedded.agent.tools import CommandTool
from aip_hermes.embedded.session_db import GrantStore, SessionDB, SessionExists, Usage, repair_message_sequence
from aip_hermes.ports import Clock

__all__ = ["HistoryUnreadable", "Order", "ReplyNotStored", "TooManyTurns", "TurnInProgress", "TurnResult", "Turns"]

T = TypeVar("T")
log = structlog.get_logger(__name__)

_SOURCE: Final = "api_server"


class TurnInProgress(Exception):
    """A turn of the session runs or waits; nothing was changed."""


class TooManyTurns(Exception):
    """As many turns run as may run at once; nothing was changed."""


class HistoryUnreadable(Exception):
    """The stored history could not be read; no turn ran and nothing was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a turn is to do.

    content: what the model reads. stored_text: what the user row holds. system_message: for this turn. history: read by
    the model instead of the stored one. create: make the row if there is none. listener: hears the turn. approver:
    decides about tools. habits: where it does as release 0.19.0. compression: what it
    begins with.
    """

    session_id: str
    content: str | list[dict[str, Any]]
    stored_text: str
    system_message: str | None = None
    history: Sequence[dict[str, Any]] | None = None
    create: bool = False
    listener: Listener = unheard
    approver: Approver = field(default_factory=Nobody)
    habits: Habits = RIGHT
    compression: Compression | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnResult:
    """session_id: the row that holds the turn, another than the asked one after a compression. usage: of this turn.

    rows: its assistant and tool messages. read: everything that the model read, and these rows.
    """

    session_id: str
    text: str
    finish_reason: str
    usage: Usage
    rows: list[dict[str, Any]]
    read: list[dict[str, Any]]


class Turns:
    """Runs turns on a borrowed store and a borrowed model. at_once: how many routes with a cap let run; 0: any."""

    def __init__(self, *, db: SessionDB, model: Model, clock: Clock, at_once: int = 10) -> None:
        self._db = db
        self._agent = Agent(db=db, model=model, tool=CommandTool(GrantStore(db, clock=clock)), clock=clock)
        self._queues = Queues()
        self._clock = clock
        self._running: set[asyncio.Task[Any]] = set()
        self.at_once = at_once

    @property
    def active(self) -> int:
        """How many turns run or wait."""
        return len(self._running)

    def check_capacity(self) -> None:
        """Raise TooManyTurns where one more would be too many."""
        if self.at_once and self.active >= self.at_once:
            raise TooManyTurns

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let a turn, and what belongs to it, run to its end whoever waits for it. Counts as active."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def run(self, order: Order) -> TurnResult:
        """Run one turn and wait. The turn goes on when the caller is cancelled. Raises as `take`."""
        return await asyncio.shield(self.start(self.take(order)))

    async def take(self, order: Order) -> TurnResult:
        """Take one turn on the compression tip of its session, after those before it.

        Raises UnknownSession, HistoryUnreadable and StoreFailure (nothing was written), ModelFailed and ReplyNotStored
        (the user row was). Cancelled, it keeps its partial text.
        """
        async with self._row_of(order) as target:
            # A turn that is given up here has at least said what it was asked.
            messages = await finished(self._begin(target, order))
            order.listener(TurnBegan(session_id=target))
            try:
                answer = await self._answer(target, messages, order)
            except StoreFailure as exc:  # whichever write it was: the user row stands, so it is no longer nothing
                raise ReplyNotStored from exc
            return TurnResult(
                session_id=target,
                text=answer.text,
                finish_reason=answer.finish_reason,
                usage=answer.usage,
                rows=answer.rows,
                read=messages,
            )

    @asynccontextmanager
    async def undisturbed(self, session_id: str) -> AsyncIterator[None]:
        """Keep turns of the row out for a moment. Raises TurnInProgress at once when one runs or waits."""
        if self._queues.has_turns(session_id):
            raise TurnInProgress
        async with self._queues.alone(session_id, turn=False):
            yield

    async def aclose(self) -> None:
        """Stop what runs; user rows stay. The store and the model are the lender's to close."""
        running = list(self._running)
        for turn in running:
            turn.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, target: str, messages: list[dict[str, Any]], order: Order) -> AgentAnswer:
        try:
            return await self._agent.answer(
                target,
                messages,
                system=order.system_message,
                listener=order.listener,
                approver=order.approver,
                habits=order.habits,
            )
        except ModelFailed as exc:
            if order.habits.admits_failure:
                raise
            return AgentAnswer(text=_told(exc), finish_reason="error", usage=Usage(), rows=[])

    async def _begin(self, target: str, order: Order) -> list[dict[str, Any]]:
        """Read the history, then store the user row; nothing is stored where the history can't be read."""
        try:
            if order.create and await self._db.get_session(target) is None:
                await self._make_row(target)
            if order.history is None:
                messages = await self._db.get_messages_as_conversation(target)
            else:
                messages = [dict(message) for message in order.history]
        except Exception as exc:  # whatever the cause: a turn on an empty history would look like success
            log.error("turn.history_unreadable", cause=type(exc).__name__)
            if order.habits.admits_failure:
                raise HistoryUnreadable from exc
            messages = []
        await self._ask(target, order)
        messages.append({"role": "user", "content": order.content})
        repair_message_sequence(messages)
        return messages

    async def _ask(self, target: str, order: Order) -> None:
        into_compressed = not order.habits.follows_compression
        try:
            await self._db.append_message(target, "user", order.stored_text, into_compressed=into_compressed)
        except StoreFailure as exc:
            log.error("turn.question_not_stored", cause=type(exc).__name__)
            if order.habits.admits_failure:
                raise

    async def _make_row(self, session_id: str) -> None:
        try:
            await self._db.create_absent_session(session_id, _SOURCE)
        except SessionExists:
            return  # somebody else was faster, which is as good

    @asynccontextmanager
    async def _row_of(self, order: Order) -> AsyncIterator[str]:
        """Wait for the asked row, then for its compression tip where that is another; yields the row of the turn: the
        tip, or what a compression made of it.

        Locks are taken down a chain only, so two waiters can't wait for each other.
        """
        session_id, habits = order.session_id, order.habits
        enter = self._queues.alone if habits.one_at_a_time else self._queues.beside
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(enter(session_id))
            target = session_id
            while habits.follows_compression and (tip := await self._db.get_compression_tip(session_id)) != target:
                await locks.enter_async_context(enter(tip))
                target = tip
            if order.compression is not None:
                if (child_id := order.compression.child_id) is not None:
                    # Before the row can be found: nobody gets in between.
                    await locks.enter_async_context(enter(child_id))
                target = await compressed(self._db, target, order.compression, clock=self._clock)
            yield target

    def _ended(self, turn: asyncio.Task[Any]) -> None:
        self._running.discard(turn)
        # Read the outcome here too: nobody may wait for it any more.
        if not turn.cancelled() and turn.exception() is not None:
            log.info("turn.failed", cause=type(turn.exception()).__name__)


def _told(failure: ModelFailed) -> str:
    """Return what release 0.19.0 answers in place of a reply."""
    if failure.status is not None and 400 <= failure.status < 500 and failure.status != 429:
        return f"HTTP {failure.status}: {failure}"
    return f"API call failed after 3 retries: {failure}"
