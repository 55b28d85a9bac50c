"""Run one step again and again, killed a little later each time: before its first change to a file system, its second…

Each attempt is a fork of a process without threads; the kill is an exit without any clean-up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = ["KILLED", "killed_before_change"]

KILLED = 9
_CHANGES = frozenset(
    ("open", "os.rename", "os.link", "os.remove", "os.truncate", "sqlite3.connect", "shutil.copyfile", "os.chmod")
)


def killed_before_change(number: int, step: Callable[[], object]) -> bool:
    """Run `step` in a child that ends right before its `number`th change; whether it got that far."""
    child = os.fork()
    if child == 0:
        _attempt(number, step)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, KILLED):
        raise RuntimeError(f"the step failed by itself before change {number}")
    return code == KILLED


def _attempt(number: int, step: Callable[[], object]) -> None:
    seen = 0

    def count(event: str, _arguments: object) -> None:
        nonlocal seen
        if event in _CHANGES:
            seen += 1
            if seen == number:
                os._exit(KILLED)

    sys.addaudithook(count)
    try:
        step()
    except BaseException:
        os._exit(1)
    os._exit(0)
