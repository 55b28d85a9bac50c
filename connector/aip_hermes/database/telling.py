"""Telling those who listen to a store what was committed, here or by another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from aip_hermes.database.connection import Note

__all__ = ["tell"]

log = structlog.get_logger(__name__)


def tell(listener: Callable[[Note], None] | None, notes: Iterable[Note]) -> None:
    """Call `listener`, where there is one, with each note. What it raises is logged: it can't undo a commit, must not
    keep the caller of the commit waiting, and must not deafen who listens besides.
    """
    if listener is None:
        return
    for note in notes:
        try:
            listener(note)
        except Exception as error:
            log.error("database.listener_broken", note=note[0], error_type=type(error).__name__, exc_info=error)
