"""The SSE decoder against a reader that knows no chunks, and the encoder against the decoder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aip_hermes.sse import HEAD_BYTES, Decoder, Frame, Oversize, SseError, SseLimit, SseMalformed, comment, encode

Seen = tuple[list[Frame], str, int]
"""Frames, how it ended, comments."""

MAY = (None, "big")


def may_exceed(event: str | None, head: bytes) -> bool:
    return event == "big" or head.startswith(b"B")


def decoder(
    line: int = 1000,
    frame: int = 1000,
    stream: int | None = None,
    events: int | None = None,
    may: Callable[[str | None, bytes], bool] | None = may_exceed,
) -> Decoder:
    return Decoder(
        max_line_bytes=line, max_frame_bytes=frame, max_stream_bytes=stream, max_events=events, may_exceed=may
    )


def read(chunks: Iterable[bytes], made: Decoder) -> Seen:
    frames: list[Frame] = []
    ended = "end"
    try:
        for chunk in chunks:
            frames += made.feed(chunk)
        frames += made.close()
    except SseError as exc:
        ended = exc.limit if isinstance(exc, SseLimit) else "malformed"
    return frames, ended, made.comments


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    marks = [0, *sorted({place % (len(stream) + 1) for place in places}), len(stream)]
    return [stream[a:b] for a, b in pairwise(marks)]


PIECES = [
    b"data: x", b"data:y", b"data", b"data:", b"data:  z", b"event: run.completed", b"event: big", b"event:", b"id: 7",
    b"id: \0", b"id", b"retry: 12", b": life", b":", b"unknown: 1", b"xdata: no", b"B", b"data: Bbbbbbbbbbbbbbbb",
    b"data: aaaaaaaaaaaaaaaaaaaaaaaa", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\n\n",
    "\u2028\u2029\u0085\v\f\x1c票é".encode(), b"\xff", b"\xef\xbb\xbf", b"\xe7\xa5",
]  # fmt: skip

streams = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=40).map(b"".join)
bounds = st.sampled_from([3, 5, 6, 8, 12, 20, 30, 1000])


@pytest.mark.requirement("sse:decoder:any-split")
@given(
    stream=streams,
    places=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
    line=bounds,
    frame=bounds,
    total=st.none() | st.integers(min_value=0, max_value=120),
    events=st.none() | st.integers(min_value=0, max_value=4),
)
@example(stream=b"data: x\r\n\r\ndata: y\r\n\r\n", places=[8, 9, 10], line=1000, frame=1000, total=None, events=None)
@example(stream=b"\xef\xbb\xbfdata: x\n\n", places=[1, 2], line=1000, frame=1000, total=2, events=None)
@example(
    stream=b"event: big\ndata: " + b"b" * 40 + b"\n\n",
    places=[12, 16, 17, 18],
    line=20,
    frame=12,
    total=None,
    events=None,
)
def test_every_split_gives_the_same_frames_and_the_same_error(
    stream: bytes, places: list[int], line: int, frame: int, total: int | None, events: int | None
) -> None:
    whole = read([stream], decoder(line, frame, total, events))
    by_byte = read([stream[i : i + 1] for i in range(len(stream))], decoder(line, frame, total, events))
    by_cuts = read(cut(stream, places), decoder(line, frame, total, events))

    assert whole == by_byte == by_cuts


def slow(stream: bytes) -> list[Frame]:
    """The rules, without limits or chunks; only for streams that are UTF-8 and end in an empty line."""
    frames: list[Frame] = []
    event: str | None = None
    id: str | None = None
    data: list[str] = []
    for line in re.split(r"\r\n|\r|\n", stream.decode().removeprefix("\ufeff")):
        if line.startswith(":"):
            continue
        if not line:
            if event or id or data:
                frames.append(Frame(event or None, id or None, "\n".join(data) if data else None))
            event, id, data = None, None, []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            id = value
    return frames


@pytest.mark.requirement("sse:decoder:fields", "sse:decoder:line-ends", "sse:decoder:any-split")
@given(stream=streams, places=st.lists(st.integers(min_value=0, max_value=400), max_size=12))
def test_the_frames_are_those_of_the_rules(stream: bytes, places: list[int]) -> None:
    stream = stream.decode("utf-8", "ignore").encode() + b"\n\n"

    assert read(cut(stream, places), decoder())[:2] == (slow(stream), "end")


@pytest.mark.requirement("sse:decoder:line-ends")
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_what_looks_like_a_line_end_to_python_stays_in_its_data(end: str, mark: str, size: int) -> None:
    stream = f"event: assistant.delta{end}data: a{mark}b{mark}{end}{end}".encode()

    frames, ended, _ = read([stream[i : i + size] for i in range(0, len(stream), size)], decoder())

    assert (frames, ended) == ([Frame("assistant.delta", None, f"a{mark}b{mark}")], "end")


@pytest.mark.requirement("sse:decoder:fields")
@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"data: a\ndata:b\ndata:  c\ndata\n\n", [Frame(None, None, "a\nb\n c\n")]),
        (b"event: a\nevent: b\nid: 1\nid: 2\ndata: x\n\n", [Frame("b", "2", "x")]),
        (b"id: 1\nid: 2\0\ndata: x\n\n", [Frame(None, "1", "x")]),
        (b"event: done\n\n", [Frame("done", None, None)]),
        (b"retry: 5\n\nfoo: bar\n\n\n\n", []),
        (b"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n", [Frame(None, None, "x")]),
        (b"data: [DONE]\n\n", [Frame(None, None, "[DONE]")]),
        (b"data:\n\n", [Frame(None, None, "")]),
        (b"data: x\r\rdata: y\n\r\ndata: z\r\n\n", [Frame(None, None, text) for text in "xyz"]),
    ],
)
def test_fields(stream: bytes, frames: list[Frame]) -> None:
    assert read([stream], decoder())[:2] == (frames, "end")


@pytest.mark.requirement("sse:decoder:fields")
def test_the_reconnection_time_is_a_number() -> None:
    made = decoder()
    made.feed(b"retry: 250\nretry: soon\n\n")

    assert made.retry_ms == 250


@pytest.mark.requirement("sse:decoder:comments")
def test_comments_are_life_and_nothing_else() -> None:
    stream = b": keepalive\n\n" * 300 + b": \xff\n" * 300 + b"data: x\n: in between\n\n"

    assert read([stream], decoder(frame=20)) == ([Frame(None, None, "x")], "end", 601)


@pytest.mark.requirement("sse:decoder:limits")
@pytest.mark.parametrize(
    ("stream", "made", "before", "limit"),
    [
        (b"data: a\n\ndata: " + b"b" * 20, decoder(line=20, frame=100), 1, "line"),
        (b"data: a\n\n: " + b"b" * 20, decoder(line=20), 1, "line"),
        (b"data: a\n\n" + b"data: b\n" * 3, decoder(frame=20), 1, "frame"),
        (b"data: a\n\ndata: b\n\n", decoder(stream=17), 1, "stream"),
        (b"data: a\n\ndata: b\n\n", decoder(events=1), 1, "events"),
        (b"data: " + b"b" * 14 + b"\n\n", decoder(line=20, frame=20, stream=22, events=1), 1, "end"),
    ],
)
def test_a_limit_comes_after_the_frames_before_it(stream: bytes, made: Decoder, before: int, limit: str) -> None:
    frames, ended, _ = read([stream], made)
    assert (len(frames), ended) == (before, limit)
    if limit != "end":
        for again in (made.close, lambda: made.feed(b"data: c\n\n")):
            with pytest.raises(SseLimit) as raised:
                again()
            assert raised.value.limit == limit


@pytest.mark.requirement("sse:decoder:oversize")
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_large_frame_ends_the_stream_by_its_name(size: int) -> None:
    data = b"B" * 70_000
    stream = b"event: small\ndata: 1\n\nevent: big\nid: 9\ndata: " + data + b"\ndata: tail\nretry: 7\n\ndata: next\n\n"
    made = decoder(line=200, frame=200)

    frames, ended, _ = read([stream[i : i + size] for i in range(0, len(stream), size)], made)

    whole = data + b"\ntail"
    assert ended == "end"
    assert frames == [
        Frame("small", None, "1"),
        Frame("big", "9", None, Oversize(len(whole), hashlib.sha256(whole).hexdigest(), whole[:HEAD_BYTES])),
        Frame(None, None, "next"),
    ]


@pytest.mark.requirement("sse:decoder:oversize")
def test_a_large_frame_is_asked_about_with_its_name_and_its_beginning() -> None:
    asked: list[tuple[str | None, bytes]] = []

    def may(event: str | None, head: bytes) -> bool:
        asked.append((event, head))
        return len(asked) == 1

    stream = b'data: {"event": "run.completed", ' + b"x" * 400 + b"\n\nevent: delta\ndata: " + b"y" * 400 + b"\n\n"
    frames, ended, _ = read([stream], decoder(line=300, frame=300, may=may))

    assert ended == "frame"
    assert [frame.oversize is not None for frame in frames] == [True]
    assert [(event, head[:12]) for event, head in asked] == [(None, b'{"event": "r'), ("delta", b"y" * 12)]
    assert {len(head) for _, head in asked} == {256}


@pytest.mark.requirement("sse:decoder:utf8")
def test_a_frame_that_is_no_utf8_ends_the_stream_after_the_frames_before_it() -> None:
    made = decoder()

    assert made.feed(b"data: a\n\ndata: \xff\n\ndata: b\n\n") == [Frame(None, None, "a")]
    with pytest.raises(SseMalformed):
        made.feed(b"data: c\n\n")


@pytest.mark.requirement("sse:decoder:utf8")
def test_a_character_may_come_in_pieces() -> None:
    made = decoder()
    stream = "data: 票é\U0001f600\n\n".encode()

    assert [frame for i in range(len(stream)) for frame in made.feed(stream[i : i + 1])] == [
        Frame(None, None, "票é\U0001f600")
    ]


@pytest.mark.requirement("sse:decoder:rest")
def test_the_rest_comes_out_of_close() -> None:
    made = decoder()

    assert made.feed(b'data: a\n\nevent: run.completed\ndata: {"cut') == [Frame(None, None, "a")]
    assert made.close() == [Frame("run.completed", None, '{"cut')]
    assert made.close() == []
    with pytest.raises(ValueError, match="closed"):
        made.feed(b"data: b\n\n")


@pytest.mark.requirement("sse:encoder:round-trip")
@given(
    frames=st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8")),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1),
        )
    )
)
def test_an_encoded_frame_is_the_same_frame(frames: list[tuple[str, str | None, str | None]]) -> None:
    stream = b"".join(comment("a\nb") + encode(data, event=event, id=id) for data, event, id in frames)

    assert read([stream], decoder(line=10_000, frame=10_000)) == (
        [Frame(event, id, re.sub("\r\n|\r", "\n", data)) for data, event, id in frames],
        "end",
        2 * len(frames),
    )


@pytest.mark.requirement("sse:encoder:round-trip")
@pytest.mark.parametrize(
    "fields", [{"event": "a\nb"}, {"event": "a\rb"}, {"id": "a\nb"}, {"id": "a\0b"}, {"event": "\ud800"}]
)
def test_a_value_that_would_end_its_field_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"holds|surrogates"):
        encode("x", event=fields.get("event"), id=fields.get("id"))
