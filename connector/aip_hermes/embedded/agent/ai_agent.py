"""One ordered conversation with a model: in memory, and durable where it has a session store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.alone import Alone
from aip_hermes.embedded.agent.builtin import offered_tools
from aip_hermes.embedded.agent.events import Approver, Nobody
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.fitting import Fitter, new_session_id
from aip_hermes.embedded.agent.given import (
    check_leases,
    check_message,
    check_store,
    checked_history,
    model_of,
    refuse,
)
from aip_hermes.embedded.agent.hearing import Hearing
from aip_hermes.embedded.agent.holding import LEASE_S, WAIT_S, LeaseTimeout, TurnLease
from aip_hermes.embedded.agent.keeping import LOSSES, Keeper, ReplyNotStored
from aip_hermes.embedded.agent.loop import Agent, TooManySteps
from aip_hermes.embedded.agent.models import Model, ModelFailed
from aip_hermes.embedded.agent.remembering import Memory
from aip_hermes.embedded.agent.taking import HistoryUnreadable, Order, take
from aip_hermes.embedded.agent.telling import Identity, TurnFailed, answered, failed, failure_text
from aip_hermes.embedded.agent.toolbox import ToolRegistry
from aip_hermes.embedded.agent.windows import Window
from aip_hermes.embedded.session_db import SessionDB, TurnGround
from aip_hermes.embedded.session_db.columns import text_of
from aip_hermes.embedded.session_db.holders import process_holder
from aip_hermes.log import configure_unless_done
from aip_hermes.ports import Clock, SystemClock, new_id
from aip_hermes.secret import Secret

__all__ = ["AIAgent"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """One call of run_conversation."""

    content: str | list[dict[str, Any]]
    stored_text: str
    user_row: Mapping[str, Any]
    system_message: str | None
    history: Sequence[Mapping[str, Any]] | None
    turn: str
    hearing: Hearing


class AIAgent:
    """One conversation: calls on one instance run one after the other, in call order, and remember each other.

    model: the name of a model behind `base_url` (OpenAI-compatible; api_key is sent as bearer), `"offline"`, or a Model
    object, which is borrowed. provider: a label, told in results.
    session_db: a store, borrowed: who made it closes it. Without one nothing is kept, until a recall tool opens
    `$HERMES_HOME/state.db`, which is the agent's own then. session_id: the row; None: a new id. The id of an old row
    alone loads nothing: give `conversation_history`. platform, user_id: for a new row.
    enabled_toolsets: None: all there are; disabled_toolsets: names, `*` for all. tools: the user's own.
    ephemeral_system_prompt: sent with each request, stored nowhere. max_iterations: requests per turn.
    approver: decides about commands; without one the tool that asks is not offered.
    context_length, compression_share: tokens that the model reads, and the share from which on a conversation is
    compressed (None: see Window); compression: `in_place`, `rotate` into a linked row, or `off`.
    turn_lease_wait_seconds: how long a turn waits for another process that has the conversation.

    The constructor touches nothing. Raises TypeError for arguments that it does not act on and for a store that is
    none, ValueError for values that make no sense.
    """

    def __init__(
        self,
        *,
        model: str | Model = "",
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        provider: str | None = None,
        session_db: SessionDB | None = None,
        session_id: str | None = None,
        enabled_toolsets: Iterable[str] | None = None,
        disabled_toolsets: Iterable[str] | None = None,
        ephemeral_system_prompt: str | None = None,
        max_iterations: int = 90,
        platform: str | None = None,
        user_id: str | None = None,
        tools: ToolRegistry | None = None,
        approver: Approver | None = None,
        context_length: int = 128_000,
        compression_share: float | None = None,
        compression: Literal["in_place", "rotate", "off"] = "in_place",
        turn_lease_seconds: float = LEASE_S,
        turn_lease_wait_seconds: float = WAIT_S,
        clock: Clock | None = None,
        **others: object,
    ) -> None:
        refuse(others)
        configure_unless_done()
        if session_db is not None:
            check_store(session_db)
        if max_iterations < 1:
            raise ValueError("max_iterations is at least 1")
        if compression not in ("in_place", "rotate", "off"):
            raise ValueError("compression is in_place, rotate or off")
        check_leases(turn_lease_seconds, turn_lease_wait_seconds)
        self._clock: Clock = clock or SystemClock()
        self._model, self._owns_model = model_of(
            model, base_url=base_url, api_key=api_key, provider=provider, clock=self._clock
        )
        self._identity = Identity(model=self._model.name, provider=provider, base_url=base_url)
        self._db = session_db
        self._own_db: SessionDB | None = None
        self._memory = Memory(session_id or new_session_id(self._clock))
        self._prompt = ephemeral_system_prompt
        self._platform = os.environ.get("HERMES_SESSION_SOURCE") or platform or "cli"
        self._row = {
            "source": self._platform,
            "model": self._model.name,
            "model_config": {"max_iterations": max_iterations},
            "user_id": user_id,
        }
        self._approver: Approver = approver or Nobody()
        toolbox = offered_tools(
            tools,
            enabled=enabled_toolsets,
            disabled=disabled_toolsets,
            db=session_db,
            asks=approver is not None,
            clock=self._clock,
        )
        window = Window(tokens=context_length, share=compression_share)
        self._fitter = Fitter(model=self._model, clock=self._clock, window=window, in_place=compression != "rotate")
        self._agent = Agent(
            model=self._model,
            toolbox=toolbox,
            clock=self._clock,
            max_steps=max_iterations,
            fitting=None if compression == "off" else self._fitter,
            opener=self._open_default,
        )
        self._lease_s, self._wait_s = turn_lease_seconds, turn_lease_wait_seconds
        self._alone = Alone()
        self._begun = False
        self._closed = False

    @property
    def session_id(self) -> str:
        """The row that the conversation is in now; another one after a compression that rotated."""
        return self._memory.session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def chat(self, text: str, stream_callback: Callable[[str], object] | None = None) -> str:
        """Say something and return the answer. Raises TurnFailed where there is none, RuntimeError once closed."""
        result = await self.run_conversation(text, stream_callback=stream_callback)
        if result["failed"]:
            raise TurnFailed(result)
        return str(result["final_response"])

    async def run_conversation(
        self,
        user_message: str | list[dict[str, Any]],
        system_message: str | None = None,
        conversation_history: Sequence[Mapping[str, Any]] | None = None,
        task_id: str | None = None,
        stream_callback: Callable[[str], object] | None = None,
        persist_user_message: str | None = None,
        persist_user_timestamp: float | None = None,
        persist_user_display_kind: str | None = None,
        persist_user_display_metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Take one turn and return its result: `final_response`, `messages`, counts, `session_id`, `persisted`.

        user_message: text, or a list of content parts. system_message: for this turn. conversation_history: what came
        before, taken as stored already, copied, and the instance's own from now on; None: its own. stream_callback:
        told each piece of text. persist_user_…: what the user row holds instead.

        A model that failed and a question that could not be stored are results with `failed` and `error`. An answer
        that could not be stored has `persisted: False` and the cause in `persist_error`. Cancelled, the turn keeps the
        question, finished tool calls and the text so far (as an `interrupted` row), then raises CancelledError.
        Raises RuntimeError once closed, and where a tool or a callback of a turn asks its own agent for another, which
        could only wait for itself; TypeError for a message and a history that are none.
        """
        check_message(user_message)
        history = None if conversation_history is None else checked_history(conversation_history)
        said = text_of(user_message)
        columns = {
            "timestamp": persist_user_timestamp,
            "display_kind": persist_user_display_kind,
            "display_metadata": persist_user_display_metadata,
            "api_content": said if persist_user_message not in (None, said) else None,
        }
        asked = _Asked(
            content=user_message,
            stored_text=said if persist_user_message is None else persist_user_message,
            user_row={name: value for name, value in columns.items() if value is not None},
            system_message="\n\n".join(text for text in (self._prompt, system_message) if text) or None,
            history=history,
            turn=task_id or new_id(""),
            hearing=Hearing(stream_callback),
        )
        async with self._alone.inside():
            self._check_open()
            return await self._turn(asked)

    async def compress(self) -> bool:
        """Compress the conversation now, however short. False, and nothing has changed, where there is too little,
        where somebody else does it or has the conversation for too long, and where the summary failed, which the row
        notes then.
        """
        async with self._alone.inside():
            self._check_open()
            async with self._keeping(new_id("")) as keeper:
                try:
                    await self._load(keeper)
                except LeaseTimeout:
                    return False
                try:
                    return await self._fitter.compress(keeper)
                finally:
                    self._memory.go_on(keeper)

    async def close(self) -> None:
        """End the row as `agent_close` unless it has ended, close what is the agent's own. Waits for turns; any number
        of times. A borrowed store and a borrowed model stay open.
        """
        async with self._alone.inside():
            if not self._closed:
                self._closed = True
                await finished(self._close())

    async def _close(self) -> None:
        try:
            if self._begun and self._db is not None:
                await self._db.end_session(self._memory.session_id, "agent_close")
        except (StoreFailure, RuntimeError) as exc:  # a store that its owner closed first
            log.warning("agent.row_not_ended", cause=type(exc).__name__)
        finally:
            if self._own_db is not None:
                await self._own_db.close()
            if self._owns_model:
                await self._model.aclose()

    async def _turn(self, asked: _Asked) -> dict[str, Any]:
        try:
            async with self._keeping(asked.turn) as keeper:
                return await self._taken(keeper, self._order(asked), asked.hearing)
        except LeaseTimeout as exc:
            return self._refused("session_turn_lease_timeout", str(exc))
        except StoreFailure as exc:
            return self._refused("session_store_unavailable", f"Session database not available: {exc}")

    async def _taken(self, keeper: Keeper, order: Order, hearing: Hearing) -> dict[str, Any]:
        try:
            turn = await take(self._agent, keeper, order)
            await hearing.ended()
            return answered(keeper, self._identity, text=turn.text, finish_reason=turn.finish_reason)
        except TooManySteps as exc:
            return failed(keeper, self._identity, reason="max_iterations", error=str(exc))
        except ModelFailed as exc:
            return failed(keeper, self._identity, reason="model_failed", error=failure_text(exc))
        except (HistoryUnreadable, ReplyNotStored, *LOSSES) as exc:
            cause = exc.__cause__ or exc
            keeper.cause = keeper.cause or f"{type(cause).__name__}: {cause}"
            error = f"Session database not available: {cause}"
            return failed(keeper, self._identity, reason="session_store_unavailable", error=error)
        finally:
            hearing.left()
            if keeper.asked:
                self._begun = True
                self._memory.go_on(keeper)

    def _order(self, asked: _Asked) -> Order:
        def recall(ground: TurnGround | None, waited: bool) -> Sequence[Mapping[str, Any]] | None:
            return self._memory.recall(ground, waited, asked.history)

        return Order(
            session_id=self._memory.session_id,
            content=asked.content,
            stored_text=asked.stored_text,
            user_row=asked.user_row,
            system_message=asked.system_message,
            recall=recall,
            create=True,
            listener=asked.hearing.hear,
            approver=self._approver,
        )

    @asynccontextmanager
    async def _keeping(self, turn: str) -> AsyncIterator[Keeper]:
        """Yield what stores a turn, with its lease; without a store there is nothing to hold."""
        keeper = Keeper(
            self._db,
            self._memory.session_id,
            model_name=self._model.name,
            tolerant=True,
            row={**self._row, "cwd": _folder()},
        )
        if self._db is None:
            yield keeper
            return
        holder = process_holder(turn=turn, platform=self._platform)
        async with TurnLease(
            self._db, self._memory.session_id, holder, wait_s=self._wait_s, lease_s=self._lease_s
        ) as lease:
            keeper.lease = lease
            yield keeper

    async def _load(self, keeper: Keeper) -> None:
        """Take the lease and let the keeper know the conversation, as a turn would go on with it."""
        ground, waited = None, False
        if keeper.db is not None and keeper.lease is not None:
            await keeper.lease.take()
            ground, waited = await keeper.db.get_turn_ground(keeper.session_id), keeper.lease.waited
            keeper.stands_on(ground.session_id, ground.newest, ground.messages)
        messages = self._memory.recall(ground, waited, None)
        if messages is None and keeper.db is not None:
            messages = await keeper.db.get_messages_as_conversation(keeper.session_id, include_row_ids=True)
        keeper.messages = [dict(message) for message in messages or ()]

    async def _open_default(self, keeper: Keeper) -> SessionDB:
        """Open the default store for a conversation without one, which is stored there from now on."""
        # Half of it would leave a turn whose rows are in a store that nobody has any more.
        return await finished(self._open_wholly(keeper))

    async def _open_wholly(self, keeper: Keeper) -> SessionDB:
        db = SessionDB(clock=self._clock)
        try:
            await keeper.attach(db)
        except BaseException:
            await db.close()
            raise
        self._db = self._own_db = db
        return db

    def _refused(self, reason: str, error: str) -> dict[str, Any]:
        """Return the result of a turn that did not begin."""
        keeper = Keeper(self._db, self._memory.session_id, model_name=self._model.name)
        keeper.messages, keeper.cause = [dict(message) for message in self._memory.messages], error
        return failed(keeper, self._identity, reason=reason, error=error)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("AIAgent is closed")


def _folder() -> str | None:
    """Return where the program works; None where that folder is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
