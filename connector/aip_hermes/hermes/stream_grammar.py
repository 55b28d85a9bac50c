"""What the events of Hermes' streams mean, one grammar for each kind of stream.

Names come from the `event:` line, else from the data. Source: connector contract §7.9, §8.3–8.5, §11, §12; design D17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from aip_hermes.contract.handler import ChunkKind
from aip_hermes.contract.operation import StreamRule

__all__ = ["DONE", "GRAMMARS", "REPEATING", "Ending", "Grammar", "ending_of", "kind_of"]

Ending = Literal["completed", "cancelled", "failed"]

DONE: Final = "[DONE]"
"""Data that ends a stream without a name."""

_ENDINGS: Final[Mapping[str, Ending]] = {
    "done": "completed",
    "run.completed": "completed",
    "response.completed": "completed",
    "run.cancelled": "cancelled",
    "run.failed": "failed",
    "response.failed": "failed",
    "response.incomplete": "failed",
    "error": "failed",
}

_KINDS: Final[Mapping[str, ChunkKind]] = {
    "tool.started": "tool",
    "tool.completed": "tool",
    "tool.failed": "tool",
    "tool.progress": "thought",  # 0.19.0 repeats the assistant's text in it
    "approval.request": "pending_approval",
}
_THOUGHTS: Final = ("reasoning.", "response.reasoning")

REPEATING: Final = frozenset(
    {
        "run.completed",
        "assistant.completed",
        "response.completed",
        "response.output_text.done",
        "response.output_item.done",
    }
)
"""Events that repeat what came before them. Of one over the frame limit its name is enough; no turn is lost for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """One kind of stream.

    names: members of the data in which an event without `event:` line has its name. text: the assistant's text that an
    event adds, or None. failed, thought: whether an event without a telling name says that the work failed, or is
    nothing but reasoning. effective: events whose `session_id` is the session that the turn ended in. transcript: event
    and member that repeat a transcript. left: what closing our connection does to the work.
    """

    names: tuple[str, ...]
    text: Callable[[str | None, Mapping[str, Any]], str | None]
    failed: Callable[[Mapping[str, Any]], bool] | None = None
    thought: Callable[[Mapping[str, Any]], bool] | None = None
    effective: frozenset[str] = frozenset()
    transcript: tuple[str, str] | None = None
    left: str


def ending_of(name: str | None, data: object) -> Ending | None:
    """Return what an event ends the stream as; None where it goes on."""
    if isinstance(data, str) and data.strip() == DONE:
        return "completed"
    return None if name is None else _ENDINGS.get(name)


def kind_of(grammar: Grammar, name: str | None, data: object) -> ChunkKind:
    """Return the chunk kind of an event that does not end the stream."""
    if name is not None:
        return "thought" if name.startswith(_THOUGHTS) else _KINDS.get(name, "data")
    thought = grammar.thought is not None and isinstance(data, Mapping) and grammar.thought(data)
    return "thought" if thought else "data"


def _delta_of(*names: str) -> Callable[[str | None, Mapping[str, Any]], str | None]:
    def text(name: str | None, data: Mapping[str, Any]) -> str | None:
        return _text(data.get("delta")) if name in names else None

    return text


def _choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _choice_delta(data: Mapping[str, Any]) -> Mapping[str, Any]:
    delta = _choice(data).get("delta")
    return delta if isinstance(delta, Mapping) else {}


def _choice_text(name: str | None, data: Mapping[str, Any]) -> str | None:
    return _text(_choice_delta(data).get("content")) if name is None else None


def _choice_failed(data: Mapping[str, Any]) -> bool:
    return _choice(data).get("finish_reason") == "error" or isinstance(data.get("error"), Mapping)


def _choice_thought(data: Mapping[str, Any]) -> bool:
    delta = _choice_delta(data)
    return not delta.get("content") and bool(delta.get("reasoning_content") or delta.get("reasoning"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


GRAMMARS: Final[Mapping[StreamRule, Grammar]] = {
    "session": Grammar(
        names=("event",),
        text=_delta_of("assistant.delta"),
        effective=frozenset({"assistant.completed", "run.completed"}),
        transcript=("run.completed", "messages"),
        left="closing our connection does not stop the turn: it runs on at Hermes, tools included, and is stored",
    ),
    "completions": Grammar(
        names=("event",),
        text=_choice_text,
        failed=_choice_failed,
        thought=_choice_thought,
        left="closing our connection makes Hermes interrupt the turn; what it had said so far is stored",
    ),
    "responses": Grammar(
        names=("event", "type"),
        text=_delta_of("response.output_text.delta"),
        left="closing our connection may interrupt the turn or let it run on; read the response before sending again",
    ),
    "run": Grammar(
        names=("event",),
        text=_delta_of("message.delta"),
        left="closing our connection does not stop the run; its further events are lost, its status can be read",
    ),
}
