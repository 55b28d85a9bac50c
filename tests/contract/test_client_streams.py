"""Following and cancelling with the client library: over a real server, and over connections that break anywhere."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import (
    ClientFailure,
    ConnectionRefused,
    Patience,
    PeerError,
    StreamFrame,
    StreamLost,
    TooLarge,
)
from aip_hermes.contract.handler import Answer as ProviderAnswer
from aip_hermes.contract.handler import Chunk, Publish
from aip_hermes.ids import ActionId, CapabilityId
from aip_hermes.ports import SystemClock
from aip_hermes.server import listening
from tests.support import client_answers as answers
from tests.support.client_streams import (
    NoWaiting,
    Script,
    chunk,
    connected,
    event,
    failure,
    followed,
    name_of,
    page,
    terminal,
)
from tests.support.client_stub_server import Answer, running_stub
from tests.support.runtime_connector import ScriptedConnector, capability
from tests.support.server_streams import streaming_server

ACTION = ActionId("act_1")
CHAT = CapabilityId(capability("session_chat"))
INPUT = {"session_id": "s", "message": "hi"}
STREAM = {"Content-Type": "text/event-stream"}


class Turn:
    """Three chunks; each waits for a `let`."""

    def __init__(self) -> None:
        self.let = asyncio.Semaphore(0)

    async def __call__(self, publish: Publish) -> ProviderAnswer:
        for number in range(3):
            await self.let.acquire()
            await publish(Chunk(kind="data", data={"n": number}, text=f"word {number}"))
        return ProviderAnswer(output={"text": "word 0 word 1 word 2"})


def _scripted(turn: Turn | None = None) -> ScriptedConnector:
    return ScriptedConnector(tenant="local", streaming=frozenset({"session_chat"}), stream=turn)


async def _known(connection: Any) -> None:
    while (await connection.status(ACTION))["action_status"]["state"] == "unknown":
        pass


@pytest.mark.requirement("client:follow:as-it-happens")
@pytest.mark.parametrize("chunks_only", [False, True])
async def test_each_frame_comes_before_the_next_is_made(tmp_path: Path, chunks_only: bool) -> None:
    turn = Turn()
    async with (
        asyncio.timeout(30),
        streaming_server(tmp_path, _scripted(turn)) as server,
        connected(str(server.base_url)) as connection,
    ):
        call = asyncio.create_task(connection.call(CHAT, INPUT, action_id=ACTION, mode="streaming"))
        await _known(connection)
        turn.let.release()
        sequences = []
        async for frame in connection.follow(ACTION, chunks_only=chunks_only):
            if frame.kind == "chunk":
                sequences.append(frame.data["chunk"]["sequence"])
                turn.let.release()
        assert sequences == [0, 1, 2]
        assert (frame.kind, frame.data["action_id"]) == ("terminal", ACTION)
        assert (await call).outcome == "completed"
        replayed = await followed(connection, chunks_only=chunks_only)
        assert [name_of(f) for f in replayed if f.kind == "chunk"] == ["chunk 0", "chunk 1", "chunk 2"]
        again = await followed(connection, cursor=replayed[-1].cursor)
        assert [f.kind for f in again] == ["terminal"]
        pages: list[Any] = []
        cursor = None
        while not pages or not pages[-1]["terminal"]:
            pages.append((await connection.chunks(ACTION, cursor=cursor, limit=2))["action_events"])
            cursor = pages[-1]["cursor"]
        assert [c["sequence"] for p in pages for c in p.get("chunks", [])] == [0, 1, 2]
        kinds = {
            e["kind"] for e in (await connection.events(ACTION, kinds=["aip.action.result"]))["action_events"]["events"]
        }
        assert kinds == {"aip.action.result"}


class Barrier(SystemClock):
    """Who waits goes on when the test says so."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.go_on = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waits.set()
        await self.go_on.wait()


@pytest.mark.requirement("client:follow:goes-on")
async def test_a_follower_outlives_a_restart_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "DRAIN_S", 0)
    turn, clock = Turn(), Barrier()
    seen: list[StreamFrame] = []
    arrived = asyncio.Event()

    async def read(connection: Any) -> None:
        async for frame in connection.follow(ACTION):
            seen.append(frame)
            if frame.kind == "chunk":
                arrived.set()

    async with asyncio.timeout(30):
        async with streaming_server(tmp_path, _scripted(turn)) as server:
            port = server.base_url.port
            connection = connected(str(server.base_url), clock=clock)
            call = asyncio.create_task(connection.call(CHAT, INPUT, action_id=ACTION, mode="streaming"))
            await _known(connection)
            reading = asyncio.create_task(read(connection))
            turn.let.release()
            await arrived.wait()
        await clock.waits.wait()
        await asyncio.gather(call, return_exceptions=True)
        async with streaming_server(tmp_path, _scripted(turn), port=port or 0):
            clock.go_on.set()
            await reading
            everything = await followed(connection)
        await connection.aclose()
    names = [name_of(frame) for frame in seen if frame.kind in ("chunk", "event")]
    assert names == list(dict.fromkeys(names))
    # A page has its events before its chunks, so the order of the two depends on what a page held.
    assert sorted(names) == sorted(name_of(frame) for frame in everything if frame.kind in ("chunk", "event"))
    assert seen[-1].kind == "terminal"


