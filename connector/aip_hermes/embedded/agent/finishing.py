"""What was begun is finished, also when somebody cancels in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

__all__ = ["being_cancelled", "finished"]

T = TypeVar("T")
log = structlog.get_logger(__name__)


def being_cancelled() -> bool:
    """Tell whether somebody cancels this task; a CancelledError may also come out of work that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return the outcome of `work`. A cancel meanwhile, and each one after it, waits for its end; it is raised then."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is None:
        return task.result()
    if not task.cancelled() and task.exception() is not None:
        log.warning("turn.failed_while_cancelled", cause=type(task.exception()).__name__)
    raise cancelled
