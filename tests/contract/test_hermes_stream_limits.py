"""Streams that are silent, too large, too long, not storable, given up or stopped."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from aip_hermes.contract.handler import Answer, Chunk
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.stream_reading import MAX_FRAME_BYTES
from aip_hermes.sse import encode
from tests.support.hermes_calls import FakeClock, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import (
    RUN_EVENTS,
    TURN,
    Kept,
    StreamReply,
    StreamStub,
    answered,
    failed,
    reply_stream,
    session_stream,
    turn,
)
from tests.support.hermes_stub import Reply, reply_error, reply_json, row_of
from tests.support.skipping_loop import run_skipping


@pytest.mark.requirement("hermes:streams:stored-first")
@pytest.mark.parametrize("row", [TURN, RUN_EVENTS], ids=lambda row: row.name)
async def test_a_chunk_that_cannot_be_stored_leaves_the_stream(row: Operation) -> None:
    kept = Kept(fail_at=2)
    async with StreamStub([row_of("s1")]) as stub:
        reply = reply_stream(session_stream("s1", "a").split(b"event: assistant.completed")[0], behaviour="stall")
        stub.on(row.method, row.path.rsplit("}", 1)[-1], reply)
        async with asyncio.timeout(30):
            failure = failed(await turn(stub, kept=kept, row=row), "stream_publication")
            await stub.left.wait()
    assert failure.uncertain is not row.read_only
    assert not failure.frees_key
    assert len(kept.chunks) == 2
    assert failure.output is not None


@pytest.mark.requirement("hermes:streams:idle")
@pytest.mark.parametrize("pieces", [(), (session_stream("s1", "a")[:300],), (b": keepalive\n\n",)])
def test_silence_ends_at_the_idle_limit(pieces: tuple[bytes, ...]) -> None:
    outcome, stub = run_skipping(answered(reply_stream(*pieces, behaviour="stall"), row=TURN, timeout_s=900))
    failure = failed(outcome, "transport")
    assert (failure.uncertain, failure.details["reason"], failure.details["sent"]) == (True, "idle", True)
    assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:streams:idle")
def test_an_endpoint_that_never_begins_to_answer_ends_at_the_idle_limit() -> None:
    outcome, _ = run_skipping(answered(Reply(behaviour="stall"), row=TURN, timeout_s=900))
    failure = failed(outcome, "transport")
    assert (failure.uncertain, failure.details["reason"]) == (True, "idle")


def heartbeats() -> Iterator[bytes | asyncio.Event]:
    """Yield comments for as long as somebody listens."""
    while True:
        yield b": keepalive\n\n"
        beat = asyncio.Event()
        asyncio.get_running_loop().call_later(2, beat.set)
        yield beat


@pytest.mark.requirement("hermes:streams:idle")
@pytest.mark.parametrize(
    ("timeout_s", "deadline_in_ms", "code"), [(30, None, "transport"), (3_000, 30_000, "deadline_exceeded")]
)
def test_comments_alone_keep_a_stream_open_until_its_time_is_over(
    timeout_s: float, deadline_in_ms: int | None, code: str
) -> None:
    row = TURN.model_copy(update={"idle_timeout_s": 5})
    reply = StreamReply(pieces=heartbeats(), headers={"content-type": "text/event-stream"})
    deadline_ms = None if deadline_in_ms is None else FakeClock().now_ms() + deadline_in_ms
    outcome, _ = run_skipping(answered(reply, row=row, timeout_s=timeout_s, deadline_ms=deadline_ms))
    failure = failed(outcome, code)
    assert failure.uncertain
    assert failure.details.get("reason") in (None, "timeout")


@pytest.mark.requirement("hermes:streams:truncated")
@pytest.mark.parametrize(("allowed", "stays"), [(1, True), (4, True), (6, False)])
async def test_a_stream_is_left_after_as_many_events_as_the_caller_allows(allowed: int, stays: bool) -> None:
    kept = Kept()
    outcome, stub = await answered(reply_stream(session_stream("s1", "a")), kept=kept, values={"max_events": allowed})
    assert len(kept.chunks) == allowed
    assert json.loads(stub.mutations[0].body) == {"message": "hi"}
    if not stays:
        assert isinstance(outcome, Answer)
        return
    failure = failed(outcome, "stream_truncated")
    assert (failure.uncertain, failure.details["max_events"]) == (True, allowed)
    assert failure.output is not None
    assert (failure.output["truncated"], failure.output["terminal"]) == (True, False)


@pytest.mark.requirement("hermes:streams:broken")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (encode("x" * (MAX_FRAME_BYTES + 1), event="assistant.delta"), "sse_frame"),
        (b"data: " + b"x" * (MAX_FRAME_BYTES + 1), "sse_frame"),
        (b"data: \xff\xfe\n\n", "sse_malformed"),
    ],
    ids=["large frame", "endless line", "no UTF-8"],
)
async def test_a_stream_that_cannot_be_read_on_is_uncertain_and_keeps_what_came(bad: bytes, reason: str) -> None:
    begun = session_stream("s1", "a").split(b"event: assistant.completed")[0]
    outcome, _ = await answered(reply_stream(begun, bad, behaviour="stall"))
    failure = failed(outcome, "invalid_response")
    assert (failure.uncertain, failure.details["reason"]) == (True, reason)
    assert failure.output is not None
    assert failure.output["text"] == "a"


_DELTA = encode(json.dumps({"delta": "x" * 60_000}), event="assistant.delta")


def long_stream(mebibytes: int) -> Iterator[bytes]:
    """Yield as many of deltas, then an end."""
    for _ in range(mebibytes * 1_048_576 // len(_DELTA)):
        yield _DELTA
    yield encode("{}", event="run.completed")


@pytest.mark.requirement("hermes:streams:memory")
async def test_a_long_stream_leaves_little_in_memory() -> None:
    class Nobody(Kept):
        async def __call__(self, chunk: Chunk) -> None:
            return

    tracemalloc.start()
    try:
        outcome, _ = await answered(
            StreamReply(pieces=long_stream(60), headers={"content-type": "text/event-stream"}), kept=Nobody()
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Answer)
    assert outcome.output["text_omitted"] > 0
    assert peak < 40 * 1_048_576


@pytest.mark.requirement("hermes:streams:broken")
async def test_a_stream_over_its_limit_is_left() -> None:
    outcome, _ = await answered(StreamReply(pieces=long_stream(68), headers={"content-type": "text/event-stream"}))
    failure = failed(outcome, "invalid_response")
    assert failure.details["reason"] == "sse_stream"


@pytest.mark.requirement("hermes:streams:leaving")
async def test_giving_up_closes_the_connection_and_sends_nothing_more() -> None:
    kept = Kept()
    async with StreamStub([row_of("s1")]) as stub, asyncio.timeout(30):
        stub.on("POST", "/chat/stream", reply_stream(session_stream("s1", "a")[:200], behaviour="stall"))
        going = asyncio.create_task(turn(stub, kept=kept))
        await kept.first.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await stub.left.wait()
    assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:streams:leaving")
@pytest.mark.parametrize(
    ("stream", "said"),
    [("session", "runs on"), ("completions", "interrupt"), ("responses", "may"), ("run", "does not stop the run")],
)
async def test_cancelling_what_cannot_be_stopped_sends_nothing_and_says_what_goes_on(stream: str, said: str) -> None:
    row = TURN.model_copy(update={"stream": stream})
    async with (
        StreamStub([row_of("s1")]) as stub,
        connector_of(endpoint_of(stub.base_url), operations={row.name: row}) as connector,
    ):
        handler, call = handler_of(connector, row.name), call_of("session_chat_stream")
        prepared = await handler.prepare(call, None)
        evidence = await handler.cancel(call, prepared)
    assert evidence["stopped"] is False
    assert said in evidence["note"]
    assert stub.mutations == []


@pytest.mark.requirement("hermes:streams:stop")
@pytest.mark.parametrize(
    ("reply", "stopped", "said"),
    [
        (reply_json({"run_id": "run/1", "status": "stopping"}), True, "took the request"),
        (reply_error(404, "run_not_found"), False, "no such run"),
        (Reply(status=500), False, "remote_temporary"),
        (Reply(behaviour="reset"), False, "transport"),
    ],
)
async def test_cancelling_the_events_of_a_run_stops_the_run_once(reply: Reply, stopped: bool, said: str) -> None:
    async with (
        StreamStub() as stub,
        connector_of(endpoint_of(stub.base_url), operations={"run_events": RUN_EVENTS}) as connector,
    ):
        stub.on("POST", "/stop", reply)
        handler, call = handler_of(connector, "run_events"), call_of("run_events", {"run_id": "run/1"})
        evidence = await handler.cancel(call, await handler.prepare(call, None))
    assert evidence["stopped"] is stopped
    assert said in evidence["note"]
    assert [(request.method, request.target) for request in stub.arrived] == [("POST", "/v1/runs/run%2F1/stop")]
