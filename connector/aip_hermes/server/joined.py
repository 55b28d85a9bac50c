"""An answer of known length leaves in one piece: its head waits for its body, which is at hand.

uvicorn writes them one after the other, so that each answer takes two system calls, two packets and two readings at the
other end.
"""

from __future__ import annotations

from typing import Any

import h11

__all__ = ["JoinedAnswers"]


class JoinedAnswers(h11.Connection):
    """h11 for a server; a stream's head, which announces no length, still leaves at once."""

    _head: bytes = b""

    def send(self, event: Any) -> Any:
        """Return what may be written now. None: close the connection."""
        data = super().send(event)
        if isinstance(event, h11.Response) and any(name == b"content-length" for name, _ in event.headers):
            self._head = data or b""
            return b""
        head, self._head = self._head, b""
        return head + data if head and data is not None else data
