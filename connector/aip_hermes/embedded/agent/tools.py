"""The one tool of the built-in agent: it keeps the text of a command that a person allowed, and runs nothing."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["COMMAND_TOOL", "PATTERN", "TOOLSET"]

COMMAND_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "record_command",
        "description": "Note a shell command for a person to run later. Nothing is executed. A person is asked first.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command, word for word."}},
            "required": ["command"],
        },
    },
}

PATTERN: Final = "recorded command"
"""What kind of command a lasting approval covers: all of them, since none is run."""

TOOLSET: Final[dict[str, Any]] = {
    "name": "record",
    "label": "Recorded commands",
    "description": "record_command",
    "enabled": True,
    "configured": True,
    "tools": ["record_command"],
}
