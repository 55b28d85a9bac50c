"""One turn on a row that is held for it: history, user row, the agent's steps.

The user row is durable before the model is asked, each step before the next, the last assistant row before the turn is
answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from aip_hermes.database import StoreFailure
from aip_hermes.embedded.agent.compressing import Compression
from aip_hermes.embedded.agent.events import Approver, Listener, Nobody, TurnBegan, unheard
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.habits import RIGHT, Habits
from aip_hermes.embedded.agent.keeping import Keeper, ReplyNotStored
from aip_hermes.embedded.agent.loop import Agent, AgentAnswer
from aip_hermes.embedded.agent.models import ModelFailed
from aip_hermes.embedded.session_db import (
    ConversationMoved,
    ConversationTaken,
    TurnGround,
    Usage,
    repair_message_sequence,
)

__all__ = ["HistoryUnreadable", "Order", "TurnResult", "take"]

log = structlog.get_logger(__name__)


class HistoryUnreadable(Exception):
    """The stored history could not be read; no turn ran and nothing was written."""


Recall = Callable[[TurnGround | None, bool], Sequence[Mapping[str, Any]] | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a turn is to do.

    content: what the model reads. stored_text: what the user row holds; user_row: its other columns. system_message:
    for this turn. history: read by the model instead of the stored one. recall: chooses the history once it is known
    how the row stands and whether somebody else had it meanwhile; None: the stored one. create: make the row if there
    is none. listener: hears the turn. approver: decides about tools. habits: where it does as release 0.19.0.
    compression: what it begins with.
    """

    session_id: str
    content: str | list[dict[str, Any]]
    stored_text: str
    user_row: Mapping[str, Any] = field(default_factory=dict)
    system_message: str | None = None
    history: Sequence[Mapping[str, Any]] | None = None
    recall: Recall | None = None
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


async def take(agent: Agent, keeper: Keeper, order: Order) -> TurnResult:
    """Take one turn in the row of `keeper`, or in its compression tip.

    Raises LeaseTimeout, UnknownSession, HistoryUnreadable and StoreFailure (nothing was written), ModelFailed and
    ReplyNotStored (the user row was). Cancelled, it keeps its partial text.
    """
    # A turn that is given up here has at least said what it was asked, unless it waits for another's.
    while not await finished(_begin(keeper, order)):
        if keeper.lease is not None:
            await keeper.lease.wait()
    order.listener(TurnBegan(session_id=keeper.session_id))
    try:
        answer = await _answer(agent, keeper, order)
    except StoreFailure as exc:  # whichever write it was: the user row stands, so it is no longer nothing
        raise ReplyNotStored from exc
    return TurnResult(
        session_id=keeper.session_id,
        text=answer.text,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        rows=answer.rows,
        read=keeper.messages,
    )


async def _answer(agent: Agent, keeper: Keeper, order: Order) -> AgentAnswer:
    try:
        return await agent.answer(keeper, system=order.system_message, listener=order.listener, approver=order.approver)
    except ModelFailed as exc:
        if order.habits.admits_failure:
            raise
        return AgentAnswer(text=_told(exc), finish_reason="error", usage=Usage(), rows=[])


async def _begin(keeper: Keeper, order: Order) -> bool:
    """Read the history, then store the user row; nothing is stored where the history can't be read. False where another
    has the conversation.
    """
    while True:
        ground, messages = await _read(keeper, order)
        try:
            row_id = await _ask(keeper, order, ground)
        except ConversationTaken:
            return False
        except ConversationMoved:
            continue
        asked: dict[str, Any] = {"role": "user", "content": order.content}
        asked |= {} if row_id is None else {"_row_id": row_id}
        if isinstance(order.content, str) and order.user_row.get("api_content") is not None:
            asked |= {"content": order.stored_text, "api_content": order.content}
        keeper.asked = True
        messages.append(asked)
        repair_message_sequence(messages)
        keeper.messages = messages
        return True


async def _read(keeper: Keeper, order: Order) -> tuple[TurnGround | None, list[dict[str, Any]]]:
    """Return how the row stands, and the conversation so far; the row of the turn is its compression tip."""
    db, ground = keeper.db, None
    if db is not None:
        follows = order.habits.follows_compression
        ground = await db.get_turn_ground(keeper.session_id, follows_compression=follows)
        keeper.session_id = ground.session_id
    try:
        chosen = order.history
        if order.recall is not None:
            chosen = order.recall(ground, keeper.lease is not None and keeper.lease.waited)
        if chosen is not None:
            return ground, [dict(message) for message in chosen]
        if db is None:
            return ground, []
        return ground, await db.get_messages_as_conversation(keeper.session_id, include_row_ids=True)
    except Exception as exc:  # whatever the cause: a turn on an empty history would look like success
        log.error("turn.history_unreadable", cause=type(exc).__name__)
        if order.habits.admits_failure:
            raise HistoryUnreadable from exc
        return ground, []


async def _ask(keeper: Keeper, order: Order, ground: TurnGround | None) -> int | None:
    try:
        return await keeper.question({"content": order.stored_text, **order.user_row}, ground, create=order.create)
    except StoreFailure as exc:
        log.error("turn.question_not_stored", cause=type(exc).__name__)
        if order.habits.admits_failure:
            raise
        return None


def _told(failure: ModelFailed) -> str:
    """Return what release 0.19.0 answers in place of a reply."""
    if failure.status is not None and 400 <= failure.status < 500 and failure.status != 429:
        return f"HTTP {failure.status}: {failure}"
    return f"API call failed after 3 retries: {failure}"
