"""The one tool of the built-in agent: it keeps the text of a command that a person allowed, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.embedded.agent.events import Approver, Question
from aip_hermes.embedded.agent.models import ToolCall
from aip_hermes.embedded.session_db import GrantStore
from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["TOOLS", "TOOLSET", "CommandTool", "ToolOutcome", "arguments_of", "preview_of"]

_NAME: Final = "record_command"
_PATTERN: Final = "recorded command"
_PREVIEW_CHARS: Final = 200

TOOLS: Final[tuple[dict[str, Any], ...]] = (
    {
        "type": "function",
        "function": {
            "name": _NAME,
            "description": "Note a shell command for a person to run later. Nothing is executed. A person decides "
            "first whether it is noted.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command, word for word."}},
                "required": ["command"],
            },
        },
    },
)

TOOLSET: Final[dict[str, Any]] = {
    "name": "record",
    "label": "Recorded commands",
    "description": _NAME,
    "enabled": True,
    "configured": True,
    "tools": [_NAME],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOutcome:
    """output: the JSON text that becomes the result row. failed: denied, broken or unknown."""

    output: str
    failed: bool


class CommandTool:
    """Asks unless the session or everybody was allowed before."""

    def __init__(self, grants: GrantStore) -> None:
        self._grants = grants
        self._sessions: set[str] = set()

    async def run(self, call: ToolCall, *, session_id: str, approver: Approver) -> ToolOutcome:
        """Do what was asked; whatever is wrong with the call is an outcome, so that the turn goes on."""
        if call.name != _NAME:
            return _outcome({"error": f"Unknown tool: {call.name}"}, failed=True)
        command = (arguments_of(call) or {}).get("command")
        if not isinstance(command, str) or not command.strip():
            return _outcome({"error": 'The arguments are {"command": "<text>"}'}, failed=True)
        if session_id in self._sessions or await self._grants.covers(_PATTERN):
            return _recorded(command)
        question = Question(command=command, pattern=_PATTERN, description="a command to be noted")
        match await approver.ask(question):
            case None:
                return _outcome({"status": "pending_approval", "recorded": False, "command": command}, failed=False)
            case "deny":
                return _outcome({"status": "denied", "recorded": False, "command": command}, failed=True)
            case "session":
                self._sessions.add(session_id)
            case "always":
                await self._grants.keep(_PATTERN)
            case "once":
                pass
        return _recorded(command)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments, or None where they are no JSON object."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def preview_of(call: ToolCall) -> str | None:
    """Return the command of a call, cut, or None."""
    command = (arguments_of(call) or {}).get("command")
    return scrubbed(command[:_PREVIEW_CHARS]) if isinstance(command, str) else None


def _recorded(command: str) -> ToolOutcome:
    return _outcome({"status": "recorded", "recorded": True, "executed": False, "command": command}, failed=False)


def _outcome(body: Mapping[str, Any], *, failed: bool) -> ToolOutcome:
    return ToolOutcome(output=json.dumps(body), failed=failed)
