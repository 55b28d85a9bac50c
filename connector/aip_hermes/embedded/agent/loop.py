"""The model, its tools, the model again: until a reply asks for nothing more. Each step is stored as it ends.

A turn that is cancelled keeps what it had: the partial text as an assistant row with finish reason `interrupted`, and a
result for the tool call that it stood in. Wherever it stops behind a tool result, a row of that kind follows. A write
that has begun is finished first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from aip_hermes.embedded.agent.events import Approver, Listener, StepText, TextDelta, ToolCompleted, ToolStarted
from aip_hermes.embedded.agent.finishing import being_cancelled, finished
from aip_hermes.embedded.agent.keeping import Keeper, ReplyNotStored
from aip_hermes.embedded.agent.models import Model, ModelFailed, ModelReply, ModelRequest, ToolCall
from aip_hermes.embedded.agent.reading import as_read
from aip_hermes.embedded.agent.toolbox import Toolbox, ToolContext, ToolOutcome, arguments_of, no_store
from aip_hermes.embedded.agent.tools import preview_of
from aip_hermes.embedded.session_db import SessionDB, Usage
from aip_hermes.ports import Clock

__all__ = ["MAX_STEPS", "Agent", "AgentAnswer", "Fitting", "StoreOpener", "TooManySteps"]

log = structlog.get_logger(__name__)

MAX_STEPS: Final = 30
_STOPPED: Final = "Operation interrupted."
_INTERRUPTED: Final = ToolOutcome(output=json.dumps({"status": "interrupted"}), failed=True)


class TooManySteps(ModelFailed):
    """The model called tools as often as it may, and came to no end."""


class Fitting(Protocol):
    """Makes a conversation fit into what its model reads."""

    async def fit(self, keeper: Keeper, *, system: str | None, tools: Sequence[Any]) -> None:
        """Change `keeper.messages` where they are too long; whatever goes wrong leaves them as they are."""

    async def compress(self, keeper: Keeper) -> bool:
        """Change them however long they are; False where that could not be done."""


class StoreOpener(Protocol):
    """Opens a store for a conversation that has none, and lets its keeper store there."""

    async def __call__(self, keeper: Keeper) -> SessionDB: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentAnswer:
    """text: of the last step. usage: of all steps. rows: the assistant and tool messages of this turn."""

    text: str
    finish_reason: str
    usage: Usage
    rows: list[dict[str, Any]]


class Agent:
    """Answers one turn at a time; may run many. max_steps: requests per turn. fitting: asked before each request."""

    def __init__(
        self,
        *,
        model: Model,
        toolbox: Toolbox,
        clock: Clock,
        max_steps: int = MAX_STEPS,
        fitting: Fitting | None = None,
        opener: StoreOpener | None = None,
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self._clock = clock
        self._max_steps = max_steps
        self._fitting = fitting
        self._opener = opener

    async def answer(
        self, keeper: Keeper, *, system: str | None, listener: Listener, approver: Approver
    ) -> AgentAnswer:
        """Run steps until one calls no tool. keeper.messages: ends with the user message; grows here.

        Raises ModelFailed, TooManySteps for a model that never stops calling, ReplyNotStored.
        """
        try:
            return await self._answer(keeper, system=system, listener=listener, approver=approver)
        except asyncio.CancelledError:
            # A few words stand for what did not come: a conversation does not end with a tool result.
            if keeper.messages[-1]["role"] == "tool":
                await finished(self._keep_partial(keeper, _STOPPED))
            raise

    async def _answer(
        self, keeper: Keeper, *, system: str | None, listener: Listener, approver: Approver
    ) -> AgentAnswer:
        rows = list[dict[str, Any]]()
        for step in range(self._max_steps):
            if self._fitting is not None:
                await self._fitting.fit(keeper, system=system, tools=self._toolbox.definitions)
            reply = await self._fitting_reply(keeper, system, listener, lead="\n\n" if step else "")
            keeper.count(reply.usage)
            row = _assistant_row(reply)
            await finished(self._keep_reply(keeper, reply, row, rows))
            if reply.text:
                listener(StepText(text=reply.text))
            if not reply.tool_calls:
                return AgentAnswer(text=reply.text, finish_reason=reply.finish_reason, usage=keeper.usage, rows=rows)
            for call in reply.tool_calls:
                rows.append(await self._call(keeper, call, listener, approver))
        raise TooManySteps(f"the model called tools {self._max_steps} times and came to no end")

    async def _fitting_reply(self, keeper: Keeper, system: str | None, listener: Listener, *, lead: str) -> ModelReply:
        """Ask; where the model says that it reads less than that, compress and ask once more."""
        try:
            return await self._reply(keeper, self._request(keeper, system), listener, lead=lead)
        except ModelFailed as failed:
            if not failed.too_long or self._fitting is None or not await self._fitting.compress(keeper):
                raise
        return await self._reply(keeper, self._request(keeper, system), listener, lead=lead)

    def _request(self, keeper: Keeper, system: str | None) -> ModelRequest:
        return ModelRequest(messages=as_read(keeper.messages), system=system, tools=self._toolbox.definitions)

    async def _reply(self, keeper: Keeper, request: ModelRequest, listener: Listener, *, lead: str) -> ModelReply:
        said: list[str] = []
        keeper.calls += 1
        try:
            async with aclosing(self._model.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelReply):
                        return piece
                    if piece:
                        listener(TextDelta(text=piece if said else lead + piece))
                        said.append(piece)
        except asyncio.CancelledError as exc:
            if not being_cancelled():
                raise ModelFailed("the model broke its own answer off") from exc
            if said:
                await finished(self._keep_partial(keeper, "".join(said)))
            raise
        raise ModelFailed("the model ended without a reply")

    async def _keep_partial(self, keeper: Keeper, text: str) -> None:
        partial = ModelReply(text=text, finish_reason="interrupted")
        try:
            await self._keep_reply(keeper, partial, _assistant_row(partial), [])
        except ReplyNotStored:
            log.warning("turn.partial_text_not_stored")

    async def _keep_reply(
        self, keeper: Keeper, reply: ModelReply, row: dict[str, Any], rows: list[dict[str, Any]]
    ) -> None:
        row_id = await keeper.reply(reply, row.get("tool_calls"))
        rows.append(row)
        keeper.messages.append(_with_id(row, row_id))

    async def _call(self, keeper: Keeper, call: ToolCall, listener: Listener, approver: Approver) -> dict[str, Any]:
        listener(ToolStarted(call=call, preview=preview_of(call), arguments=arguments_of(call)))
        begun = self._clock.monotonic()
        stopped: asyncio.CancelledError | None = None
        try:
            outcome = await self._toolbox.run(call, self._context(keeper, approver))
        except asyncio.CancelledError as cancelled:
            outcome, stopped = _INTERRUPTED, cancelled
        row = {"role": "tool", "content": outcome.output, "tool_call_id": call.id, "tool_name": call.name}
        await finished(self._keep_result(keeper, row))
        seconds = round(self._clock.monotonic() - begun, 3)
        listener(ToolCompleted(call=call, output=outcome.output, failed=outcome.failed, seconds=seconds))
        if stopped is not None:
            raise stopped
        return row

    async def _keep_result(self, keeper: Keeper, row: dict[str, Any]) -> None:
        keeper.messages.append(_with_id(row, await keeper.result(row)))

    def _context(self, keeper: Keeper, approver: Approver) -> ToolContext:
        async def store() -> SessionDB:
            if keeper.db is not None:
                return keeper.db
            return await (no_store() if self._opener is None else self._opener(keeper))

        return ToolContext(session_id=keeper.session_id, session_db=keeper.db, approver=approver, store=store)


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


def _with_id(row: dict[str, Any], row_id: int | None) -> dict[str, Any]:
    return row if row_id is None else {**row, "_row_id": row_id}
