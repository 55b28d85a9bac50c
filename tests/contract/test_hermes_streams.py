"""Streams of events over a real connection: cut, split, stalled, of another type, too large, left."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from aip_hermes.contract import load_operations
from aip_hermes.contract.handler import Answer, Chunk
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.stream_reading import MAX_FRAME_BYTES
from aip_hermes.sse import encode
from tests.support.hermes_calls import FakeClock, attempt, call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_streams import StreamReply, StreamStub, reply_stream, session_stream
from tests.support.hermes_stub import KEY, Reply, reply_error, reply_json, row_of

_CODE = "connector.hermes_agent."
_TURN = load_operations()["session_chat_stream"]
_RUN_EVENTS = load_operations()["run_events"]


class Kept:
    """Chunks in the order in which they were published. fail_at: the chunk whose storing fails."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.chunks: list[Chunk] = []
        self.first = asyncio.Event()
        self._fail_at = fail_at

    async def __call__(self, chunk: Chunk) -> None:
        if len(self.chunks) == self._fail_at:
            raise ActionFailed("the disk is full")
        self.chunks.append(chunk)
        self.first.set()

    @property
    def kinds(self) -> list[str]:
        return [chunk.kind for chunk in self.chunks]


async def turn(
    stub: StreamStub,
    *,
    kept: Kept | None = None,
    row: Operation = _TURN,
    values: Mapping[str, Any] | None = None,
    timeout_s: float = 30.0,
    clock: FakeClock | None = None,
    deadline_ms: int | None = None,
) -> Answer | ActionFailed:
    endpoint = endpoint_of(stub.base_url, turn_timeout_s=timeout_s)
    given = {"session_id": "s1", "message": "hi"} if row is _TURN or row.name == _TURN.name else {"run_id": "run_1"}
    async with connector_of(endpoint, operations={row.name: row}, clock=clock) as connector:
        return await attempt(
            handler_of(connector, row.name),
            call_of(row.name, given | dict(values or {}), deadline_ms=deadline_ms),
            publish=kept or Kept(),
        )


async def answered(reply: Reply, **settings: Any) -> tuple[Answer | ActionFailed, StreamStub]:
    async with StreamStub([row_of("s1")]) as stub:
        stub.on("POST", "/chat/stream", reply)
        stub.on("GET", "/events", reply)
        return await turn(stub, **settings), stub


def failed(outcome: Answer | ActionFailed, code: str) -> ActionFailed:
    assert isinstance(outcome, ActionFailed)
    assert outcome.code == _CODE + code
    assert outcome.details["uncertain_outcome"] is outcome.uncertain
    assert KEY not in outcome.message + repr(outcome.details)
    return outcome


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
        async with asyncio.timeout(5):
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
    async with asyncio.timeout(5):
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
    async with asyncio.timeout(5):  # the endpoint goes on only when the first chunk has been stored
        outcome, _ = await answered(reply_stream(frames[0], kept.first, *frames[1:]), kept=kept)
    assert isinstance(outcome, Answer)


@pytest.mark.requirement("hermes:streams:stored-first")
@pytest.mark.parametrize("row", [_TURN, _RUN_EVENTS], ids=lambda row: row.name)
async def test_a_chunk_that_cannot_be_stored_leaves_the_stream(row: Operation) -> None:
    kept = Kept(fail_at=2)
    async with StreamStub([row_of("s1")]) as stub:
        reply = reply_stream(session_stream("s1", "a").split(b"event: assistant.completed")[0], behaviour="stall")
        stub.on(row.method, row.path.rsplit("}", 1)[-1], reply)
        async with asyncio.timeout(5):
            failure = failed(await turn(stub, kept=kept, row=row), "stream_publication")
            await stub.left.wait()
    assert failure.uncertain is not row.read_only
    assert not failure.frees_key
    assert len(kept.chunks) == 2
    assert failure.output is not None


