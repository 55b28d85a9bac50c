"""What an OpenAI-compatible endpoint answers: whole completions, and completions in chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aip_hermes.embedded.agent.models import ModelFailed, ModelReply, ToolCall
from aip_hermes.embedded.session_db import Usage

__all__ = ["ChunkReader", "refusal_text", "whole_completion"]

_END = "[DONE]"
_NO_COMPLETION = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class ChunkReader:
    """Puts a reply together from the data of its events."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[dict[str, str]] = []
        self._call_at: dict[int, dict[str, str]] = {}
        self._reason: str | None = None
        self._usage = Usage()
        self.ended = False

    def take(self, data: str) -> str:
        """Return the text that one event adds, perhaps none. Raises ModelFailed for an error or no chunk."""
        if data.strip() == _END:
            self.ended = True
            return ""
        try:
            chunk = json.loads(data)
            if chunk.get("error"):
                raise ModelFailed("the model reported an error while it answered", reason=refusal_text(data.encode()))
            if chunk.get("usage"):
                self._usage = _usage(chunk["usage"])
            return self._choice(chunk["choices"][0]) if chunk.get("choices") else ""
        except _NO_COMPLETION as exc:
            raise ModelFailed("the model's answer is no chat completion") from exc

    def reply(self) -> ModelReply:
        """Return the whole reply. Raises ModelFailed where it was cut off or says nothing."""
        if self._reason is None and not self.ended:
            raise ModelFailed("the model's answer was cut off")
        calls = tuple(_call(call, index) for index, call in enumerate(self._calls))
        return _checked("".join(self._text), calls, self._reason, self._usage)

    def _choice(self, choice: Mapping[str, Any]) -> str:
        if choice.get("finish_reason"):
            self._reason = str(choice["finish_reason"])
        delta = choice.get("delta") or {}
        for part in delta.get("tool_calls") or []:
            function = part.get("function") or {}
            call = self._call_of(part)
            call["name"] += function.get("name") or ""
            call["arguments"] += _arguments(function.get("arguments"))
        text = delta.get("content")
        if not isinstance(text, str):
            return ""
        self._text.append(text)
        return text

    def _call_of(self, part: Mapping[str, Any]) -> dict[str, str]:
        """Return the call that a part belongs to. Some endpoints number none of several calls, or all of them alike:
        there, another id is another call.
        """
        index, call_id = int(part.get("index") or 0), part.get("id")
        call = self._call_at.get(index)
        if call is None or (call_id and call["id"] and call_id != call["id"]):
            call = self._call_at[index] = {"id": "", "name": "", "arguments": ""}
            self._calls.append(call)
        call["id"] = call["id"] or str(call_id or "")
        return call


def refusal_text(content: bytes) -> str:
    """Return the sentence of an error body on one line; empty where it has none: a page, another form, no JSON."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        if isinstance(said, list) and said:
            said = said[0]
        if isinstance(said, dict):
            said = said.get(name, said)
    return " ".join(said.split()) if isinstance(said, str) else ""


def whole_completion(content: bytes) -> ModelReply:
    """Return the reply of an endpoint that does not stream. Raises ModelFailed."""
    try:
        answer = json.loads(content)
        choice = answer["choices"][0]
        message = choice["message"]
        calls = tuple(
            _call({"id": call.get("id") or "", **call["function"]}, index)
            for index, call in enumerate(message.get("tool_calls") or [])
        )
        text = message.get("content")
        reason, usage = choice.get("finish_reason"), answer.get("usage")
    except _NO_COMPLETION as exc:
        raise ModelFailed("the model's answer is no chat completion") from exc
    return _checked(text if isinstance(text, str) else "", calls, reason, _usage(usage))


def _checked(text: str, calls: tuple[ToolCall, ...], reason: object, usage: Usage) -> ModelReply:
    if not calls and not text.strip():
        raise ModelFailed("the model's answer has no text")
    finish = "tool_calls" if calls else "length" if reason == "length" else "stop"
    return ModelReply(text=text, tool_calls=calls, finish_reason=finish, usage=usage)


def _call(call: Mapping[str, Any], index: int) -> ToolCall:
    return ToolCall(
        id=str(call["id"] or f"call_{index + 1}"),
        name=str(call["name"]),
        arguments=_arguments(call.get("arguments")) or "{}",
    )


def _arguments(told: object) -> str:
    """Return arguments as JSON text; some endpoints give the object itself."""
    return told if isinstance(told, str) else "" if told is None else json.dumps(told)


def _usage(usage: object) -> Usage:
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return Usage(
        input_tokens=_number(usage.get("prompt_tokens")),
        output_tokens=_number(usage.get("completion_tokens")),
        cache_read_tokens=_number(prompt.get("cached_tokens")) if isinstance(prompt, Mapping) else 0,
        reasoning_tokens=_number(completion.get("reasoning_tokens")) if isinstance(completion, Mapping) else 0,
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
