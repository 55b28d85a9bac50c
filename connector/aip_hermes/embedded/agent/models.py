"""The door between the agent and whatever answers for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from aip_hermes.embedded.session_db import Usage

__all__ = ["Model", "ModelFailed", "ModelReply", "ModelRequest", "Pieces", "ToolCall", "whole_reply"]


class ModelFailed(Exception):
    """The model gave no usable reply. The text is for a person and free of credentials, addresses and transcript text.

    status: the HTTP status where one was received. transient: the same question may be answered in a moment; never true
    once a piece was given. too_long: the model reads less than it was sent. reason: what the endpoint itself said,
    free of credentials; it may quote what it was sent, and is told to nobody but who asked.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        transient: bool = False,
        too_long: bool = False,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient
        self.too_long = too_long
        self.reason = reason


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """One request: a system text, then the transcript that ends with the new user message or with tool results.

    messages: `{role, content}`, what tool calls and results need besides; content is text, or a list of OpenAI content
    parts in the last user message. tools: OpenAI function tools that the reply may call.
    """

    messages: Sequence[Mapping[str, Any]]
    system: str | None = None
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One call that a model asks for. arguments: JSON text as the model wrote it, perhaps broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReply:
    """A whole reply: text, tool calls or both. finish_reason: `stop`, `tool_calls`, or `length` where it was cut."""

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    tool_calls: tuple[ToolCall, ...] = ()


Pieces = AsyncGenerator[str | ModelReply, None]
"""Pieces of text as they come, then the whole reply, whose text they add up to."""


class Model(Protocol):
    """What answers. May be asked for several sessions at once."""

    @property
    def name(self) -> str:
        """The label of rows that have none."""

    def stream(self, request: ModelRequest) -> Pieces:
        """Answer piece by piece; repeats nothing once a piece was given. Raises ModelFailed."""

    async def aclose(self) -> None:
        """Give back connections. Idempotent."""


async def whole_reply(model: Model, request: ModelRequest) -> ModelReply:
    """Return the reply once it is complete. Raises ModelFailed."""
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ModelReply):
                return piece
    raise ModelFailed("the model ended without a reply")
