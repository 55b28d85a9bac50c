"""How far something is, on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Tell", "counting"]


class Tell(Protocol):
    """Takes how many are done and, where that has changed, of how many."""

    def __call__(self, done: int, total: int | None = None) -> object: ...


@contextmanager
def counting(verb: str, total: int) -> Iterator[Tell]:
    """Yield a function that takes how many of `total` are done."""
    if not sys.stderr.isatty():
        yield _quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=total)
        yield lambda done, total=None: bar.update(task, completed=done, total=total)


def _quiet(done: int, total: int | None = None) -> None:
    """Nobody looks."""
