"""Which process listens on a port, as far as the system tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["listens"]

_LISTEN: Final = "0A"
_ADDRESS, _STATE, _INODE = 1, 3, 9  # of a line of /proc/<pid>/net/tcp


def listens(pid: int, port: int) -> bool | None:
    """Return whether a process listens on a port of TCP; None where that can't be seen: another user's process, or a
    system without /proc.
    """
    process = Path("/proc") / str(pid)
    try:
        held = {_opened(entry) for entry in (process / "fd").iterdir()}
        lines = [line for name in ("tcp", "tcp6") for line in _lines(process / "net" / name)]
    except OSError:
        return None
    listening = (
        line for line in lines if line[_STATE] == _LISTEN and int(line[_ADDRESS].rpartition(":")[2], 16) == port
    )
    return any(f"socket:[{line[_INODE]}]" in held for line in listening)


def _opened(entry: Path) -> str | None:
    try:
        return os.readlink(entry)
    except FileNotFoundError:
        return None  # closed meanwhile


def _lines(table: Path) -> list[list[str]]:
    if not table.exists():
        return []
    return [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
