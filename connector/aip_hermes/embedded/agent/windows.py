"""How much a model reads, how much a conversation is, and which part of it a summary may replace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.embedded.session_db.columns import text_of

__all__ = ["CHARS_PER_TOKEN", "Window", "estimated_tokens", "split"]

CHARS_PER_TOKEN: Final = 4
_TOKENS_PER_MESSAGE: Final = 4
_LARGE: Final = 512_000
_HEAD_SHARE: Final = 0.5
_TAIL_SHARE: Final = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """tokens: what the model reads at most. share: of it, from where on a conversation is compressed; None: half of a
    window of at least 512,000 tokens, three quarters of a smaller one. first, last: messages that stay as they are.
    """

    tokens: int = 128_000
    share: float | None = None
    first: int = 3
    last: int = 20

    def __post_init__(self) -> None:
        if self.tokens < 1 or (self.share is not None and not 0 < self.share <= 1):
            raise ValueError("a context window has at least one token, and the share to compress at is in (0, 1]")

    @property
    def trigger(self) -> int:
        """Tokens from which on a request is too long."""
        share = self.share if self.share is not None else 0.5 if self.tokens >= _LARGE else 0.75
        return int(self.tokens * share)


def estimated_tokens(
    messages: Sequence[Mapping[str, Any]], *, system: str | None = None, tools: Sequence[Any] = ()
) -> int:
    """Return a quarter of the characters, and a few per message."""
    chars = len(system or "") + (len(json.dumps(list(tools))) if tools else 0)
    return chars // CHARS_PER_TOKEN + sum(_tokens(message) for message in messages)


def split(
    messages: Sequence[dict[str, Any]], window: Window
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (head, middle, tail); the middle is what a summary replaces, none where that would not shorten anything.

    The head holds as many of the first messages as fit into half of what is too long: a long first one is summed up
    like any other, or it would make the conversation too long again with each turn. The tail holds the newest message
    at least, and as many as fit into a fifth. No call is parted from its results.
    """
    budget, head = int(window.trigger * _HEAD_SHARE), 0
    while head < min(window.first, len(messages)) and (budget := budget - _tokens(messages[head])) >= 0:
        head += 1
    budget, tail = int(window.trigger * _TAIL_SHARE), len(messages)
    while tail > head and len(messages) - tail < window.last:
        budget -= _tokens(messages[tail - 1])
        if budget < 0 and tail < len(messages):
            break
        tail -= 1
    while head and messages[head - 1].get("tool_calls"):
        head -= 1
    if head and messages[head - 1]["role"] == "tool" and head < len(messages) and messages[head]["role"] == "tool":
        head = _before_call(messages, head)
    if tail < len(messages) and messages[tail]["role"] == "tool":
        tail = _before_call(messages, tail)
    middle = list(messages[head:tail])
    if len(middle) < 2:
        return list(messages), [], []
    return list(messages[:head]), middle, list(messages[tail:])


def _before_call(messages: Sequence[Mapping[str, Any]], at: int) -> int:
    """Return the place of the message whose calls the results at `at` belong to."""
    while at > 0 and messages[at]["role"] == "tool":
        at -= 1
    return at


def _tokens(message: Mapping[str, Any]) -> int:
    chars = len(text_of(message.get("api_content") or message.get("content")))
    if calls := message.get("tool_calls"):
        chars += len(json.dumps(calls))
    return chars // CHARS_PER_TOKEN + _TOKENS_PER_MESSAGE
