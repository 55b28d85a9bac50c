"""The model, its tools, the model again: until a reply asks for nothing more. Each step is stored as it ends.

A turn that is cancelled keeps what it had: the partial text as an assistant row with finish reason `interrupted`, and a
result for the tool call that it stood in. A write that has begun is finished first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Final

import structlog

from aip_hermes.embedded.agent.events import Approver, Listener, StepText, TextDelta, ToolCompleted, ToolStarted
from aip_hermes.embedded.agent.finishing import finished
from aip_hermes.embedded.agent.habits import RIGHT, Habits
from aip_hermes.embedded.agent.keeping import Keeper, ReplyNotStored
from aip_hermes.embedded.agent.models import Model, ModelFailed, ModelReply, ModelRequest, ToolCall
from aip_hermes.embedded.agent.tools import TOOLS, CommandTool, ToolOutcome, arguments_of, preview_of
from aip_hermes.embedded.session_db import SessionDB, Usage
from aip_hermes.ports import Clock

__all__ = ["Agent", "AgentAnswer"]

log = structlog.get_logger(__name__)

MAX_STEPS: Final = 30
_INTERRUPTED: Final = ToolOutcome(output=json.dumps({"status": "interrupted"}), failed=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentAnswer:
    """text: of the last step. usage: of all steps. rows: the assistant and tool messages of this turn."""

    text: str
    finish_reason: str
    usage: Usage
    rows: list[dict[str, Any]]


class Agent:
    """Answers one turn at a time; may run many."""

    def __init__(self, *, db: SessionDB, model: Model, tool: CommandTool, clock: Clock) -> None:
        self._db = db
        self._model = model
        self._tool = tool
        self._clock = clock

    async def answer(
        self,
        session_id: str,
        messages: list[dict[str, Any]],
        *,
        system: str | None,
        listener: Listener,
        approver: Approver,
        habits: Habits = RIGHT,
    ) -> AgentAnswer:
        """Run steps until one calls no tool. messages: ends with the user message; grows here.

        Raises ModelFailed, also for a model that never stops calling; ReplyNotStored.
        """
        usage, rows = Usage(), list[dict[str, Any]]()
        keeper = Keeper(self._db, session_id, model_name=self._model.name, habits=habits)
        for step in range(MAX_STEPS):
            request = ModelRequest(messages=_with_results(messages), system=system, tools=TOOLS)
            reply = await self._reply(keeper, request, listener, lead="\n\n" if step else "")
            usage = _sum(usage, reply.usage)
            row = _assistant_row(reply)
            await finished(keeper.reply(reply, row.get("tool_calls")))
            rows.append(row)
            messages.append(row)
            if reply.text:
                listener(StepText(text=reply.text))
            if not reply.tool_calls:
                return AgentAnswer(text=reply.text, finish_reason=reply.finish_reason, usage=usage, rows=rows)
            for call in reply.tool_calls:
                result = await self._call(keeper, call, listener, approver)
                rows.append(result)
                messages.append(result)
        raise ModelFailed(f"the model called tools {MAX_STEPS} times and came to no end")

    async def _reply(self, keeper: Keeper, request: ModelRequest, listener: Listener, *, lead: str) -> ModelReply:
        said: list[str] = []
        try:
            async with aclosing(self._model.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelReply):
                        return piece
                    if piece:
                        listener(TextDelta(text=piece if said else lead + piece))
                        said.append(piece)
        except asyncio.CancelledError:
            await self._keep_partial(keeper, "".join(said))
            raise
        raise ModelFailed("the model ended without a reply")

    async def _keep_partial(self, keeper: Keeper, text: str) -> None:
        if not text:
            return
        partial = ModelReply(text=text, finish_reason="interrupted")
        try:
            await keeper.reply(partial, None)
        except ReplyNotStored:
            log.warning("turn.partial_text_not_stored")

    async def _call(self, keeper: Keeper, call: ToolCall, listener: Listener, approver: Approver) -> dict[str, Any]:
        listener(ToolStarted(call=call, preview=preview_of(call), arguments=arguments_of(call)))
        begun = self._clock.monotonic()
        stopped: asyncio.CancelledError | None = None
        try:
            outcome = await self._tool.run(call, session_id=keeper.session_id, approver=approver)
        except asyncio.CancelledError as cancelled:
            outcome, stopped = _INTERRUPTED, cancelled
        row = {"role": "tool", "content": outcome.output, "tool_call_id": call.id, "tool_name": call.name}
        await finished(keeper.result(row))
        seconds = round(self._clock.monotonic() - begun, 3)
        listener(ToolCompleted(call=call, output=outcome.output, failed=outcome.failed, seconds=seconds))
        if stopped is not None:
            raise stopped
        return row


def _assistant_row(reply: ModelReply) -> dict[str, Any]:
    row: dict[str, Any] = {"role": "assistant", "content": reply.text, "finish_reason": reply.finish_reason}
    if reply.tool_calls:
        row["tool_calls"] = [
            {
                "id": call.id,
                "call_id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ]
    return row


def _with_results(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with a made-up result for each call that has none, as a crash leaves it. No model takes one
    without the other; the rows stay as they are.
    """
    complete: list[dict[str, Any]] = []
    waiting: list[str] = []

    def make_up() -> None:
        complete.extend(
            {"role": "tool", "content": "The result is not available.", "tool_call_id": call_id} for call_id in waiting
        )
        waiting.clear()

    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
        else:
            make_up()
            waiting += [str(call["id"]) for call in message.get("tool_calls") or []]
        complete.append(message)
    make_up()
    return complete


def _sum(one: Usage, other: Usage) -> Usage:
    mine, its = asdict(one), asdict(other)
    return Usage(**{name: mine[name] + its[name] for name in mine})