@pytest.mark.requirement("client:follow:goes-on")
async def test_a_later_follower_gets_what_a_gone_one_did_not(tmp_path: Path) -> None:
    turn = Turn()
    async with asyncio.timeout(30):
        async with (
            streaming_server(tmp_path, _scripted(turn)) as server,
            connected(str(server.base_url)) as connection,
        ):
            call = asyncio.create_task(connection.call(CHAT, INPUT, action_id=ACTION, mode="streaming"))
            await _known(connection)
            turn.let.release()
            cursor = None
            seen = []
            async with aclosing(connection.follow(ACTION)) as frames:
                async for frame in frames:
                    seen.append(name_of(frame))
                    if frame.kind == "position" and "chunk 0" in seen:
                        cursor = frame.cursor
                        break
            turn.let.release()
            turn.let.release()
            assert (await call).outcome == "completed"
        async with (
            streaming_server(tmp_path, _scripted(turn)) as server,
            connected(str(server.base_url)) as connection,
        ):
            rest = await followed(connection, cursor=cursor)
            with pytest.raises(PeerError) as caught:
                await followed(connection, cursor="aev_cursor_99999_none")
    assert [name_of(f) for f in rest if f.kind == "chunk"] == ["chunk 1", "chunk 2"]
    assert caught.value.code == "stream.cursor_expired"


PAGES = {
    None: (page("c1", event(1), event(2), chunk(0, "ä"), chunk(1)), "c1"),
    "c1": (page("c2", event(3), chunk(2)), "c2"),
    "c2": (page("c3", event(4)) + terminal("c3"), None),
    "c3": (terminal("c3"), None),
}
WHOLE = ["evt_1", "evt_2", "chunk 0", "chunk 1", "position c1", "evt_3", "chunk 2", "position c2", "evt_4"]


def _from(cursor: str | None) -> bytes:
    content = b""
    following: str | None = cursor
    while True:
        part, following = PAGES[following]
        content += part
        if following is None:
            return content


@pytest.mark.requirement("client:follow:goes-on")
@pytest.mark.parametrize("breaks", [True, False])
@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
async def test_wherever_the_connection_ends_every_frame_comes_once(breaks: bool, piece_bytes: int) -> None:
    whole = _from(None)
    for cut in range(0, len(whole), 3 if piece_bytes > 1 else 41):
        script: Script

        def answer(cursor: str | None, cut: int = cut) -> tuple[bytes, bool]:
            return (whole[:cut], breaks) if len(script.cursors) == 1 else (_from(cursor), False)  # noqa: B023

        script = Script(answer, piece_bytes=piece_bytes)
        async with connected(transport=script, clock=NoWaiting()) as connection:
            names = [name_of(frame) for frame in await followed(connection)]
        assert names[:-1] in ([*WHOLE, "position c3"], WHOLE), cut
        assert names[-1] == "terminal c3"


@pytest.mark.requirement("client:follow:goes-on")
async def test_the_server_says_when_to_come_again() -> None:
    said = [page("c1", chunk(0)) + failure("runtime.stopping", retryable=True, retry_after_ms=2000), b"retry: 3000\n\n"]

    def answer(cursor: str | None) -> tuple[bytes, bool]:
        return (said.pop(0) if said else terminal("c1")), False

    script, clock = Script(answer), NoWaiting()
    async with connected(transport=script, clock=clock) as connection:
        frames = await followed(connection)
    assert [name_of(frame) for frame in frames] == ["chunk 0", "position c1", "terminal c1"]
    assert script.cursors == [None, "c1", "c1"]
    assert clock.waits == [2.0, 3.0]


@pytest.mark.requirement("client:follow:bounded-tries")
async def test_giving_up_names_the_last_position() -> None:
    def answer(cursor: str | None) -> tuple[bytes, bool]:
        return page("c1", event(1)) if cursor is None else page("c1", event(1)) + b": alive\n\n", False

    script, clock = Script(answer), NoWaiting()
    async with connected(transport=script, clock=clock) as connection:
        with pytest.raises(StreamLost) as caught:
            await followed(connection, patience=Patience(max_tries=6))
    assert (caught.value.cursor, caught.value.details["cursor"], caught.value.uncertain) == ("c1", "c1", False)
    assert clock.waits == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert script.cursors == [None, *["c1"] * 5]


@pytest.mark.requirement("client:follow:bounded-tries")
async def test_a_proxy_that_cuts_long_connections_is_no_failure() -> None:
    class Hours(NoWaiting):
        def monotonic(self) -> float:
            self.waits.append(0)
            return 20.0 * len(self.waits)

    def answer(cursor: str | None) -> tuple[bytes, bool]:
        return (b": keep-alive\n\n" if len(script.cursors) < 30 else terminal("c1")), False

    script = Script(answer)
    async with connected(transport=script, clock=Hours()) as connection:
        assert [frame.kind for frame in await followed(connection)] == ["terminal"]
    assert len(script.cursors) == 30


