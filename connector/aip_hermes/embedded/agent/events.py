"""What a turn tells while it runs, and who may be asked on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from aip_hermes.embedded.agent.models import ToolCall

__all__ = [
    "CHOICES",
    "AgentEvent",
    "Approver",
    "Choice",
    "Listener",
    "Nobody",
    "Question",
    "StepText",
    "TextDelta",
    "ToolCompleted",
    "ToolStarted",
    "TurnBegan",
    "unheard",
]

Choice = Literal["once", "session", "always", "deny"]
CHOICES: tuple[Choice, ...] = ("once", "session", "always", "deny")


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnBegan:
    """The user row is stored, the model is asked next. session_id: the row that holds the turn."""

    session_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TextDelta:
    """A piece of text; the first one of a step after a tool begins with two newlines."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepText:
    """The text of one assistant message, complete."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStarted:
    """preview: what a person would look at. arguments: None where they are no JSON object."""

    call: ToolCall
    preview: str | None
    arguments: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCompleted:
    """output: the result row. failed: denied, broken or unknown. seconds: how long it took, questions included."""

    call: ToolCall
    output: str
    failed: bool
    seconds: float


AgentEvent = TurnBegan | TextDelta | StepText | ToolStarted | ToolCompleted

Listener = Callable[[AgentEvent], None]
"""Hears a turn; must return at once and raise nothing."""


def unheard(_event: AgentEvent) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """May this command be noted? pattern: the kind that a lasting answer covers."""

    command: str
    pattern: str
    description: str


class Approver(Protocol):
    """Who decides about a tool."""

    async def ask(self, question: Question) -> Choice | None:
        """Return the choice; deny also when nobody chose in time; None when there is nobody to ask."""


class Nobody:
    """Chat and completions have no route for a decision."""

    async def ask(self, question: Question) -> Choice | None:
        return None
