"""One turn on a row that is held for it: history, user row, the agent's steps.

The user row is durable before the model is asked, each step before the next, the last assistant row before the turn is
answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from aip_hermes.embedded.session_db import TurnGround, Usage, repair_message_sequence

__all__ = ["HistoryUnreadable", "Order", "TurnResult", "take"]

log = structlog.get_logger(__name__)


class HistoryUnreadable(Exception):
    """The stored history could not be read; no turn ran and nothing was written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a turn is to do.

    content: what the model reads. stored_text: what the user row holds; user_row: its other columns. system_message:
    for this turn. history: read by the model instead of the stored one. create: make the row if there is none.
    listener: hears the turn. approver: decides about tools. habits: where it does as release 0.19.0. compression: what
    it begins with.
    """

    session_id: str
    content: str | list[dict[str, Any]]
    stored_text: str
    user_row: Mapping[str, Any] = field(default_factory=dict)
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


async def take(agent: Agent, keeper: Keeper, order: Order, ground: TurnGround | None) -> TurnResult:
    """Take one turn in the row of `keeper`, which `ground` describes; None: there is no store.

    Raises UnknownSession, HistoryUnreadable, StoreFailure and SessionTurnLeaseLostError (nothing was written),
    ModelFailed and ReplyNotStored (the user row was). Cancelled, it keeps its partial text.
    """
    # A turn that is given up here has at least said what it was asked.
    await finished(_begin(keeper, order, ground))
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


async def _begin(keeper: Keeper, order: Order, ground: TurnGround | None) -> None:
    """Read the history, then store the user row; nothing is stored where the history can't be read."""
    try:
        if ground is not None:
            await _open_row(keeper, order, ground)
        if order.history is not None:
            messages = [dict(message) for message in order.history]
        elif keeper.db is None:
            messages = []
        else:
            messages = await keeper.db.get_messages_as_conversation(keeper.session_id, include_row_ids=True)
    except Exception as exc:  # whatever the cause: a turn on an empty history would look like success
        log.error("turn.history_unreadable", cause=type(exc).__name__)
        if order.habits.admits_failure:
            raise HistoryUnreadable from exc
        messages = []
    row_id = await _ask(keeper, order)
    asked: dict[str, Any] = {"role": "user", "content": order.content}
    asked |= {} if row_id is None else {"_row_id": row_id}
    if isinstance(order.content, str) and order.user_row.get("api_content") is not None:
        asked |= {"content": order.stored_text, "api_content": order.content}
    keeper.asked = True
    messages.append(asked)
    repair_message_sequence(messages)
    keeper.messages = messages


async def _open_row(keeper: Keeper, order: Order, ground: TurnGround) -> None:
    """Make the row where there is none; open it again where its last agent closed it, or a compression without a child
    would leave the conversation nowhere to go on.
    """
    if order.create and not ground.exists:
        await keeper.make_row()
    if keeper.db is not None and order.habits.follows_compression and ground.end_reason in _REOPENED:
        await keeper.db.reopen_session(keeper.session_id)


_REOPENED = frozenset({"agent_close", "compression"})


async def _ask(keeper: Keeper, order: Order) -> int | None:
    try:
        return await keeper.question({"content": order.stored_text, **order.user_row})
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
