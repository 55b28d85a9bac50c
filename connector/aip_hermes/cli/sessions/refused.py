"""What `aip-hermes sessions` refuses."""

from __future__ import annotations

__all__ = ["SessionsRefused"]


class SessionsRefused(Exception):
    """What was asked can't be done. The text names the cause, what it concerns and the next step."""
