"""From frames to chunks, text and end; no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aip_hermes.contract import operation_schema
from aip_hermes.contract.handler import Chunk
from aip_hermes.contract.validation import Validator
from aip_hermes.hermes.stream import (
    MAX_EVENTS_BYTES,
    MAX_KEPT_EVENTS,
    MAX_TEXT_CHARS,
    StreamCollector,
)
from aip_hermes.sse import Frame, Oversize
from aip_hermes.wire import canonical_json, sha256_hex

_STREAM_ANSWER = Validator(operation_schema("stream_answer.json"))


def named(name: str, /, **data: Any) -> Frame:
    return Frame(name, None, json.dumps(data, ensure_ascii=False))


def bare(**data: Any) -> Frame:
    return Frame(None, None, json.dumps(data))


def collect(rule: Any, frames: Iterable[Frame], **settings: Any) -> tuple[StreamCollector, list[Chunk]]:
    collector = StreamCollector(rule, operation="op", **settings)
    chunks: list[Chunk] = []
    for frame in frames:
        if collector.ending is not None:
            break
        chunks.append(collector.take(frame))
    return collector, chunks


def output(collector: StreamCollector) -> dict[str, Any]:
    found = collector.output(endpoint_id="primary", http_status=200)
    assert _STREAM_ANSWER.violations(found) == []
    return found


SESSION = [
    named("run.started", session_id="s1", seq=1),
    named("message.started", message={"role": "assistant"}, session_id="s1"),
    named("assistant.delta", delta="Looking.", session_id="s1"),
    named("tool.progress", tool_name="_thinking", delta="Looking.", session_id="s1"),
    named("tool.started", tool_name="terminal", session_id="s1"),
    named("tool.completed", tool_name="terminal", session_id="s1"),
    named("assistant.delta", delta="\n\nFound it.", session_id="s1"),
    named("reasoning.available", text="A thought.", session_id="s1"),
    named("assistant.completed", content="Found it.", session_id="20260101_000000_abcdef"),
    named(
        "run.completed", messages=[{"role": "assistant", "content": "Found it."}], session_id="20260101_000000_abcdef"
    ),
    named("done", session_id="s1"),
]
COMPLETIONS = [
    bare(choices=[{"delta": {"role": "assistant"}}]),
    bare(choices=[{"delta": {"reasoning_content": "A thought."}}]),
    bare(choices=[{"delta": {"content": "Looking."}}]),
    named("hermes.tool.progress", tool="terminal", label="echo f", delta="not this"),
    bare(choices=[{"delta": {"content": "\n\nFound."}}]),
    bare(choices=[{"delta": {}, "finish_reason": "stop"}], usage={}),
    Frame(None, None, " [DONE] "),
]
RESPONSES = [
    named("response.created", type="response.created"),
    named("response.output_text.delta", type="response.output_text.delta", delta="Looking."),
    named("response.reasoning_text.delta", delta="A thought."),
    named("response.function_call_arguments.delta", delta="{}"),
    bare(type="response.output_text.delta", delta=" Found."),
    named("response.output_text.done", text="Looking. Found."),
    named("response.completed", response={"status": "completed"}),
]
RUN = [
    bare(event="tool.started", tool="terminal"),
    bare(event="approval.request", command="rm"),
    bare(event="approval.responded", choice="deny"),
    bare(event="message.delta", delta="Over."),
    bare(event="reasoning.available", text="Over."),
    bare(event="run.completed", output="Over.", usage={}),
]


@pytest.mark.requirement("hermes:streams:text-once", "hermes:streams:chunks")
@pytest.mark.parametrize(
    ("rule", "frames", "text", "kinds"),
    [
        (
            "session", SESSION, "Looking.\n\nFound it.",
            ["data", "data", "data", "thought", "tool", "tool", "data", "thought", "data", "done"],
        ),
        (
            "completions", COMPLETIONS, "Looking.\n\nFound.",
            ["data", "thought", "data", "data", "data", "data", "done"],
        ),
        ("responses", RESPONSES, "Looking. Found.", ["data", "data", "thought", "data", "data", "data", "done"]),
        ("run", RUN, "Over.", ["tool", "pending_approval", "data", "data", "thought", "done"]),
    ],
    ids=["session", "completions", "responses", "run"],
)  # fmt: skip
def test_each_grammar_gives_its_text_once_and_one_chunk_for_each_event(
    rule: str, frames: list[Frame], text: str, kinds: list[str]
) -> None:
    collector, chunks = collect(rule, frames)

    found = output(collector)
    assert (collector.ending, found["text"], found["terminal"], found["truncated"]) == ("completed", text, True, False)
    assert [chunk.kind for chunk in chunks] == kinds
    assert "".join(chunk.text or "" for chunk in chunks) == text
    assert [chunk.data["hermes_sse"] for chunk in chunks] == found["events"]
    assert [event["terminal"] for event in found["events"]] == [False] * (len(kinds) - 1) + [True]


@pytest.mark.requirement("hermes:streams:effective")
def test_the_last_events_say_in_which_session_the_turn_ended() -> None:
    collector, _ = collect("session", SESSION[:8])
    assert "session_id" not in output(collector)
    collector, _ = collect("session", SESSION)
    assert output(collector)["session_id"] == "20260101_000000_abcdef"
    large = Frame("run.completed", None, None, Oversize(9, "ab", b"{"))
    collector, _ = collect("session", [*SESSION[:9], large])
    assert output(collector)["session_id"] == "20260101_000000_abcdef"


@pytest.mark.requirement("hermes:streams:first-ending")
@pytest.mark.parametrize(
    ("frame", "ending"),
    [
        (named("done"), "completed"),
        (named("run.completed"), "completed"),
        (named("response.completed"), "completed"),
        (bare(event="run.completed"), "completed"),
        (Frame(None, None, "[DONE]"), "completed"),
        (named("run.cancelled"), "cancelled"),
        (named("run.failed"), "failed"),
        (named("response.failed"), "failed"),
        (named("response.incomplete"), "failed"),
        (named("error", message="no"), "failed"),
        (Frame("done", None, None), "completed"),
        (Frame("run.completed", None, "no JSON"), "completed"),
        (bare(type="run.completed"), None),
        (named("run.completed.not"), None),
        (named("assistant.delta", event="done"), None),
        (Frame(None, None, '"DONE"'), None),
    ],
)
def test_what_ends_a_stream(frame: Frame, ending: str | None) -> None:
    collector, chunks = collect("session", [frame])

    assert collector.ending == ending
    assert chunks[0].kind == {"failed": "error", None: "data"}.get(ending, "done")
    if ending is not None:
        with pytest.raises(ValueError, match="ended"):
            collector.take(frame)


@pytest.mark.requirement("hermes:streams:first-ending", "hermes:streams:truncated")
@pytest.mark.parametrize(
    ("allowed", "ending", "events"), [(1, "truncated", 1), (9, "truncated", 9), (10, "completed", 10)]
)
def test_an_ending_may_be_the_last_allowed_event(allowed: int, ending: str, events: int) -> None:
    collector, chunks = collect("session", SESSION, max_events=allowed)

    found = output(collector)
    assert (collector.ending, len(chunks), len(found["events"])) == (ending, events, events)
    assert (found["terminal"], found["truncated"]) == (ending == "completed", ending == "truncated")
    assert collector.close() is None


@pytest.mark.requirement("hermes:streams:no-end-no-success")
def test_an_end_without_an_ending_event_is_incomplete() -> None:
    collector, _ = collect("session", SESSION[:3])
    last = collector.close()

    assert last == Chunk(
        kind="error", data={"operation": "op", "reason": "upstream_stream_closed_without_terminal_event"}
    )
    found = output(collector)
    assert (collector.ending, found["terminal"], found["text"]) == ("incomplete", False, "Looking.")
    assert collector.close() is None


@pytest.mark.requirement("hermes:streams:no-end-no-success")
@pytest.mark.parametrize(
    ("rest", "ending"),
    [
        (Frame("run.completed", None, '{"session_id": "s1"}'), "completed"),
        (Frame(None, None, "[DONE]"), "completed"),
        (Frame("run.completed", None, '{"session_id": "s'), None),
        (Frame("run.completed", None, None), None),
        (Frame("done", None, ""), None),
        (Frame(None, None, "[DON"), None),
        (Frame("run.completed", None, None, Oversize(5, "x", b"")), None),
    ],
)
def test_a_rest_that_may_have_been_cut_ends_nothing(rest: Frame, ending: str | None) -> None:
    collector, _ = collect("session", SESSION[:3])
    chunk = collector.take_rest(rest)

    assert (collector.ending, chunk is None) == (ending, ending is None)


@pytest.mark.requirement("hermes:streams:failed")
@pytest.mark.parametrize(
    ("rule", "frames", "said"),
    [
        ("session", [named("error", message="no provider")], {"message": "no provider"}),
        ("run", [bare(event="run.failed", error="HTTP 500")], {"event": "run.failed", "error": "HTTP 500"}),
        (
            "completions",
            [
                bare(choices=[{"delta": {}, "finish_reason": "error"}], error={"message": "x"}),
                Frame(None, None, "[DONE]"),
            ],
            {"choices": [{"delta": {}, "finish_reason": "error"}], "error": {"message": "x"}},
        ),
    ],
)
def test_a_failure_is_the_end_and_what_it_said_is_at_hand(rule: str, frames: list[Frame], said: object) -> None:
    collector, chunks = collect(rule, frames)

    assert (collector.ending, collector.failure) == ("failed", said)
    assert [chunk.kind for chunk in chunks] == ["data"] * (len(frames) - 1) + ["error"]
    assert output(collector)["terminal"] is True


@pytest.mark.requirement("hermes:streams:bounded-output")
def test_the_output_keeps_the_first_events_and_the_last() -> None:
    frames = [named("assistant.delta", delta=str(n)) for n in range(1_000)] + [named("run.completed", session_id="s1")]
    collector, chunks = collect("session", frames)

    found = output(collector)
    assert (len(chunks), len(found["events"]), found["events_omitted"]) == (1_001, MAX_KEPT_EVENTS, 745)
    assert [event["data"].get("delta") for event in found["events"][:-1]] == [str(n) for n in range(255)]
    assert found["events"][-1]["event"] == "run.completed"
    assert found["text"] == "".join(str(n) for n in range(1_000))


@pytest.mark.requirement("hermes:streams:bounded-output")
@pytest.mark.parametrize("character", ["x", "\u7968", "\x01", '"'])
def test_the_output_s_events_stay_within_their_bytes(character: str) -> None:
    piece = character * 60_000
    frames = [named("assistant.delta", delta=piece) for _ in range(40)]
    collector, _ = collect("session", [*frames, named("response.completed", response=character * 150_000)])

    found = output(collector)
    assert len(canonical_json(found["events"])) < MAX_EVENTS_BYTES * 1.01
    assert found["events"][-1]["terminal"] is True
    assert found["events_omitted"] == 41 - len(found["events"]) > 0
    assert found["text"] == (piece * 40)[:MAX_TEXT_CHARS]


@pytest.mark.requirement("hermes:streams:bounded-output")
def test_one_event_that_is_too_large_alone_is_kept_as_its_size_and_hash() -> None:
    collector, _ = collect("run", [bare(event="run.completed", output="\x01" * 300_000)])

    (event,) = output(collector)["events"]
    assert event["terminal"] is True
    assert event["data"]["_aip"]["omitted"]["bytes"] > MAX_EVENTS_BYTES


@pytest.mark.requirement("hermes:streams:bounded-output")
def test_text_beyond_its_bound_is_counted() -> None:
    frames = [named("assistant.delta", delta="x" * 1_000_000) for _ in range(3)]
    collector, _ = collect("session", frames)

    found = output(collector)
    assert (len(found["text"]), found["text_omitted"]) == (MAX_TEXT_CHARS, 3_000_000 - MAX_TEXT_CHARS)


@pytest.mark.requirement("hermes:streams:transcript")
def test_the_transcript_of_an_ended_run_becomes_a_count_and_a_hash() -> None:
    messages = [{"role": "assistant", "content": "secret text"}, {"role": "tool", "content": "more"}]
    collector, chunks = collect("session", [named("run.completed", messages=messages, usage={"total_tokens": 3})])

    (event,) = output(collector)["events"]
    assert event["data"] == {
        "messages": {"count": 2, "sha256": sha256_hex(messages)},
        "usage": {"total_tokens": 3},
    }
    assert chunks[0].data["hermes_sse"] == event


@pytest.mark.requirement("hermes:streams:large-ending")
def test_a_large_ending_is_kept_as_its_size_and_hash() -> None:
    collector, chunks = collect(
        "session", [*SESSION[:9], Frame("run.completed", None, None, Oversize(2_000_000, "ab" * 32, b"{"))]
    )

    assert (collector.ending, chunks[-1].kind) == ("completed", "done")
    assert output(collector)["events"][-1] == {
        "event": "run.completed",
        "data": {"_aip": {"oversize": {"bytes": 2_000_000, "sha256": "ab" * 32}}},
        "terminal": True,
    }


@pytest.mark.requirement("hermes:streams:large-ending", "hermes:streams:effective")
def test_the_beginning_of_a_large_ending_names_it_and_its_session() -> None:
    collector, chunks = collect("run", [Frame(None, None, None, Oversize(9, "ab", b'{"event": "run.completed", "ou'))])
    assert (collector.ending, chunks[0].kind) == ("completed", "done")

    large = Frame("assistant.completed", None, None, Oversize(9, "ab", b'{"session_id": "20260101_000000_abcdef", "x'))
    collector, _ = collect(
        "session", [large, Frame("run.completed", None, None, Oversize(9, "ab", b'{"session_id": "cu'))]
    )
    assert (collector.ending, output(collector)["session_id"]) == ("completed", "20260101_000000_abcdef")


@pytest.mark.requirement("hermes:streams:strange-data")
@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("", None),
        ("  ", None),
        ("plain words", "plain words"),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
        ("[" * 101 + "]" * 101, "[" * 101 + "]" * 101),
        ('{"a": ' + "9" * 5_000 + "}", '{"a": ' + "9" * 5_000 + "}"),
        ('{"delta": "x\\ud83d y"}', {"delta": "x\ufffd y"}),
        ('{"delta": "\\ud83d\\ude00"}', {"delta": "\U0001f600"}),
        ("[1]", [1]),
        ("null", None),
    ],
)
def test_data_that_is_no_good_json_is_kept_as_text_or_mended(data: str, value: object) -> None:
    collector, chunks = collect("session", [Frame("assistant.delta", "7", data)])

    assert chunks[0].data["hermes_sse"] == {"event": "assistant.delta", "id": "7", "data": value, "terminal": False}
    json.dumps(output(collector), ensure_ascii=False, allow_nan=False).encode()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_names = st.none() | st.sampled_from(
    ["assistant.delta", "tool.progress", "run.completed", "error", "done", "message.delta", "x", "response.completed"]
)
_data = (
    st.none()
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | _json.map(json.dumps)
    | st.fixed_dictionaries(
        {},
        optional={
            "delta": _json, "choices": _json, "event": st.sampled_from(["done", "run.failed", 5]), "session_id": _json,
            "messages": _json, "error": _json, "type": _json,
        },
    ).map(json.dumps)
)  # fmt: skip


@pytest.mark.requirement("hermes:streams:strange-data", "hermes:streams:bounded-output")
@given(
    rule=st.sampled_from(["session", "completions", "responses", "run"]),
    frames=st.lists(st.builds(Frame, _names, st.none() | st.just("1"), _data), max_size=12),
    allowed=st.integers(min_value=1, max_value=8),
)
def test_no_event_breaks_the_collector(rule: str, frames: list[Frame], allowed: int) -> None:
    collector, chunks = collect(rule, frames, max_events=allowed)
    collector.close()

    found = output(collector)
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    assert len(chunks) <= allowed
    assert found["events"] == [chunk.data["hermes_sse"] for chunk in chunks]
    assert sum(chunk.kind in ("done", "error") for chunk in chunks) == found["terminal"]
