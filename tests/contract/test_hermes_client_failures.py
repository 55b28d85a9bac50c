"""What answers and broken connections prove to the client of an endpoint, and its streamed turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import ClientFailure, HermesClient, HermesRefused, NoAnswer
from tests.support.client_site import sid
from tests.support.client_stub_server import Answer, Request
from tests.support.hermes_clients import SESSION, embedded, stub


def error(status: int, code: str | None = None, **headers: str) -> Answer:
    return Answer(status=status, body={"error": {"message": "as the test wants", "code": code}}, headers=headers)


FAILURES = [
    (error(404, "session_not_found"), False, False),
    (error(401, "invalid_api_key"), False, False),
    (error(429, "rate_limit_exceeded"), False, True),
    (error(503, "gateway_draining"), False, True),
    (error(503, "session_db_unavailable"), False, True),
    (error(409, "turn_in_progress"), False, True),
    (error(409, "session_exists"), False, False),
    (error(503), True, False),
    (error(502, "model_failed"), True, False),
    (Answer(status=500, body=b"500 Internal Server Error"), True, False),
    (Answer(status=504, body=b"<html>", headers={"Content-Type": "text/html"}), True, False),
    (Answer(status=403, body=b"<html>"), False, False),
    (Answer(status=404, body=b"<html>gone</html>", headers={"Content-Type": "text/html"}), True, False),
    (Answer(body=b""), True, False),
    (Answer(body=b"[]"), True, False),
    (Answer(body={"object": "something else"}), True, False),
    (Answer(fate="cut"), True, False),
    (Answer(fate="torn"), True, False),
]


@pytest.mark.requirement("endpoint:certain-means-proven", "endpoint:one-send")
@pytest.mark.parametrize(("answer", "uncertain", "retryable"), FAILURES)
async def test_what_an_answer_proves_about_a_turn(answer: Answer, uncertain: bool, retryable: bool) -> None:
    async with stub(answer) as (hermes, server):
        with pytest.raises(ClientFailure) as caught:
            await hermes.chat("hi", session_id=sid("s1"))
        assert len(server.requests) == 1
    failed = caught.value
    assert (failed.uncertain, failed.retryable) == (uncertain, retryable)
    assert failed.details["session_id"] == "s1"
    assert failed.next_step != ""
    assert ("s1" in failed.next_step) is uncertain


@pytest.mark.requirement("endpoint:certain-means-proven")
@pytest.mark.parametrize(("code", "uncertain"), [("invalid_title", True), (None, True), ("invalid_session_id", False)])
async def test_a_fork_that_is_refused_may_be_half_done(code: str | None, uncertain: bool) -> None:
    async with stub(error(400, code)) as (hermes, _):
        with pytest.raises(HermesRefused) as caught:
            await hermes.fork(session_id=sid("s1"), new_session_id=sid("f1"))
        assert (caught.value.uncertain, caught.value.hermes_code) == (uncertain, code)
        with pytest.raises(HermesRefused) as caught:
            await hermes.patch(session_id=sid("s1"), title="in use")
        assert caught.value.uncertain is False


@pytest.mark.requirement("endpoint:one-send", "endpoint:certain-means-proven")
@pytest.mark.parametrize("answer", [error(503, "gateway_draining"), Answer(fate="cut"), error(500), error(429)])
async def test_a_read_is_tried_again(answer: Answer) -> None:
    def flaky(request: Request) -> Answer:
        return Answer(body={"session": SESSION}) if len(server.requests) == 3 else answer

    async with stub(flaky) as (hermes, server):
        assert (await hermes.get(session_id=sid("s1"))).id == "s1"
        assert len(server.requests) == 3
    async with stub(answer) as (hermes, server):
        with pytest.raises(ClientFailure) as caught:
            await hermes.messages(session_id=sid("s1"))
        assert (len(server.requests), caught.value.uncertain) == (3, False)


@pytest.mark.requirement("endpoint:certain-means-proven")
async def test_nobody_there_is_certain_and_no_text_of_the_endpoint_shows_a_credential() -> None:
    async with HermesClient(base_url="http://127.0.0.1:9", read_tries=1) as hermes:
        with pytest.raises(ClientFailure) as caught:
            await hermes.chat("hi", session_id=sid("s1"))
    assert (caught.value.uncertain, caught.value.retryable) == (False, True)
    told = {"error": {"message": "bad key Bearer sk-live-0123456789", "code": "invalid_api_key"}}
    async with stub(Answer(status=401, body=told)) as (hermes, _):
        with pytest.raises(HermesRefused) as refused:
            await hermes.get(session_id=sid("s1"))
    assert "0123456789" not in str(refused.value)


def event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'session_id': 's1', **data})}\n\n".encode()


def stream(*frames: bytes, **answer: Any) -> Answer:
    return Answer(body=b"".join(frames), headers={"Content-Type": "text/event-stream; charset=utf-8"}, **answer)


@pytest.mark.requirement("endpoint:stream")
async def test_a_streamed_turn_hands_out_its_events(tmp_path: Path) -> None:
    async with embedded(tmp_path) as (hermes, _):
        await hermes.create(session_id=sid("s1"))
        events = [each async for each in hermes.chat_stream("hi", session_id=sid("s1"))]
        assert "".join(each.delta for each in events) == "Reply 1"
        assert [each.name for each in events if each.terminal] == ["run.completed"]
        assert events[-1].terminal
        assert {each.session_id for each in events} == {"s1"}
        with pytest.raises(HermesRefused) as caught:
            _ = [each async for each in hermes.chat_stream("hi", session_id=sid("nobody"))]
        assert (caught.value.hermes_code, caught.value.uncertain) == ("session_not_found", False)


@pytest.mark.requirement("endpoint:stream", "endpoint:one-send")
@pytest.mark.parametrize(
    "answer",
    [
        stream(event("run.started"), event("assistant.delta", delta="Ha")),
        stream(event("run.started"), fate="torn"),
        stream(event("run.started"), b"event: assistant.delta\ndata: no json\n\n"),
        stream(event("run.started"), b"event: assistant.delta\ndata: \xff\n\n"),
        Answer(body={"object": "no stream"}),
        Answer(status=502, body=b"<html>"),
    ],
)
async def test_a_turn_whose_stream_breaks_is_uncertain_and_not_repeated(answer: Answer) -> None:
    async with stub(answer) as (hermes, server):
        with pytest.raises(ClientFailure) as caught:
            _ = [each async for each in hermes.chat_stream("hi", session_id=sid("s1"))]
        assert len(server.requests) == 1
    assert caught.value.uncertain
    assert "s1" in caught.value.next_step


@pytest.mark.requirement("endpoint:stream")
async def test_a_failed_turn_and_a_moved_one_say_so() -> None:
    async with stub(stream(event("run.started"), event("error", message="no agent"))) as (hermes, _):
        events = [each async for each in hermes.chat_stream("hi", session_id=sid("s1"))]
    assert (events[-1].terminal, events[-1].failed) == (True, True)
    moved = stream(event("run.started"), event("run.completed", session_id="20300101_000000_abcdef"), event("done"))
    async with stub(moved) as (hermes, _):
        events = [each async for each in hermes.chat_stream("hi", session_id=sid("s1"))]
    assert [each.session_id for each in events] == ["s1", "20300101_000000_abcdef"]


@pytest.mark.requirement("endpoint:stream")
async def test_a_silent_turn_is_left_and_uncertain() -> None:
    async with stub(stream(event("run.started"), fate="held")) as (hermes, _):
        with pytest.raises(NoAnswer) as caught:
            _ = [each async for each in hermes.chat_stream("hi", session_id=sid("s1"), idle_s=0.2)]
    assert caught.value.uncertain
