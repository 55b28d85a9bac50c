"""The log of events, read by polling and by following, while actions run at once and the server is killed between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aip_hermes.client import AipConnection, ClientFailure, Patience
from aip_hermes.ids import ActionId, CapabilityId, IdempotencyKey
from aip_hermes.ports import new_id
from tests.support.counting_hermes import Provider, running_provider
from tests.support.crash_stage import Forks, running_forks
from tests.support.server_serving import written_settings

ROUNDS, AT_ONCE = 3, 8


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with running_forks() as running:
        yield running


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with running_provider(tmp_path_factory.mktemp("provider")) as running:
        yield running


@dataclass
class Readers:
    """Two readers of one log. up: set while a server answers."""

    connection: AipConnection
    up: asyncio.Event = field(default_factory=asyncio.Event)
    polled: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def poll(self) -> None:
        """Read three at a time, from one position to the next, whichever server answers."""
        cursor: str | None = None
        while True:
            await self.up.wait()
            try:
                page = (await self.connection.event_log(cursor=cursor, limit=3, wait_ms=1000))["event_stream"]
            except ClientFailure:
                # The loop of this test must run for the next server to come up.
                await asyncio.to_thread(lambda: None)
                continue
            self.polled += [event["id"] for event in page["events"]]
            cursor = page["next_cursor"]
            self.told.set()

    async def follow(self) -> None:
        await self.up.wait()
        async with aclosing(self.connection.follow_log(patience=Patience(max_tries=100))) as frames:
            async for frame in frames:
                if frame.kind == "event":
                    self.followed.append(frame.data["event"]["id"])
                    self.told.set()

    async def until_both_have(self, last: str) -> None:
        while last not in self.polled or last not in self.followed:
            self.told.clear()
            await self.told.wait()


async def work(connection: AipConnection, number: int) -> None:
    """Create a session, talk in it, read it; what the killed server did not answer is left."""
    session = f"log-{number}"
    calls = (
        ("session_create", {"body": {"id": session}}, IdempotencyKey(f"key-{number}")),
        ("session_chat", {"session_id": session, "message": "hi"}, None),
        ("session_get", {"session_id": session}, None),
    )
    for operation, values, key in calls:
        try:
            await connection.call(
                CapabilityId(f"cap:hermes_agent:primary:{operation}"),
                values,
                action_id=ActionId(new_id("act_")),
                idempotency_key=key,
            )
        except ClientFailure:
            return


async def whole_log(connection: AipConnection) -> list[str]:
    page = (await connection.event_log(limit=1000))["event_stream"]
    return [event["id"] for event in page["events"]]


@pytest.mark.requirement("records:log:once-and-in-order")
async def test_every_event_comes_once_and_in_order_by_both_ways_over_restarts(
    tmp_path: Path, forks: Forks, provider: Provider
) -> None:
    config = written_settings(tmp_path, endpoint_url=provider.url).path
    server = await asyncio.to_thread(forks.start, config)
    written_settings(tmp_path, endpoint_url=provider.url, port=urlsplit(server.url).port or 0)
    async with asyncio.timeout(120), server.connection() as connection, asyncio.TaskGroup() as tasks:
        readers = Readers(connection)
        reading = [tasks.create_task(readers.poll()), tasks.create_task(readers.follow())]
        for number in range(ROUNDS):
            readers.up.set()
            working = [asyncio.create_task(work(connection, number * AT_ONCE + each)) for each in range(AT_ONCE)]
            if number < ROUNDS - 1:
                await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                readers.up.clear()
                await asyncio.to_thread(forks.kill)
                await asyncio.gather(*working)
                server = await asyncio.to_thread(forks.start, config)
            else:
                await asyncio.gather(*working)
        log = await whole_log(connection)
        await readers.until_both_have(log[-1])
        for task in reading:
            task.cancel()
    await asyncio.to_thread(forks.kill)
    assert len(log) >= AT_ONCE
    assert readers.polled == log
    assert readers.followed == log