@pytest.mark.requirement("client:follow:final-refusals")
async def test_nobody_there_is_said_at_once() -> None:
    clock = NoWaiting()
    async with connected("http://127.0.0.1:9", clock=clock) as connection:
        with pytest.raises(ConnectionRefused):
            await followed(connection)
    assert clock.waits == []


_NOT_FOUND = answers.refused("action.not_found", "permanent", 400)


@pytest.mark.requirement("client:follow:final-refusals")
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(_NOT_FOUND, "action.not_found", id="unknown action"),
        pytest.param(Answer(body={"action_events": {}}), "client.undecodable", id="200 JSON"),
        pytest.param(Answer(status=202, body={"status": "accepted"}), "client.undecodable", id="202 JSON"),
        pytest.param(Answer(body=b"<html>", headers={"Content-Type": "text/html"}), "client.undecodable", id="HTML"),
        pytest.param(Answer(status=204, body=b""), "client.undecodable", id="204"),
        pytest.param(Answer(status=302, headers={"Location": "/"}), "client.http_failed", id="redirect"),
        pytest.param(Answer(status=502, body=b"<html>"), "client.http_failed", id="502 HTML"),
        pytest.param(Answer(body=b"data: {\n\n", headers=STREAM), "client.undecodable", id="no JSON"),
        pytest.param(Answer(body=b"data: [1]\n\n", headers=STREAM), "client.undecodable", id="no object"),
        pytest.param(Answer(body=b"data: \xff\n\ndata: 1\n\n", headers=STREAM), "client.undecodable", id="no UTF-8"),
        pytest.param(
            Answer(body=b'data: {"event": {"id": 5}}\n\n', headers=STREAM), "client.undecodable", id="no event id"
        ),
        pytest.param(
            Answer(body=b'data: {"chunk": {"sequence": true}}\n\n', headers=STREAM),
            "client.undecodable",
            id="no sequence",
        ),
        pytest.param(
            Answer(body=failure("stream.cursor_expired", retryable=False), headers=STREAM),
            "stream.cursor_expired",
            id="failure frame",
        ),
        pytest.param(
            Answer(body=b'event: aip.error\ndata: {"error": 5}\n\n', headers=STREAM),
            "client.undecodable",
            id="odd failure",
        ),
    ],
)
async def test_what_can_not_become_better_is_asked_once(answer: Answer, code: str) -> None:
    with running_stub(lambda _: answer) as stub:
        async with connected(stub.url, clock=NoWaiting()) as connection:
            with pytest.raises(ClientFailure) as caught:
                await followed(connection)
    assert (caught.value.code, caught.value.uncertain) == (code, False)
    assert [request.path for request in stub.requests] == ["/aip/v1/actions/act_1/events"]


@pytest.mark.requirement("client:follow:final-refusals")
async def test_a_frame_over_the_limit_is_not_read() -> None:
    script = Script(lambda _: (chunk(0, "x" * 4000), False), piece_bytes=100)
    async with connected(transport=script, max_response_bytes=2000) as connection:
        with pytest.raises(TooLarge):
            await followed(connection)
    assert len(script.cursors) == 1


@pytest.mark.requirement("client:follow:bounded-tries", "client:follow:goes-on")
async def test_a_server_that_makes_events_for_ever_and_no_position_is_left() -> None:
    script: Script

    def answer(cursor: str | None) -> tuple[bytes, bool]:
        return event(1) + event(len(script.cursors)), False

    script = Script(answer)
    async with connected(transport=script, clock=NoWaiting()) as connection:
        with pytest.raises(StreamLost) as caught:
            await followed(connection)
    assert (caught.value.cursor, len(script.cursors)) == (None, 8)


@pytest.mark.requirement("client:follow:goes-on")
async def test_frames_of_kinds_nobody_knows_are_passed_over() -> None:
    news = b"event: aip.stream.news\ndata: {}\n\nid: 5\n\n"
    script = Script(lambda _: (news + chunk(0) + terminal(), False))
    async with connected(transport=script) as connection:
        assert [frame.kind for frame in await followed(connection)] == ["chunk", "terminal"]


@pytest.mark.requirement("client:cancel:route")
async def test_cancelling_answers_the_result(tmp_path: Path) -> None:
    turn = Turn()
    async with (
        asyncio.timeout(30),
        streaming_server(tmp_path, _scripted(turn)) as server,
        connected(str(server.base_url)) as connection,
    ):
        with pytest.raises(PeerError) as caught:
            await connection.cancel(ACTION)
        assert caught.value.code == "resource.not_found"
        call = asyncio.create_task(connection.call(CHAT, INPUT, action_id=ACTION, mode="streaming"))
        await _known(connection)
        turn.let.release()
        async for frame in connection.follow(ACTION):
            if frame.kind == "chunk":
                result = (await connection.cancel(ACTION, "not needed"))["action_result"]
        assert (result["status"], result["output"]["reason"]) == ("cancelled", "not needed")
        assert (await call).result == result
        assert (await connection.cancel(ACTION))["action_result"] == result
