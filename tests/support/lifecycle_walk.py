"""One program through the life of some sessions, for tests that stop it anywhere and run it again.

`python -m tests.support.lifecycle_walk '{"url": …, "token_file": …, "store": …}'` runs it as a process of its own. It
ends with 0 when the walk is over and with 3 where a reviewer has to decide first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from typing import Final

from aip_hermes.client import AipClient, SqliteIdentityStore
from aip_hermes.client.lifecycle import DecisionPending, DeleteConfirmed, LifecyclePolicy, SessionLifecycle
from aip_hermes.ids import HermesSessionId, HermesSessionKey

__all__ = ["CHANGES", "LEFT", "WAITS", "walk"]

WAITS: Final = 3

LEFT: Final[Mapping[str, int]] = {"w-child": 6}
"""The rows after a walk, with their counts of messages: the child has two copied and two turns of its own."""

CHANGES: Final = (
    "POST /api/sessions",
    "POST /api/sessions/w/chat",
    "PATCH /api/sessions/w",
    "POST /api/sessions/w/fork",
    "POST /api/sessions/w-child/chat",
    "POST /api/sessions/w-child/chat",
    "PATCH /api/sessions/w-child",
    "DELETE /api/sessions/w",
)
"""What changes something at the endpoint, once each and in this order."""


async def walk(life: SessionLifecycle, *, on_step: Callable[[str], None] = lambda _: None) -> DeleteConfirmed:
    """Walk from the first step to the last. on_step: told each name before it."""
    on_step("create")
    session = await life.create(HermesSessionId("w"), title="Walk", session_key=HermesSessionKey("memory-of-ada"))
    on_step("first")
    turn = await life.chat(session, "What is verified?", step="first")
    on_step("rename")
    await life.rename(turn.session, "Walk, asked", step="rename")
    on_step("fork")
    forked = await life.fork(turn.session, HermesSessionId("w-child"), title="Walk, child")
    on_step("second")
    second = await life.chat(forked.child, "And here?", step="second")
    on_step("third")
    # The same words as before: one turn must not pass for another.
    third = await life.chat(second.session, "And here?", step="third")
    on_step("close")
    await life.close(third.session, reason="walked")
    on_step("request")
    request = await life.request_delete(forked.source)
    on_step("decision")
    decided = await life.await_decision(request, timeout_s=0)
    on_step("confirm")
    return await life.confirm_deleted(decided)


async def _main(url: str, token_file: str, store: str) -> int:
    async with SqliteIdentityStore(store) as kept, AipClient(base_url=url, token_file=token_file, store=kept) as client:
        try:
            await walk(SessionLifecycle(client, name="walk", policy=LifecyclePolicy(wait_s=30)))
        except DecisionPending:
            return WAITS
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(**json.loads(sys.argv[1]))))