@pytest.mark.requirement("hermes:streams:idle")
@pytest.mark.parametrize("pieces", [(), (session_stream("s1", "a")[:300],), (b": keepalive\n\n",)])
async def test_silence_ends_at_the_idle_limit(pieces: tuple[bytes, ...]) -> None:
    row = _TURN.model_copy(update={"idle_timeout_s": 0.1})
    async with asyncio.timeout(5):
        outcome, stub = await answered(reply_stream(*pieces, behaviour="stall"), row=row)
    failure = failed(outcome, "transport")
    assert (failure.uncertain, failure.details["reason"], failure.details["sent"]) == (True, "idle", True)
    assert len(stub.mutations) == 1


@pytest.mark.requirement("hermes:streams:idle")
async def test_an_endpoint_that_never_begins_to_answer_ends_at_the_idle_limit() -> None:
    row = _TURN.model_copy(update={"idle_timeout_s": 0.1})
    async with asyncio.timeout(5):
        outcome, _ = await answered(Reply(behaviour="stall"), row=row)
    failure = failed(outcome, "transport")
    assert (failure.uncertain, failure.details["reason"]) == (True, "idle")


def heartbeats() -> Iterator[bytes | asyncio.Event]:
    """Yield comments for as long as somebody listens."""
    while True:
        yield b": keepalive\n\n"
        beat = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, beat.set)
        yield beat


@pytest.mark.requirement("hermes:streams:idle")
@pytest.mark.parametrize(
    ("timeout_s", "deadline_in_ms", "code"), [(0.3, None, "transport"), (30, 300, "deadline_exceeded")]
)
async def test_comments_alone_keep_a_stream_open_until_its_time_is_over(
    timeout_s: float, deadline_in_ms: int | None, code: str
) -> None:
    row = _TURN.model_copy(update={"idle_timeout_s": 0.15})
    reply = StreamReply(pieces=heartbeats(), headers={"content-type": "text/event-stream"})
    deadline_ms = None if deadline_in_ms is None else FakeClock().now_ms() + deadline_in_ms
    async with asyncio.timeout(5):
        outcome, _ = await answered(reply, row=row, timeout_s=timeout_s, deadline_ms=deadline_ms)
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


@pytest.mark.requirement("hermes:streams:failed")
@pytest.mark.parametrize("row", [_TURN, _RUN_EVENTS], ids=lambda row: row.name)
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
        row=_RUN_EVENTS,
    )
    assert isinstance(outcome, Answer)
    assert (outcome.cancelled, outcome.text, outcome.output["terminal"]) == (True, "a", True)


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
    async with StreamStub([row_of("s1")]) as stub, asyncio.timeout(5):
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
    row = _TURN.model_copy(update={"stream": stream})
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
        connector_of(endpoint_of(stub.base_url), operations={"run_events": _RUN_EVENTS}) as connector,
    ):
        stub.on("POST", "/stop", reply)
        handler, call = handler_of(connector, "run_events"), call_of("run_events", {"run_id": "run/1"})
        evidence = await handler.cancel(call, await handler.prepare(call, None))
    assert evidence["stopped"] is stopped
    assert said in evidence["note"]
    assert [(request.method, request.target) for request in stub.arrived] == [("POST", "/v1/runs/run%2F1/stop")]


@pytest.mark.requirement("hermes:streams:one-send")
async def test_the_events_of_a_run_are_asked_for_once_since_reading_consumes_them() -> None:
    outcome, stub = await answered(Reply(status=500), row=_RUN_EVENTS, clock=FakeClock())
    failure = failed(outcome, "remote_temporary")
    assert (failure.uncertain, len(stub.reads)) == (False, 1)


@pytest.mark.requirement("hermes:streams:large-ending")
async def test_a_run_is_not_lost_either_where_the_name_stands_in_the_data() -> None:
    large = encode(json.dumps({"event": "run.completed", "run_id": "run_1", "output": "x" * 1_200_000}))
    delta = encode(json.dumps({"event": "message.delta", "delta": "xx"}))
    outcome, _ = await answered(
        reply_stream(delta, *(large[i : i + 65_536] for i in range(0, len(large), 65_536))), row=_RUN_EVENTS
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
