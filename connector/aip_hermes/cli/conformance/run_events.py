"""What a run of the double tells, as 0.19.0 sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ASKS", "ENDED", "QUESTION", "STARTED", "told"]

STARTED = ("tool.started", {"tool": "terminal", "preview": "ls"})
ENDED = ("run.completed", {"output": "All four hold.", "usage": {"total_tokens": 7}})
QUESTION: Mapping[str, Any] = {
    "command": "rm -rf ./old",
    "pattern_key": "recursive delete",
    "choices": ["once", "deny"],
}
ASKS = ("approval.request", QUESTION)


def told(*events: tuple[str, Mapping[str, Any]]) -> bytes:
    """Return a run's events."""
    frames = ({"event": name, "run_id": "run_1", "timestamp": 1.5, **members} for name, members in events)
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)
