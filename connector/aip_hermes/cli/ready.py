"""The agreement between a server process and whoever started it: one JSON line, and when to stop."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

__all__ = ["announce", "stop_with_stdin"]


def announce(ready: dict[str, Any]) -> None:
    """Print the one JSON line that says a server is ready; nothing else ever goes to stdout."""
    print(json.dumps(ready), flush=True)


class _Closed(asyncio.Protocol):
    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop.set()


async def stop_with_stdin(stop: asyncio.Event) -> None:
    """Set `stop` when the pipe on stdin closes, as it does when the parent process is gone."""
    await asyncio.get_running_loop().connect_read_pipe(lambda: _Closed(stop), sys.stdin)
