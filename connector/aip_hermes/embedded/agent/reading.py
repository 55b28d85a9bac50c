"""The conversation as a model reads it, whatever its rows hold: they may come from anywhere and stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_read", "readable_calls"]


def as_read(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages, each as it was sent before: calls that name their tool, and a made-up result for each call
    that has none, as a crash leaves it. No model takes one without the other.
    """
    complete: list[dict[str, Any]] = []
    waiting: list[str] = []

    def make_up() -> None:
        complete.extend(
            {"role": "tool", "content": "The result is not available.", "tool_call_id": call_id} for call_id in waiting
        )
        waiting.clear()

    for message in messages:
        read = dict(message)
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                continue
            waiting.remove(message["tool_call_id"])
        else:
            make_up()
            calls = readable_calls(read.pop("tool_calls", None))
            waiting += [call["id"] for call in calls]
            read |= {"tool_calls": calls} if calls else {}
        if (sent := read.get("api_content")) is not None:
            read["content"] = sent
        complete.append(read)
    make_up()
    return complete


def readable_calls(calls: object) -> list[dict[str, Any]]:
    """Return the calls that a model can read: each with an id, the name of its tool and arguments as a text."""
    return [read for call in (calls if isinstance(calls, list) else ()) if (read := _call(call)) is not None]


def _call(call: object) -> dict[str, Any] | None:
    if not isinstance(call, Mapping):
        return None
    call_id, function = call.get("id") or call.get("call_id"), call.get("function")
    if not isinstance(call_id, str) or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments")
    told = {**function, "arguments": arguments if isinstance(arguments, str) else "{}"}
    return {**call, "id": call_id, "type": "function", "function": told}
