"""The words of a streamed turn, told while it runs. They are model output and prove nothing; the turn is verified by
reads, whatever became of its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

import structlog

from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.failures import ClientFailure
from aip_hermes.ids import ActionId
from aip_hermes.ports import Clock

__all__ = ["OnText", "telling"]

OnText = Callable[[str], Awaitable[None]]
"""Told each piece of a reply, in order. A process that takes a turn over tells them again from the first."""

log = structlog.get_logger(__name__)

_PAUSE_S: Final = 0.1
_LAST_WORDS_S: Final = 10.0
"""How long the words of a turn that has ended may still take."""


@asynccontextmanager
async def telling(
    client: AipClient, action_id: ActionId, on_text: OnText | None, *, clock: Clock
) -> AsyncGenerator[None, None]:
    """Tell the words of an action while the block brings it to its end, and then those that are left.

    Words that can't be read are not told, and the turn goes on. What `on_text` raises is raised when the block has
    ended well: the turn stands then. A block that fails ends the telling.
    """
    if on_text is None:
        yield
        return
    task = asyncio.create_task(_tell(client, action_id, on_text, clock=clock))
    try:
        yield
        await asyncio.wait({task}, timeout=_LAST_WORDS_S)
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tell(client: AipClient, action_id: ActionId, on_text: OnText, *, clock: Clock) -> None:
    try:
        while (await client.status(action_id)).state == "unknown":
            await clock.sleep(_PAUSE_S)
        async with aclosing(client.stream(action_id, chunks_only=True)) as frames:
            async for frame in frames:
                part = frame.data["chunk"].get("part") if frame.kind == "chunk" else None
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    await on_text(part["text"])
    except ClientFailure as failure:
        log.warning("lifecycle.words_lost", action_id=str(action_id), code=failure.code)
