"""Faults on demand, as a client behind a real connection meets them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from aip_hermes.embedded.faults import FAULTS
from aip_hermes.embedded.faults.exchange import LATE_S, LOCKED_S
from tests.support.embedded_endpoint import GatedModel, RecordingModel, Running, code_of, endpoint, served

TURN = ["one", "Reply 1"]


class HeldClock:
    """The real time; who is late, or holds a lock, waits for `gate`."""

    def __init__(self) -> None:
        self.asleep = asyncio.Event()
        self.gate = asyncio.Event()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        if seconds not in (LATE_S, LOCKED_S):
            await asyncio.Event().wait()
        self.asleep.set()
        await self.gate.wait()


async def stored(hermes: Running) -> list[str]:
    return [row["content"] for row in (await hermes.messages("s"))[1]]


@pytest.mark.parametrize(
    ("fault", "left"),
    [("lost-request", []), ("lost-answer", TURN), ("reset-mid-body", TURN)],
)
@pytest.mark.requirement("embedded:faults:connection", "embedded:faults:counted")
async def test_the_connection_ends_and_the_next_chat_is_answered(tmp_path: Path, fault: str, left: list[str]) -> None:
    async with (
        served(tmp_path, model=RecordingModel(), faults=[f"{fault}:session_chat:1"]) as hermes,
        asyncio.timeout(30),
    ):
        await hermes.create("s")
        with pytest.raises(httpx.TransportError):
            await hermes.chat("s", "one")
        assert await stored(hermes) == left
        assert (await hermes.chat("s", "two")).status_code == 200


@pytest.mark.requirement("embedded:faults:connection")
async def test_an_answer_is_cut_after_its_status(tmp_path: Path) -> None:
    async with served(tmp_path, faults=["reset-mid-body:session_chat:1"]) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        async with hermes.client.stream("POST", "/api/sessions/s/chat", json={"message": "one"}) as answer:
            assert (answer.status_code, int(answer.headers["content-length"]) > 0) == (200, True)
            with pytest.raises(httpx.RemoteProtocolError):
                await answer.aread()


@pytest.mark.requirement("embedded:faults:connection")
async def test_a_gateway_answers_with_a_page_for_what_was_carried_out(tmp_path: Path) -> None:
    async with endpoint(tmp_path, faults=["html-502:session_create:1"]) as hermes:
        answer = await hermes.client.post("/api/sessions", json={"id": "s"})
        assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html; charset=utf-8")
        assert (await hermes.session("s"))["id"] == "s"


@pytest.mark.requirement("embedded:faults:late")
async def test_a_late_answer_is_carried_out_before(tmp_path: Path) -> None:
    clock = HeldClock()
    async with (
        served(tmp_path, model=RecordingModel(), faults=["late-answer:session_chat:1"], clock=clock) as hermes,
        asyncio.timeout(30),
    ):
        await hermes.create("s")
        waiting = asyncio.create_task(hermes.chat("s", "one"))
        await clock.asleep.wait()
        assert (await stored(hermes), waiting.done()) == (TURN, False)
        clock.gate.set()
        assert (await waiting).json()["message"]["content"] == "Reply 1"


@pytest.mark.requirement("embedded:faults:late")
async def test_a_late_effect_lands_when_the_client_is_gone(tmp_path: Path) -> None:
    clock, model = HeldClock(), GatedModel()
    async with (
        served(tmp_path, model=model, faults=["late-effect:session_chat:1"], clock=clock) as hermes,
        asyncio.timeout(30),
    ):
        await hermes.create("s")
        with pytest.raises(httpx.TransportError):
            await hermes.chat("s", "one")
        await clock.asleep.wait()
        assert await stored(hermes) == []
        clock.gate.set()
        await model.asked.wait()
        model.gate.set()
        # Turns follow each other: this one is answered when the late one is stored.
        assert (await hermes.chat("s", "two")).status_code == 200
        assert (await stored(hermes))[:2] == TURN


@pytest.mark.requirement("embedded:faults:streams")
async def test_a_stalled_stream_says_one_event_and_its_turn_is_stored(tmp_path: Path) -> None:
    async with (
        served(tmp_path, model=RecordingModel(), faults=["stalled-stream:session_chat_stream:1"]) as hermes,
        asyncio.timeout(30),
    ):
        await hermes.create("s")
        patience = httpx.Timeout(30, read=0.5)
        async with hermes.client.stream(
            "POST", "/api/sessions/s/chat/stream", json={"message": "one"}, timeout=patience
        ) as answer:
            pieces = answer.aiter_raw()
            heard = await anext(pieces)
            with pytest.raises(httpx.ReadTimeout):
                await anext(pieces)
        assert (heard.count(b"\n\n"), heard.startswith(b"event: run.started")) == (1, True)
        assert (await hermes.chat("s", "two")).status_code == 200
        assert (await stored(hermes))[:2] == TURN


@pytest.mark.requirement("embedded:faults:streams")
async def test_a_stream_without_its_terminal_event_ends_in_good_order(tmp_path: Path) -> None:
    fault = "no-terminal-event:session_chat_stream:1"
    async with served(tmp_path, model=RecordingModel(), faults=[fault]) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        told = await hermes.client.post("/api/sessions/s/chat/stream", json={"message": "one"})
        names = [line.removeprefix("event: ") for line in told.text.splitlines() if line.startswith("event: ")]
        assert (names[:2], names[-1]) == (["run.started", "message.started"], "assistant.completed")
        assert "run.completed" not in names
        assert await stored(hermes) == TURN


@pytest.mark.requirement("embedded:faults:streams")
async def test_the_events_of_a_run_end_without_its_end(tmp_path: Path) -> None:
    async with served(tmp_path, faults=["no-terminal-event:run_events:1"]) as hermes, asyncio.timeout(30):
        run_id = (await hermes.client.post("/v1/runs", json={"input": "one"})).json()["run_id"]
        told = (await hermes.client.get(f"/v1/runs/{run_id}/events")).text
        assert ("message.delta" in told, "run.completed" in told) == (True, False)


@pytest.mark.parametrize("operation", ["session_create", "session_chat", "session_fork", "session_delete"])
@pytest.mark.requirement("embedded:faults:locked")
async def test_a_refused_database_is_503_and_changes_nothing(tmp_path: Path, operation: str) -> None:
    requests = {
        "session_create": ("POST", "/api/sessions", {"id": "t"}),
        "session_chat": ("POST", "/api/sessions/s/chat", {"message": "one"}),
        "session_fork": ("POST", "/api/sessions/s/fork", {"id": "t"}),
        "session_delete": ("DELETE", "/api/sessions/s", None),
    }
    method, path, body = requests[operation]
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        before = await hermes.session("s")
    async with endpoint(tmp_path, faults=[f"refused-database:{operation}:1"]) as hermes:
        answer = await hermes.client.request(method, path, json=body)
        assert code_of(answer) == (503, "session_db_unavailable")
        assert await hermes.session("s") == before
        assert await hermes.db.get_session("t") is None
        assert (await hermes.client.request(method, path, json=body)).is_success


@pytest.mark.parametrize(
    ("operation", "path", "body"),
    [("session_create", "/api/sessions", {"id": "t"}), ("session_fork", "/api/sessions/s/fork", {"id": "t"})],
)
@pytest.mark.requirement("embedded:faults:locked")
async def test_a_write_waits_for_a_locked_database_and_reads_do_not(
    tmp_path: Path, operation: str, path: str, body: dict[str, str]
) -> None:
    clock = HeldClock()
    async with (
        endpoint(tmp_path, faults=[f"locked-database:{operation}:1"], clock=clock) as hermes,
        asyncio.timeout(30),
    ):
        await hermes.create("s") if operation != "session_create" else await hermes.db.create_session("s", "api_server")
        waiting = asyncio.create_task(hermes.client.post(path, json=body))
        await clock.asleep.wait()
        with (
            closing(sqlite3.connect(hermes.db.path, timeout=0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        assert (await hermes.session("s"))["id"] == "s"
        assert (await hermes.db.get_session("t"), waiting.done()) == (None, False)
        clock.gate.set()
        assert (await waiting).status_code == 201
        assert (await hermes.session("t"))["id"] == "t"


@pytest.mark.requirement("embedded:faults:locked")
async def test_a_read_meets_a_locked_database_unharmed_and_the_lock_is_gone_with_its_request(tmp_path: Path) -> None:
    clock = HeldClock()
    async with endpoint(tmp_path, faults=["locked-database:session:1"], clock=clock) as hermes, asyncio.timeout(30):
        await hermes.create("s")
        assert (await hermes.session("s"))["id"] == "s"
        assert (await hermes.create("t"))["id"] == "t"


@pytest.mark.requirement("embedded:faults:counted", "embedded:compression:in-place")
async def test_one_request_meets_a_compression_and_another_fault(tmp_path: Path) -> None:
    model = RecordingModel()
    async with served(tmp_path, model=model, faults=["compress-in-place+lost-answer:session_chat:1"]) as hermes:
        await hermes.create("s")
        for number in range(4):
            await hermes.db.append_message("s", "user", f"question {number}")
            await hermes.db.append_message("s", "assistant", f"answer {number}", finish_reason="stop")
        with pytest.raises(httpx.TransportError):
            await hermes.chat("s", "one")
        assert (await stored(hermes))[-2:] == TURN
        assert any(text.startswith("[CONTEXT COMPACTION") for text in await stored(hermes))


@pytest.mark.requirement("embedded:faults:counted")
async def test_faults_meet_their_operation_in_order_and_nobody_without_the_key(tmp_path: Path) -> None:
    faults = ["html-502:session:2", "refused-database:session:1"]
    async with endpoint(tmp_path, faults=faults) as hermes:
        await hermes.create("s")
        stranger = await hermes.client.get("/api/sessions/s", headers={"Authorization": "Bearer wrong"})
        assert stranger.status_code == 401
        assert (await hermes.client.get("/api/sessions/s/messages")).status_code == 200
        told = [(await hermes.client.get("/api/sessions/s")).status_code for _ in range(4)]
        assert told == [502, 502, 503, 200]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense:session_chat:1", "lost-answer"),
        ("lost-answer", "session_chat"),
        ("lost-answer:nonsense:1", "session_chat"),
        ("stalled-stream:session_chat:1", "session_chat_stream"),
        ("lost-answer:session_chat", "lost-answer:session_chat:1"),
        ("lost-answer:session_chat:0", "lost-answer:session_chat:1"),
        ("lost-answer:session_chat:-1", "lost-answer:session_chat:1"),
        ("lost-answer+compress:session_chat:1", "first"),
        ("compress+nonsense:session_chat:1", "lost-answer"),
        ("compress+lost-answer:session_fork:1", "session_chat"),
        ("compress+compress-in-place:session_chat:1", "first"),
        ("lost-answer:session_chat:1:1", "lost-answer:session_chat:1"),
        ("lost-answer:session_chat:99999999999999999999", "1000000"),
    ],
)
@pytest.mark.requirement("embedded:faults:names")
async def test_what_can_t_be_is_refused_with_what_there_is(tmp_path: Path, text: str, told: str) -> None:
    assert "lost-answer" in FAULTS
    with pytest.raises(ValueError, match=told):
        async with endpoint(tmp_path, faults=[text]):
            pass
