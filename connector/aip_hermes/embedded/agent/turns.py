"""One turn after the other.

Turns of one session stand in one queue, each runs on the history that the one before left; a lease in the store keeps
other processes apart. A turn runs to its end whether or not its caller still waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import structlog

from aip_hermes.embedded.agent.compressing import compressed
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.fitting import Fitter
from aip_hermes.embedded.agent.holding import LeaseTimeout, TurnLease, let_go
from aip_hermes.embedded.agent.keeping import Keeper, ReplyNotStored
from aip_hermes.embedded.agent.loop import Agent
from aip_hermes.embedded.agent.models import Model
from aip_hermes.embedded.agent.queues import Queues
from aip_hermes.embedded.agent.taking import HistoryUnreadable, Order, TurnResult, take
from aip_hermes.embedded.agent.tools import command_registry
from aip_hermes.embedded.agent.windows import Window
from aip_hermes.embedded.session_db import GrantStore, SessionDB
from aip_hermes.embedded.session_db.holders import process_holder
from aip_hermes.ports import Clock, new_id

__all__ = ["HistoryUnreadable", "Order", "ReplyNotStored", "TooManyTurns", "TurnInProgress", "TurnResult", "Turns"]

T = TypeVar("T")
log = structlog.get_logger(__name__)


class TurnInProgress(Exception):
    """A turn of the session runs or waits, here or in another process; nothing was changed."""


class TooManyTurns(Exception):
    """As many turns run as may run at once; nothing was changed."""


class Turns:
    """Runs turns on a borrowed store and a borrowed model. at_once: how many routes with a cap let run; 0: any.

    window: what the model reads; conversations that outgrow it are compressed in place. None: they never are.
    """

    def __init__(
        self, *, db: SessionDB, model: Model, clock: Clock, at_once: int = 10, window: Window | None = None
    ) -> None:
        self._db = db
        self._model = model
        registry = command_registry(GrantStore(db, clock=clock))
        fitter = None if window is None else Fitter(model=model, clock=clock, window=window)
        self._agent = Agent(model=model, toolbox=registry.chosen(None, None), clock=clock, fitting=fitter)
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

        Raises TurnInProgress (another process has the conversation, for half an hour), UnknownSession,
        HistoryUnreadable and StoreFailure (nothing was written), ModelFailed and ReplyNotStored (the user row was).
        Cancelled, it keeps its partial text.
        """
        try:
            async with self._row_of(order) as (target, lease):
                keeper = Keeper(self._db, target, model_name=self._model.name, habits=order.habits, lease=lease)
                return await take(self._agent, keeper, order)
        except LeaseTimeout as exc:
            raise TurnInProgress from exc

    @asynccontextmanager
    async def undisturbed(self, session_id: str) -> AsyncIterator[None]:
        """Keep turns of the row out for a moment. Raises TurnInProgress at once when one runs or waits."""
        if self._queues.has_turns(session_id):
            raise TurnInProgress
        holder = self._holder()
        async with self._queues.alone(session_id, turn=False):
            # By its first segment, which stays what it is when the row itself is taken away.
            first = next(iter(await self._db.get_compression_lineage(session_id)), session_id)
            try:
                if not await self._db.try_acquire_session_turn_lease(first, holder):
                    raise TurnInProgress
                yield
            finally:
                # Also where taking it was cancelled: it may have been taken all the same.
                await finished(let_go(self._db, first, holder))

    async def aclose(self) -> None:
        """Stop what runs; user rows stay. The store and the model are the lender's to close."""
        running = list(self._running)
        for turn in running:
            turn.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @asynccontextmanager
    async def _row_of(self, order: Order) -> AsyncIterator[tuple[str, TurnLease | None]]:
        """Wait for the asked row, then for its compression tip where that is another; yields the row of the turn: the
        tip, or what a compression made of it; and the lease that other processes heed.

        Locks are taken down a chain only, so two waiters can't wait for each other; the lease comes last.
        """
        session_id, habits = order.session_id, order.habits
        enter = self._queues.alone if habits.one_at_a_time else self._queues.beside
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(enter(session_id))
            target, lease = session_id, None
            while habits.follows_compression and (tip := await self._db.get_compression_tip(session_id)) != target:
                await locks.enter_async_context(enter(tip))
                target = tip
            if habits.one_at_a_time:
                lease = await locks.enter_async_context(TurnLease(self._db, session_id, self._holder()))
            if order.compression is not None:
                if lease is not None:
                    await lease.take()
                if (child_id := order.compression.child_id) is not None:
                    # Before the row can be found: nobody gets in between.
                    await locks.enter_async_context(enter(child_id))
                target = await compressed(self._db, target, order.compression, clock=self._clock)
            yield target, lease

    def _holder(self) -> str:
        return process_holder(turn=new_id(""), platform="api_server")

    def _ended(self, turn: asyncio.Task[Any]) -> None:
        self._running.discard(turn)
        # Read the outcome here too: nobody may wait for it any more.
        if not turn.cancelled() and turn.exception() is not None:
            log.info("turn.failed", cause=type(turn.exception()).__name__)
