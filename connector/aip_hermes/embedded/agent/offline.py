"""The built-in model that needs no key and no network: deterministic, and it shows what it was given.

Its answer says which user turn of the transcript this is and restates the last message, so a person who reads a demo
sees that the stored history reached the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.embedded.agent.models import ModelReply, ModelRequest
from aip_hermes.embedded.session_db import Usage

__all__ = ["OfflineModel"]

_QUOTED_CHARS = 200
_CHARS_PER_TOKEN = 4


class OfflineModel:
    """Answers from the transcript alone. Tokens are counted as a quarter of the characters, rounded up."""

    @property
    def name(self) -> str:
        return "offline"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer; never fails."""
        said = [_readable(message.get("content")) for message in request.messages if message.get("role") == "user"]
        sentences = [f"Turn {len(said)} of this session."]
        if request.system:
            sentences.append(f"Instruction for this turn: {_quoted(request.system)}.")
        if said:
            sentences.append(f"You said: {_quoted(said[-1])}.")
        if len(said) > 1:
            sentences.append(f"The session began with: {_quoted(said[0])}.")
        text = " ".join(sentences)
        return ModelReply(text=text, usage=Usage(input_tokens=_tokens(request), output_tokens=_count(text)))

    async def aclose(self) -> None:
        """Nothing is held."""


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= _QUOTED_CHARS else line[:_QUOTED_CHARS] + '…'}”"


def _readable(content: object) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else []
    return " ".join(str(p["text"]) if isinstance(p, Mapping) and "text" in p else "[image]" for p in parts)


def _tokens(request: ModelRequest) -> int:
    return _count(request.system or "") + sum(_count(_readable(m.get("content"))) for m in request.messages)


def _count(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)
