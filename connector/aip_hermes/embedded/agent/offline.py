"""The built-in model that needs no key and no network: deterministic, and it shows what it was given.

Its answer says which user turn of the transcript this is and restates the last message, so a person who reads a demo
sees that the stored history reached the model. A line `call: <tool> <json>` in the last paragraph of the newest user
message makes it call that tool first; several are called one after the other. Where that message is a JSON object, its
texts are read in that way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aip_hermes.embedded.agent.models import ModelReply, ModelRequest, Pieces, ToolCall
from aip_hermes.embedded.session_db import Usage

__all__ = ["OfflineModel"]

_QUOTED_CHARS = 200
_CHARS_PER_TOKEN = 4
_DIRECTIVE = re.compile(r"^call:[ \t]*(?P<name>\S+)[ \t]*(?P<arguments>.*)$", re.MULTILINE)
_WORD = re.compile(r"\s*\S+\s*?|\s+")


class OfflineModel:
    """Answers from the transcript alone, word by word. A token is a quarter of the characters, rounded up."""

    @property
    def name(self) -> str:
        return "offline"

    async def stream(self, request: ModelRequest) -> Pieces:
        """Answer; never fails."""
        call = _next_call(request)
        text = "" if call else _answer(request)
        for word in _WORD.findall(text):
            yield word
        said = text if call is None else call.name + call.arguments
        yield ModelReply(
            text=text,
            finish_reason="tool_calls" if call else "stop",
            usage=Usage(input_tokens=_tokens(request), output_tokens=_count(said)),
            tool_calls=(call,) if call else (),
        )

    async def aclose(self) -> None:
        """Nothing is held."""


def _answer(request: ModelRequest) -> str:
    said = [_readable(message.get("content")) for message in request.messages if message.get("role") == "user"]
    sentences = [f"Turn {len(said)} of this session."]
    if request.system:
        sentences.append(f"Instruction for this turn: {_quoted(request.system)}.")
    if said:
        sentences.append(f"You said: {_quoted(said[-1])}.")
    if len(said) > 1:
        sentences.append(f"The session began with: {_quoted(said[0])}.")
    if results := _results(request.messages):
        sentences.append(f"The tool answered: {_quoted(_readable(results[-1].get('content')))}.")
    return " ".join(sentences)


def _next_call(request: ModelRequest) -> ToolCall | None:
    """Return the first directed call that has no result yet."""
    said = [message for message in request.messages if message.get("role") == "user"]
    if not said or not request.tools:
        return None
    directives = _DIRECTIVE.findall(_directing(_readable(said[-1].get("content"))))
    done = len(_results(request.messages))
    if done >= len(directives):
        return None
    name, arguments = directives[done]
    return ToolCall(id=f"call_{len(said)}_{done + 1}", name=name, arguments=arguments.strip() or "{}")


def _directing(text: str) -> str:
    """Return what of a message may direct: its last paragraph, or that of each text of a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, dict) else [text]
    return "\n".join(each.rsplit("\n\n", 1)[-1] for each in texts)


def _results(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the tool results after the newest user message."""
    results: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") == "user":
            break
        if message.get("role") == "tool":
            results.insert(0, message)
    return results


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
