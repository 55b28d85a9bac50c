"""One program through the life of some sessions, for tests that stop it anywhere and run it again.

`python -m tests.support.lifecycle_walk` reads orders from stdin, one JSON line each, and runs each as a process of its
own, forked from one that has imported everything already:

    {"url": …, "token_file": …, "store": …, "name": …}
    {"pid": 4711}  {"ended": 4711, "status": 0}

status: 0 when the walk is over, 3 where a reviewer has to decide first, negative for a signal.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final, NoReturn

from aip_hermes import wire
from aip_hermes.cli.ready import announce
from aip_hermes.client import AipClient, SqliteIdentityStore
from aip_hermes.client.lifecycle import DecisionPending, DeleteConfirmed, LifecyclePolicy, SessionLifecycle
from aip_hermes.ids import HermesSessionId, HermesSessionKey

__all__ = ["WAITS", "changes_of", "left_by", "walk"]

WAITS: Final = 3


def left_by(name: str) -> dict[str, int]:
    """Return the rows after a walk, with their counts of messages: two copied, and two turns of the child's own."""
    return {f"{name}-child": 6}


def changes_of(name: str) -> list[str]:
    """Return what changes something at the endpoint, once each and in this order."""
    return [
        "POST /api/sessions",
        f"POST /api/sessions/{name}/chat",
        f"PATCH /api/sessions/{name}",
        f"POST /api/sessions/{name}/fork",
        f"POST /api/sessions/{name}-child/chat",
        f"POST /api/sessions/{name}-child/chat/stream",
        f"PATCH /api/sessions/{name}-child",
        f"DELETE /api/sessions/{name}",
    ]


async def walk(
    life: SessionLifecycle, name: str, *, on_step: Callable[[str], None] = lambda _: None
) -> DeleteConfirmed:
    """Walk from the first step to the last. name: of the first session. on_step: told each step before it."""
    on_step("create")
    session = await life.create(HermesSessionId(name), title=name, session_key=HermesSessionKey("memory-of-ada"))
    on_step("first")
    turn = await life.chat(session, "What is verified?", step="first")
    on_step("rename")
    await life.rename(turn.session, f"{name}, asked", step="rename")
    on_step("fork")
    forked = await life.fork(turn.session, HermesSessionId(f"{name}-child"), title=f"{name}, child")
    on_step("second")
    second = await life.chat(forked.child, "And here?", step="second")
    on_step("third")
    # The same words as before: one turn must not pass for another.
    third = await life.chat_stream(second.session, "And here?", step="third", on_text=_heard)
    on_step("close")
    await life.close(third.session, reason="walked")
    on_step("request")
    request = await life.request_delete(forked.source)
    on_step("decision")
    decided = await life.await_decision(request, timeout_s=0)
    on_step("confirm")
    return await life.confirm_deleted(decided)


async def _heard(_text: str) -> None:
    """What a program does with words that prove nothing."""


async def _walker(url: str, token_file: str, store: str, name: str) -> int:
    async with SqliteIdentityStore(store) as kept, AipClient(base_url=url, token_file=token_file, store=kept) as client:
        try:
            await walk(SessionLifecycle(client, name=name, policy=LifecyclePolicy(wait_s=30)), name)
        except DecisionPending:
            return WAITS
    return 0


def _become_walker(order: dict[str, Any]) -> NoReturn:
    status = 1
    try:
        status = asyncio.run(_walker(**order))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _main() -> None:
    wire.build_models()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become_walker(json.loads(line))
        announce({"pid": pid})
        _, status = os.waitpid(pid, 0)
        announce({"ended": pid, "status": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    _main()
