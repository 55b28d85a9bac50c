"""The door between the agent and whatever answers for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aip_hermes.embedded.session_db import Usage

__all__ = ["Model", "ModelFailed", "ModelReply", "ModelRequest"]


class ModelFailed(Exception):
    """The model gave no usable reply. The text is for a person and free of credentials, addresses and transcript text.

    status: the HTTP status where one was received.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """One request: a system text, then the transcript that ends with the new user message.

    messages: `{role, content}`; content is text, or a list of OpenAI content parts in the last message.
    """

    messages: Sequence[Mapping[str, Any]]
    system: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReply:
    """The text of a reply, never empty. finish_reason: `stop`, or `length` where it was cut."""

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    """What answers. May be asked for several sessions at once."""

    @property
    def name(self) -> str:
        """The label of rows that have none."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer once, without repeating anything. Raises ModelFailed."""

    async def aclose(self) -> None:
        """Give back connections. Idempotent."""
