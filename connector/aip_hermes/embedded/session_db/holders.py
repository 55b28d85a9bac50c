"""Who holds a lease, written so that others can tell whether that process still lives.

A process id alone says little: a container's first process is number 1 again after every restart, and numbers are given
anew. So the text also says when the process began and on which machine.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Final

__all__ = ["holder_is_gone", "process_holder"]

_PID: Final = re.compile(r"(?:^|:)pid=(\d{1,9})(?=:|$)")
_SINCE: Final = re.compile(r"(?:^|:)since=(\d+)(?=:|$)")
_HOST: Final = re.compile(r"(?:^|:)host=([^:]*)(?=:|$)")
_STATE_FIELD, _START_FIELD = 0, 19  # of /proc/<pid>/stat, counted after the name


def process_holder(*, turn: str, platform: str) -> str:
    """Return `pid=…:since=…:host=…:turn=…:platform=…` for this process; `since` only where the system tells it."""
    pid = os.getpid()
    since = _began(pid)
    parts = [f"pid={pid}", *([] if since is None else [f"since={since}"]), f"host={_host()}"]
    return ":".join([*parts, f"turn={turn}", f"platform={platform}"])


def holder_is_gone(holder: str, *, elsewhere: bool = False) -> bool:
    """Tell whether a holder names a process of this machine that is no more; False for all that can't be known.

    elsewhere: whether it may run on another machine, so that one that names no machine can't be known.
    """
    found = _PID.search(holder)
    host = _HOST.search(holder)
    if found is None or (elsewhere if host is None else host[1] != _host()):
        return False
    pid = int(found[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    if _told(pid, _STATE_FIELD) in ("Z", "X"):
        return True  # it ended, and whoever started it has not asked for that yet
    since = _SINCE.search(holder)
    began = _began(pid)
    return since is not None and began is not None and since[1] != began


def _began(pid: int) -> str | None:
    """Return when a process began, as its system writes it; None where it does not tell."""
    return _told(pid, _START_FIELD)


def _told(pid: int, field: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[field] if len(fields) > field else None


def _host() -> str:
    return socket.gethostname().replace(":", "_")
