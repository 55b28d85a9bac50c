"""Streams of events over a real connection: cut anyhow, of another type, ended in each way, moved elsewhere."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer
from aip_hermes.contract.operation import Operation
from aip_hermes.sse import encode
from tests.support.hermes_calls import FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import (
    RUN_EVENTS,
    TURN,
    Kept,
    StreamStub,
    answered,
    failed,
    reply_stream,
    session_stream,
    turn,
)
from tests.support.hermes_stub import KEY, Reply, reply_error, reply_json, row_of


@pytest.mark.requirement("hermes:streams:one-send", "hermes:streams:turn-evidence", "hermes:streams:chunks")
async def test_a_turn_is_asked_for_once_and_read_to_its_end() -> None:
    kept = Kept()
    async with StreamStub([row_of("s1")]) as stub:
        outcome = await turn(stub, kept=kept)
    assert isinstance(outcome, Answer)
    assert [request.headers["accept"] for request in stub.mutations] == ["text/event-stream"]
    assert (outcome.text, outcome.cancelled) == ("Echo", False)
    assert kept.kinds == ["data", "data", "data", "thought", "data", "done"]
    assert [chunk.text for chunk in kept.chunks] == [None, None, "Echo", None, None, None]
    assert {
        name: outcome.output[name] for name in ("endpoint_id", "operation", "http_status", "session_id", "_aip")
    } == {
        "endpoint_id": "primary",
        "operation": "session_chat_stream",
        "http_status": 200,
        "session_id": "s1",
        "_aip": {
            "session": {"requested": "s1", "effective": "s1", "reason": "none"},
            "turn": {"messages_before": 2, "messages_after": 4, "persisted": "yes"},
            "session_key": "absent",
        },
    }


@pytest.mark.requirement("hermes:streams:effective", "hermes:streams:turn-evidence")
async def test_a_turn_that_moved_its_session_says_where_to_and_why() -> None:
    moved = "20261130_205620_7be19a"
    async with StreamStub([row_of("s1")]) as stub:

        def rotate(_request: object) -> Reply:
            stub.rows["s1"] |= {"ended_at": 1796072180.0, "end_reason": "compression"}
            stub.rows[moved] = row_of(moved, parent_session_id="s1", message_count=8)
            return reply_stream(session_stream("s1", "reply", ends=moved))

        stub.on("POST", "/chat/stream", rotate)
        outcome = await turn(stub)
    assert isinstance(outcome, Answer)
    assert outcome.output["session_id"] == moved
    assert outcome.output["_aip"]["session"] == {"requested": "s1", "effective": moved, "reason": "compression"}


@pytest.mark.requirement("hermes:streams:turn-evidence")
async def test_an_end_without_text_is_a_success_that_says_so() -> None:
    outcome, _ = await answered(reply_stream(session_stream("s1")))
    assert isinstance(outcome, Answer)
    assert (outcome.output["terminal"], outcome.output["text"]) == (True, "")
    assert outcome.output["_aip"]["turn"]["warning"].startswith("no visible output")


_CUT = session_stream("s1", "H\u2028\u00e9", "llo\u0085 \U0001f600")


@pytest.mark.requirement("hermes:streams:any-cut")
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
async def test_every_cut_gives_the_same_chunks_and_text(ends: str, size: int) -> None:
    stream = b"\xef\xbb\xbf: hello\n\n" + _CUT
    stream = stream.replace(b"\n", ends.encode())
    kept = Kept()
    outcome, _ = await answered(reply_stream(*(stream[i : i + size] for i in range(0, len(stream), size))), kept=kept)
    assert isinstance(outcome, Answer)
    assert outcome.text == "H\u2028\u00e9llo\u0085 \U0001f600"
    assert kept.kinds == ["data", "data", "data", "thought", "data", "thought", "data", "done"]


@pytest.mark.requirement("hermes:streams:no-end-no-success", "hermes:streams:broken")
@pytest.mark.parametrize("behaviour", ["answer", "reset"])
async def test_a_stream_cut_behind_any_frame_is_no_success_and_keeps_its_text(behaviour: str) -> None:
    frames = [frame + b"\n\n" for frame in session_stream("s1", "a", "b").split(b"\n\n")[:-1]]
    end = next(i for i, frame in enumerate(frames) if frame.startswith(b"event: run.completed"))
    async with StreamStub([row_of("s1")]) as stub:
        for count in range(end + 1):
            kept = Kept()
            half = frames[count][: len(frames[count]) // 2]
            stub.on("POST", "/chat/stream", reply_stream(*frames[:count], half, behaviour=behaviour), times=1)
            failure = failed(await turn(stub, kept=kept), "stream_incomplete" if behaviour == "answer" else "transport")
            assert failure.uncertain
            assert not failure.retryable
            assert "`s1`" in failure.message
            assert failure.output is not None
            assert failure.output["terminal"] is False
            assert failure.output["text"] == "".join(chunk.text or "" for chunk in kept.chunks)
            assert kept.kinds.count("error") == (behaviour == "answer")
            assert failure.details["reconciliation"]["messages_before"] == 2
        assert len(stub.mutations) == end + 1


@pytest.mark.requirement("hermes:streams:first-ending")
async def test_the_connection_is_left_at_the_ending_event() -> None:
    stream = session_stream("s1", "a").split(b"event: done")[0]
    async with StreamStub([row_of("s1")]) as stub:
        stub.on("POST", "/chat/stream", reply_stream(stream, behaviour="stall"))
        async with asyncio.timeout(30):
            outcome = await turn(stub)
            await stub.left.wait()
    assert isinstance(outcome, Answer)


@pytest.mark.requirement("hermes:streams:not-a-stream", "hermes:streams:one-send")
@pytest.mark.parametrize(
    "reply",
    [
        reply_json({"object": "hermes.session.chat.completion"}),
        reply_json({"run_id": "run_1"}, status=202),
        Reply(status=204),
        Reply(body=b"<html>login</html>", headers={"content-type": "text/html"}),
        Reply(body=b"data: x\n\n"),
        Reply(body=session_stream("s1"), headers={"content-type": "text/event-stream"}, status=203),
        Reply(body=b"x", headers={"content-type": "text/event-stream", "content-encoding": "gzip"}),
        reply_stream(b"{}", behaviour="stall", headers={"content-type": "application/json"}),
    ],
    ids=["200 JSON", "202 JSON", "204", "HTML", "no type", "203", "gzip", "endless JSON"],
)
async def test_what_is_no_stream_is_said_without_reading_it(reply: Reply) -> None:
    kept = Kept()
    async with asyncio.timeout(30):
        outcome, stub = await answered(reply, kept=kept)
    failure = failed(outcome, "not_a_stream")
    assert failure.uncertain
    assert "session_chat_stream" in failure.message
    assert failure.details["remote_status"] == reply.status
    assert (kept.chunks, failure.output, len(stub.mutations)) == ([], None, 1)


@pytest.mark.requirement("hermes:streams:not-a-stream")
async def test_a_refusal_keeps_its_own_code() -> None:
    outcome, stub = await answered(reply_error(503, "gateway_draining", retry_after="1"))
    failure = failed(outcome, "remote_temporary")
    assert (failure.uncertain, failure.retryable, failure.retry_after_ms) == (False, True, 1000)
    assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:streams:stored-first")
async def test_a_chunk_is_stored_while_the_stream_is_still_open() -> None:
    frames = [frame + b"\n\n" for frame in session_stream("s1", "a").split(b"\n\n")[:-1]]
    kept = Kept()
    async with asyncio.timeout(30):  # the endpoint goes on only when the first chunk has been stored
        outcome, _ = await answered(reply_stream(frames[0], kept.first, *frames[1:]), kept=kept)
    assert isinstance(outcome, Answer)


@pytest.mark.requirement("hermes:streams:failed")
@pytest.mark.parametrize("row", [TURN, RUN_EVENTS], ids=lambda row: row.name)
async def test_a_failed_turn_says_why_without_credentials(row: Operation) -> None:
    text = f"provider refused Bearer {KEY} at sk-live-0123456789abcdef " + "x" * 500
    kept = Kept()
    outcome, _ = await answered(
        reply_stream(encode(json.dumps({"event": "error", "message": text}), event="error")), row=row, kept=kept
    )
    failure = failed(outcome, "stream_failed")
    assert failure.uncertain is not row.read_only
    assert (failure.details["event"], kept.kinds) == ("error", ["error"])
    message = failure.details["provider"]["message"]
    assert message.startswith("provider refused")
    assert len(message) <= 300
    assert "sk-live" not in message


@pytest.mark.requirement("hermes:streams:cancelled")
async def test_a_cancelled_run_is_a_cancelled_answer() -> None:
    outcome, _ = await answered(
        reply_stream(encode('{"event": "message.delta", "delta": "a"}'), encode('{"event": "run.cancelled"}')),
        row=RUN_EVENTS,
    )
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.text, outcome.output["terminal"]) == (True, "a", True)


@pytest.mark.requirement("hermes:streams:large-ending", "hermes:streams:effective")
async def test_a_finished_turn_is_not_lost_for_a_large_repeat_of_itself() -> None:
    whole = session_stream("s1", "a", ends="20261130_205620_7be19a")
    begun, _, _ = whole.partition(b"event: run.completed")
    large = encode(json.dumps({"messages": ["x" * 3_000_000]}), event="run.completed")
    pieces = [large[i : i + 100_000] for i in range(0, len(large), 100_000)]
    outcome, _ = await answered(reply_stream(begun, *pieces))
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.output["session_id"]) == ("a", "20261130_205620_7be19a")
    assert outcome.output["events"][-1]["data"]["_aip"]["oversize"]["bytes"] == len(large) - len(
        b"event: run.completed\ndata: \n\n"
    )


@pytest.mark.requirement("hermes:streams:one-send")
async def test_the_events_of_a_run_are_asked_for_once_since_reading_consumes_them() -> None:
    outcome, stub = await answered(Reply(status=500), row=RUN_EVENTS, clock=FakeClock())
    failure = failed(outcome, "remote_temporary")
    assert (failure.uncertain, len(stub.reads)) == (False, 1)


@pytest.mark.requirement("hermes:streams:large-ending")
async def test_a_run_is_not_lost_either_where_the_name_stands_in_the_data() -> None:
    large = encode(json.dumps({"event": "run.completed", "run_id": "run_1", "output": "x" * 1_200_000}))
    delta = encode(json.dumps({"event": "message.delta", "delta": "xx"}))
    outcome, _ = await answered(
        reply_stream(delta, *(large[i : i + 65_536] for i in range(0, len(large), 65_536))), row=RUN_EVENTS
    )
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.output["terminal"]) == ("xx", True)


@pytest.mark.requirement("hermes:streams:effective")
@pytest.mark.parametrize(
    ("rows", "session"),
    [
        ([], {"requested": "s1", "effective": "s1", "reason": "none"}),
        (
            ["20261130_205620_7be19a"],
            {"requested": "s1", "effective": "20261130_205620_7be19a", "reason": "compression"},
        ),
        (["chosen"], {"requested": "s1", "effective": None, "reason": "unknown"}),
    ],
    ids=["stayed", "moved", "not proven"],
)
async def test_a_stream_whose_header_names_where_it_began_is_read_for_where_it_ended(
    rows: list[str], session: dict[str, Any]
) -> None:
    frames = [encode(json.dumps({"choices": [{"delta": {"content": "hi"}}]})), encode("[DONE]")]
    reply = reply_stream(*frames, headers={"x-hermes-session-id": "s1"})
    async with StreamStub([row_of("s1")]) as stub:

        def moves(_request: object) -> Reply:
            for name in rows:
                stub.rows["s1"] |= {"ended_at": 1796072180.0, "end_reason": "compression"}
                stub.rows[name] = row_of(name, parent_session_id="s1")
                resolved = {"object": "list", "session_id": name, "data": []}
                stub.on("GET", "/s1/messages", reply_json(resolved))
            return reply

        stub.on("POST", "/v1/chat/completions", moves)
        operations = {"chat_stream": load_operations()["chat_stream"]}
        async with connector_of(endpoint_of(stub.base_url), operations=operations) as connector:
            outcome = await attempt(handler_of(connector, "chat_stream"), call_of("chat_stream"))
    assert isinstance(outcome, Answer)
    assert outcome.output["_aip"]["session"] == session
    assert stub.mutations[0].headers["x-hermes-session-id"] == "s1"
    assert json.loads(stub.mutations[0].body)["stream"] is True
