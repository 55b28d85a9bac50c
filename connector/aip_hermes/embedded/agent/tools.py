"""The built-in tool that asks a person: it keeps the text of a command that was allowed, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.embedded.agent.events import Question
from aip_hermes.embedded.agent.models import ToolCall
from aip_hermes.embedded.agent.toolbox import ToolContext, ToolOutcome, ToolRegistry, arguments_of
from aip_hermes.embedded.session_db import GrantStore
from aip_hermes.embedded.session_db.columns import scrubbed

__all__ = ["RECORD", "TOOLS", "TOOLSET", "CommandTool", "command_registry", "preview_of"]

RECORD: Final = "record"
"""The toolset of the command tool."""

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
    "name": RECORD,
    "label": "Recorded commands",
    "description": _NAME,
    "enabled": True,
    "configured": True,
    "tools": [_NAME],
}


class CommandTool:
    """Asks unless the session or everybody was allowed before."""

    name = _NAME
    definition = TOOLS[0]

    def __init__(self, grants: GrantStore) -> None:
        self._grants = grants
        self._sessions: set[str] = set()

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Note the command where it is allowed."""
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            return _outcome({"error": 'The arguments are {"command": "<text>"}'}, failed=True)
        if context.session_id in self._sessions or await self._grants.covers(_PATTERN):
            return _recorded(command)
        question = Question(command=command, pattern=_PATTERN, description="a command to be noted")
        match await context.approver.ask(question):
            case None:
                return _outcome({"status": "pending_approval", "recorded": False, "command": command}, failed=False)
            case "deny":
                return _outcome({"status": "denied", "recorded": False, "command": command}, failed=True)
            case "session":
                self._sessions.add(context.session_id)
            case "always":
                await self._grants.keep(_PATTERN)
            case "once":
                pass
        return _recorded(command)


def command_registry(grants: GrantStore) -> ToolRegistry:
    """Return a registry of this one tool."""
    registry = ToolRegistry()
    registry.add(CommandTool(grants), toolset=RECORD)
    return registry


def preview_of(call: ToolCall) -> str | None:
    """Return the command of a call, cut, or None."""
    command = (arguments_of(call) or {}).get("command")
    return scrubbed(command[:_PREVIEW_CHARS]) if isinstance(command, str) else None


def _recorded(command: str) -> ToolOutcome:
    return _outcome({"status": "recorded", "recorded": True, "executed": False, "command": command}, failed=False)


def _outcome(body: Mapping[str, Any], *, failed: bool) -> ToolOutcome:
    return ToolOutcome(output=json.dumps(body), failed=failed)
