"""Following, polling and cancelling over real HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Chunk, Publish
from aip_hermes.ports import SystemClock
from aip_hermes.runtime import event_pages
from aip_hermes.server import following, streams
from tests.support.runtime_connector import ScriptedConnector
from tests.support.server_serving import action, envelope
from tests.support.server_streams import frames, streaming_server


class Turn:
    """Three chunks; each waits for a `let`."""

    def __init__(self) -> None:
        self.let = asyncio.Semaphore(0)

    async def __call__(self, publish: Publish) -> Answer:
        for number in range(3):
            await self.let.acquire()
            await publish(Chunk(kind="data", data={"n": number}, text=f"word {number}"))
        return Answer(output={"text": "word 0 word 1 word 2"})


def scripted(turn: Turn | None = None) -> ScriptedConnector:
    return ScriptedConnector(tenant="local", streaming=frozenset({"session_chat"}), stream=turn)


def submit(client: httpx.AsyncClient, action_id: str, operation: str = "session_chat") -> asyncio.Task[httpx.Response]:
    sent = action(action_id, operation, key="key-1" if operation == "session_delete" else None)
    if operation == "session_chat":
        sent["body"]["action"] |= {"input": {"session_id": "s", "message": "hi"}, "mode": "streaming"}
    return asyncio.create_task(client.post("/aip/v1/messages", json=sent))


async def running(client: httpx.AsyncClient, action_id: str) -> None:
    while (await client.get(f"/aip/v1/actions/{action_id}")).json()["action_status"]["state"] == "unknown":
        pass


@pytest.mark.requirement("server:follow:as-it-happens")
async def test_a_follower_sees_each_chunk_before_the_next_is_made(tmp_path: Path) -> None:
    turn = Turn()
    async with asyncio.timeout(30), streaming_server(tmp_path, scripted(turn)) as client:
        submitted = submit(client, "act_1")
        await running(client, "act_1")
        seen: list[Any] = []
        async with client.stream("GET", "/aip/v1/actions/act_1/chunks?follow=true") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            turn.let.release()
            async for event, identity, data in frames(response):
                seen.append((event, identity))
                if event == "aip.stream.chunk" and "chunk" in data:
                    assert wire.schema_violations("stream_chunk", data["chunk"]) == []
                    assert identity == f"chunk:{data['chunk']['sequence']}"
                    turn.let.release()
        assert [identity for _, identity in seen if identity and identity.startswith("chunk:")] == [
            "chunk:0",
            "chunk:1",
            "chunk:2",
        ]
        assert seen[-1][0] == "aip.stream.terminal"
        assert (await submitted).json()["body"]["action_result"]["status"] == "completed"


@pytest.mark.requirement("server:follow:resume", "server:events:polling")
async def test_a_follower_goes_on_behind_its_last_cursor(tmp_path: Path) -> None:
    turn = Turn()
    connector = scripted(turn)
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        submitted = submit(client, "act_1")
        await running(client, "act_1")
        turn.let.release()
        cursor = None
        async with client.stream("GET", "/aip/v1/actions/act_1/events?follow=true&include_chunks=true") as response:
            async for event, identity, _ in frames(response):
                if event == "aip.stream.cursor":
                    cursor = identity
                    break
        turn.let.release()
        turn.let.release()
        await submitted
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        assert cursor is not None
        headers = {"last-event-id": cursor}
        url = "/aip/v1/actions/act_1/events?follow=true&include_chunks=true"
        async with client.stream("GET", url, headers=headers) as response:
            rest = [data async for _, _, data in frames(response)]
        chunks = [data["chunk"]["sequence"] for data in rest if "chunk" in data]
        kinds = [data["event"]["kind"] for data in rest if "event" in data]
        assert chunks == [1, 2]
        assert kinds == ["aip.stream.chunk", "aip.stream.chunk", "aip.action.result"]
        polled, cursor = [], None
        while True:
            query = {"limit": "1", "include_chunks": "true"} | ({"cursor": cursor} if cursor else {})
            page = (await client.get("/aip/v1/actions/act_1/events", params=query)).json()["action_events"]
            assert wire.schema_violations("action_events", page) == []
            polled += page["events"] + page.get("chunks", [])
            cursor = page["cursor"]
            if page["terminal"]:
                break
        assert len(polled) == 7


@pytest.mark.requirement("server:follow:reader-leaves")
async def test_who_leaves_stops_nobody(tmp_path: Path) -> None:
    turn = Turn()
    async with asyncio.timeout(30), streaming_server(tmp_path, scripted(turn)) as client:
        submitted = submit(client, "act_1")
        await running(client, "act_1")
        async with client.stream("GET", "/aip/v1/actions/act_1/chunks?follow=true") as response:
            turn.let.release()
            async for _ in frames(response):
                break
        submitted.cancel()
        async with client.stream("GET", "/aip/v1/actions/act_1/chunks?follow=true") as response:
            turn.let.release()
            turn.let.release()
            ends = [event async for event, _, _ in frames(response)]
        assert ends[-1] == "aip.stream.terminal"
        assert (await client.get("/aip/v1/actions/act_1/result")).json()["action_result"]["status"] == "completed"


class Hurried(SystemClock):
    """Sixty times as fast where it only measures."""

    def monotonic(self) -> float:
        return super().monotonic() * 60


@pytest.mark.requirement("server:follow:heartbeat")
async def test_an_idle_stream_says_that_it_lives(tmp_path: Path) -> None:
    assert following.HEARTBEAT_S == 15
    turn = Turn()
    async with asyncio.timeout(30), streaming_server(tmp_path, scripted(turn), clock=Hurried()) as client:
        submitted = submit(client, "act_1")
        await running(client, "act_1")
        async with client.stream("GET", "/aip/v1/actions/act_1/events?follow=true") as response:
            first = await anext(response.aiter_raw())
        assert first == b": keep-alive\n\n"
        for _ in range(3):
            turn.let.release()
        await submitted


class Restless(SystemClock):
    """Counts who rests before looking again."""

    rests = 0

    async def sleep(self, seconds: float) -> None:
        self.rests += seconds == streams.LOOK_S
        await super().sleep(seconds)


@pytest.mark.requirement("server:follow:rare-kinds")
async def test_a_follower_of_rare_kinds_does_not_rest_between_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_pages, "MAX_PAGE", 1)
    turn, clock = Turn(), Restless()
    for _ in range(3):
        turn.let.release()
    async with asyncio.timeout(30), streaming_server(tmp_path, scripted(turn), clock=clock) as client:
        await submit(client, "act_1")
        clock.rests = 0
        async with client.stream("GET", "/aip/v1/actions/act_1/events?follow=true&kinds=aip.action.result") as response:
            seen = [event async for event, _, _ in frames(response)]
        assert seen == ["aip.action.result", "aip.stream.cursor", "aip.stream.terminal"]
        assert clock.rests == 0


@pytest.mark.requirement("server:follow:small-portions")
async def test_a_follower_is_handed_little_at_a_time(tmp_path: Path) -> None:
    async def large(publish: Publish) -> Answer:
        for _ in range(6):
            await publish(Chunk(kind="data", data={"large": "x" * 100_000}))
        await publish(Chunk(kind="data", data={"large": "x" * 600_000}))
        return Answer(output={"text": ""})

    connector = ScriptedConnector(tenant="local", streaming=frozenset({"session_chat"}), stream=large)
    async with asyncio.timeout(30), streaming_server(tmp_path, connector) as client:
        await submit(client, "act_1")
        portions: list[int] = []
        portion = 0
        async with client.stream("GET", "/aip/v1/actions/act_1/chunks?follow=true") as response:
            async for event, _, data in frames(response):
                if event == "aip.stream.cursor":
                    portions, portion = [*portions, portion], 0
                elif "chunk" in data:
                    portion += len(data["chunk"]["data"]["large"])
        whole = len((await client.get("/aip/v1/actions/act_1/chunks")).json()["action_events"]["chunks"])
    assert portions == [200_000, 200_000, 200_000, 600_000]
    assert whole == 7


@pytest.mark.requirement("server:events:refusals")
@pytest.mark.parametrize("follow", ["", "&follow=true"])
@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("act_unknown/events?", 400, "action.not_found"),
        ("act_1/events?cursor=evt_1", 400, "query.invalid_cursor"),
        ("act_1/chunks?cursor=aev_cursor_99999_none", 400, "stream.cursor_expired"),
        ("nothing/events?", 400, "query.invalid"),
        ("act_1/events?include_chunks=yes", 400, "query.invalid"),
    ],
)
async def test_a_refusal_is_an_error_envelope(tmp_path: Path, path: str, follow: str, status: int, code: str) -> None:
    async with streaming_server(tmp_path, scripted()) as client:
        await submit(client, "act_1")
        response = await client.get(f"/aip/v1/actions/{path}{follow}")
        assert response.status_code == status
        assert response.json()["body"]["error"]["error"]["code"] == code
        assert wire.envelope_violations(response.json()) == []


@pytest.mark.requirement("server:cancel:route")
async def test_cancelling_by_route_and_by_message(tmp_path: Path) -> None:
    async with asyncio.timeout(30), streaming_server(tmp_path, scripted()) as client:
        for bad in ({"reason": 5}, {"why": "x"}, ["reason"], {"reason": "  "}, {"reason": "x" * 1025}):
            refused = await client.post("/aip/v1/actions/act_1/cancel", json=bad)
            assert (refused.status_code, refused.json()["body"]["error"]["error"]["code"]) == (
                400,
                "action.invalid_input",
            )
        unknown = await client.post("/aip/v1/actions/act_1/cancel")
        assert unknown.json()["body"]["error"]["error"]["code"] == "resource.not_found"
        for number, cancel in enumerate(("route", "message")):
            turn = asyncio.create_task(park(client, f"act_{number}"))
            await turn
            if cancel == "route":
                answer = await client.post(f"/aip/v1/actions/act_{number}/cancel", json={"reason": "not needed"})
                result = answer.json()["action_result"]
            else:
                body = {"cancel": {"target": {"action": f"act_{number}"}}}
                answer = await client.post("/aip/v1/messages", json=envelope(body, message_id="msg_cancel"))
                result = answer.json()["body"]["action_result"]
            assert answer.status_code == 200
            assert wire.schema_violations("action_result", result) == []
            assert result["status"] == "cancelled"
            status = (await client.get(f"/aip/v1/actions/act_{number}")).json()["action_status"]
            assert status["state"] == "cancelled"


async def park(client: httpx.AsyncClient, action_id: str) -> None:
    sent = action(action_id, "session_delete", key=f"key-{action_id}")
    answer = await client.post("/aip/v1/messages", json=sent)
    assert answer.json()["body"]["action_result"]["status"] == "pending_approval"
