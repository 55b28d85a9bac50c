"""One client process of the soak: works through its share, whatever happens to the server, and writes down how each
action ended.

It behaves as a careful client does: identities first; after a lost answer the same submission again; a certain,
retryable failure again; an uncertain one never. `python -m tests.soak.client URL PROVIDER JOURNAL NUMBER SEED FIRST`
prints a line after each action.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import httpx

from aip_hermes.client import AipConnection
from aip_hermes.client.decisions import AlreadyDecided
from aip_hermes.client.failures import HttpFailed, NoAnswer, NotReachable, PeerError
from aip_hermes.ids import ActionId, CapabilityId
from tests.support.crash_stage import REQUESTER, REVIEWER
from tests.support.crash_stories import Kind, Story, approve

__all__ = ["MIX"]

MIX: Final = ("read", "read", "read", "create", "create", "turn", "turn", "queued", "stream", "delete")
AT_ONCE: Final = 4
AGAIN_S: Final = 0.05
UNDER_WAY: Final = ("queued", "running", "streaming", "accepted")
TEMPORARY: Final = frozenset({"idempotency.in_progress", "gateway.stopping", "runtime.stopping", "store.unavailable"})

T = TypeVar("T")


class Client:
    """Its connections, and the journal."""

    def __init__(self, requester: AipConnection, reviewer: AipConnection, provider: httpx.AsyncClient) -> None:
        self._requester = requester
        self._reviewer = reviewer
        self._provider = provider

    async def live(self, kind: str, mark: str) -> dict[str, Any]:
        """Bring one action to its end and return its line of the journal."""
        story = Story(kind="turn" if kind == "read" else _kind(kind), mark=mark)
        if story.session_id is not None:
            (await self._provider.put(f"rows/{story.session_id}")).raise_for_status()
        while True:
            answer = await self._patiently(lambda: self._submit(kind, story))
            end = await self._end_of(story.action_id, answer)
            error = end.get("error") or {}
            uncertain = (error.get("details") or {}).get("uncertain_outcome") is True
            if error.get("retryable") is True and not uncertain:
                continue  # the same submission is its next attempt
            line = {"action_id": story.action_id, "kind": kind, "mark": mark}
            return {**line, "status": end["status"], "code": error.get("code"), "uncertain": uncertain}

    async def _submit(self, kind: str, story: Story) -> dict[str, Any]:
        if kind != "read":
            return await story.submit(self._requester)
        reply = await self._requester.call(
            CapabilityId("cap:hermes_agent:primary:session_get"),
            {"session_id": story.session_id},
            action_id=story.action_id,
        )
        return reply.body

    async def _end_of(self, action_id: ActionId, answer: dict[str, Any]) -> dict[str, Any]:
        """Follow an action to its result; approve where it waits for that."""
        while answer["status"] in ("queued", "accepted", "pending_approval"):
            status = (await self._patiently(lambda: self._requester.status(action_id, include_result=True)))[
                "action_status"
            ]
            if status["state"] == "pending_approval":
                await self._approve(status["approval_id"])
            elif status["state"] in UNDER_WAY:
                await asyncio.sleep(AGAIN_S)
            else:
                answer = status["result"]
        return answer

    async def _approve(self, approval_id: str) -> None:
        async def once() -> None:
            try:
                await approve(self._reviewer, approval_id)
            except AlreadyDecided:
                return

        await self._patiently(once)

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until an answer comes, which the same identities make safe."""
        while True:
            try:
                return await ask()
            except (NoAnswer, NotReachable):
                pass
            except PeerError as error:
                if not (error.retryable or error.code in TEMPORARY or (error.http_status or 0) >= 500):
                    raise
            except HttpFailed as error:
                if (error.http_status or 0) < 500:
                    raise
            await asyncio.sleep(AGAIN_S)


def _kind(kind: str) -> Kind:
    kinds: dict[str, Kind] = {
        "create": "create", "turn": "turn", "queued": "queued", "stream": "stream", "delete": "delete",
    }  # fmt: skip
    return kinds[kind]


async def _work(client: Client, shares: list[tuple[str, str]], journal: TextIO) -> None:
    """Several at a time; each end is written down before it is announced."""

    async def one() -> None:
        while shares:
            kind, mark = shares.pop()
            line = await client.live(kind, mark)
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            sys.stdout.write(f"{line['status']}\n")
            sys.stdout.flush()

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one())


async def _run(url: str, provider: str, journal: Path, number: int, seed: str, first: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a mix of work, no secret
    shares = [(chance.choice(MIX), f"n{first + index}") for index in range(number)]
    async with (
        AipConnection(base_url=url, token=REQUESTER, answer_timeout_s=30) as requester,
        AipConnection(base_url=url, token=REVIEWER, answer_timeout_s=30) as reviewer,
        httpx.AsyncClient(base_url=provider, trust_env=False) as there,
    ):
        with journal.open("w", encoding="utf-8") as lines:
            await _work(Client(requester, reviewer, there), shares, lines)


if __name__ == "__main__":
    _url, _provider, _journal, _number, _seed, _first = sys.argv[1:]
    asyncio.run(_run(_url, _provider, Path(_journal), int(_number), _seed, int(_first)))
