"""An application in a process of its own: `python -m tests.support.app_calls` reads one order from stdin, a JSON line:

    {"url": …, "token_file": …, "ids": …, "calls": [{"operation", "input", "action_id"?}, …], "die_at"?, "fill"?}

A call may be a decision instead: `{"decide": approval id, "decision", "reason"}`.

It prints `{"ready": true}`, makes the calls one after the other, and prints for each `{"outcome", "action_id"}` or
`{"failed": code, "action_id"}`. die_at: the point at which it kills itself. fill: after that many calls no file of it
may grow any more, as on a full disk.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aip_hermes.cli.ready import announce
from aip_hermes.client import AipClient, ClientFailure, SqliteIdentityStore
from aip_hermes.ids import ActionId, ApprovalId
from tests.support.client_site import cap
from tests.support.crash_server import KillAt

__all__ = ["application", "tell"]


async def tell(process: Process) -> dict[str, Any]:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "the process ended without a word"
    told: dict[str, Any] = json.loads(line)
    return told


@asynccontextmanager
async def application(order: Mapping[str, Any]) -> AsyncIterator[Process]:
    """Run one with an order, ready to call; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.app_calls", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        assert await tell(process) == {"ready": True}
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _no_more_bytes() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


async def _run(order: Mapping[str, Any]) -> None:
    faults = KillAt(order["die_at"]) if "die_at" in order else None
    async with (
        SqliteIdentityStore(order["ids"]) as store,
        AipClient(base_url=order["url"], token_file=order["token_file"], store=store, faults=faults) as aip,
    ):
        await store.open_calls()
        announce({"ready": True})
        for number, call in enumerate(order["calls"]):
            if number == order.get("fill"):
                _no_more_bytes()
            announce(await _told(aip, call))


async def _told(aip: AipClient, call: Mapping[str, Any]) -> dict[str, Any]:
    if "decide" in call:
        decided = await aip.decide(ApprovalId(call["decide"]), decision=call["decision"], reason=call["reason"])
        return {"outcome": decided.decision, "action_id": None}
    action_id = ActionId(call["action_id"]) if "action_id" in call else None
    try:
        result = await aip.call(cap(call["operation"]), call["input"], action_id=action_id)
    except ClientFailure as failure:
        return {"failed": failure.code, "action_id": failure.identities and failure.identities.action_id}
    return {"outcome": result.outcome, "action_id": result.action_id}


if __name__ == "__main__":
    asyncio.run(_run(json.loads(sys.stdin.readline())))
