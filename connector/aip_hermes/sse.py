"""Server-sent events as bytes: a decoder with limits, and the encoder. Pure; no I/O, no clock.

The decoder's promise: any byte stream, cut anyhow, gives the same frames and then the same error. So a limit or a bad
frame is raised by the call *after* the one that returned the frames before it, and by every later call.
Only CR, LF and CRLF end a line; they are looked for in bytes, where no character of a text can be taken for one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

__all__ = ["HEAD_BYTES", "Decoder", "Frame", "Oversize", "SseError", "SseLimit", "SseMalformed", "comment", "encode"]

HEAD_BYTES: Final = 256
_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_USUAL: Final = re.compile(r"(?:event: (.*)\n)?(?:id: ([^\n\0]+)\n)?data: (.*)\n\n")
_new = tuple.__new__  # a fifth of what the class itself takes

Limit = Literal["line", "frame", "stream", "events"]


class SseError(Exception):
    """The stream can't be read on. Root of SseLimit and SseMalformed."""


class SseLimit(SseError):
    """A line, a frame or the stream has more bytes, or the stream more events, than is read. limit: which of them."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(f"over the limit of the {limit}")
        self.limit: Limit = limit


class SseMalformed(SseError):
    """A frame that is no UTF-8."""


class Oversize(NamedTuple):
    """What is kept of data over the limit, as it would have been joined: its length in bytes, their SHA-256 in hex, and
    the first HEAD_BYTES of them."""

    size: int
    sha256: str
    head: bytes


class Frame(NamedTuple):
    """One event as it stood on the wire; each member None where the frame had no such field.

    event, id: None also where it was empty; the id is this frame's own, not the last one seen. data: lines joined by
    LF; None also where `oversize` stands for it.
    """

    event: str | None
    id: str | None
    data: str | None
    oversize: Oversize | None = None


class Decoder:
    """Bytes in, frames out.

    max_line_bytes, max_frame_bytes: without line ends; comments count for no frame. max_stream_bytes: everything, as it
    came. max_events: frames returned. None: no limit.
    may_exceed: asked once when a data line passes the limit of line or frame, with the event name so far and the first
    bytes of the data (at most HEAD_BYTES); True lets the frame pass: its data is hashed instead of kept.
    """

    def __init__(
        self,
        *,
        max_line_bytes: int,
        max_frame_bytes: int,
        max_stream_bytes: int | None,
        max_events: int | None,
        may_exceed: Callable[[str | None, bytes], bool] | None = None,
    ) -> None:
        self._max_line = max_line_bytes
        self._max_frame = max_frame_bytes
        self._bytes_left = max_stream_bytes
        self._events_left = max_events
        self._may_exceed = may_exceed
        self.comments = 0
        """Comment lines so far: a sign of life, no progress."""
        self.retry_ms: int | None = None
        """The reconnection time that the stream asked for last."""
        self._start: bytes | None = b""  # the first bytes, until it is clear whether they are a byte order mark
        self._after_cr = False
        self._max_whole = min(max_line_bytes, max_frame_bytes)
        self._held = bytearray()
        self._partial = bytearray()
        self._ended: SseError | None = None
        self._closed = False
        self._between = False
        self._begin_frame()

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that `chunk` completes.

        Raises: SseError, once nothing is left to return before it.
        """
        frames: list[Frame] = []
        try:
            # By far the most frequent: whole frames, with nothing begun before them.
            if self._between and len(chunk) <= self._max_whole and chunk.endswith(b"\n\n"):
                text = _text(chunk)
                if text is not None and "\r" not in text and self._spend(len(chunk)):
                    self._take_whole(text, frames)
                    return frames
            self._feed(chunk, frames)
        except SseError as exc:
            self._ended = exc
            self._between = False
            if not frames:
                raise
        return frames

    def _spend(self, size: int) -> bool:
        if self._bytes_left is not None:
            if size > self._bytes_left:
                return False
            self._bytes_left -= size
        return True

    def _feed(self, chunk: bytes, frames: list[Frame]) -> None:
        if self._closed:
            raise ValueError("the stream is closed")
        if self._ended is not None:
            raise self._ended
        beyond = not self._spend(len(chunk))
        if beyond:
            chunk = chunk[: self._bytes_left]
        if self._start is not None:
            chunk = self._without_mark(chunk, last=beyond)
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._read(chunk, frames)
        if beyond:
            raise SseLimit("stream")
        begun = self._held or self._partial or self._frame_bytes or self._large is not None
        self._between = not (begun or self._after_cr or self._start is not None)

    def close(self) -> list[Frame]:
        """Return what stood unfinished at the end of input as one more frame. It may have been cut anywhere.

        Raises: SseError that was still to be raised, or the one of this frame. Idempotent.
        """
        if self._ended is not None:
            raise self._ended
        if self._closed:
            return []
        self._closed, self._between = True, False
        frames: list[Frame] = []
        try:
            self._take_held(frames)
            self._take((self._start or b"") + b"\n\n", frames)
        except SseError as exc:
            self._ended = exc
            raise
        return frames

    def _without_mark(self, chunk: bytes, *, last: bool) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start) and not last:
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _begin_frame(self) -> None:
        self._event: bytes | None = None
        self._id: bytes | None = None
        self._data: list[bytes] = []
        self._frame_bytes = 0
        self._large: _Large | None = None

    def _read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Read whole frames in one go; only what passes a limit is looked at line by line.

        Held bytes are the start of a frame that is within every limit, so nothing in them can be wrong yet.
        """
        if self._frame_bytes or self._partial or self._large is not None:
            start = chunk.find(b"\n\n") + 2
            self._take(chunk[:start] if start > 1 else chunk, frames)
            if start == 1:
                return
            chunk = chunk[start:]
        held = self._held
        end = chunk.rfind(b"\n\n") + 2
        if end == 1:
            end = 1 if chunk.startswith(b"\n") and held.endswith(b"\n") else 0
        if end:
            block = chunk if end == len(chunk) else chunk[:end]
            if held:
                block = bytes(held) + block
                held.clear()
            text = _text(block) if len(block) <= self._max_whole else None
            if text is None:
                self._take(block, frames)
            else:
                self._take_whole(text, frames)
            chunk = chunk[end:]
        held += chunk
        if len(held) > self._max_whole:
            self._take_held(frames)

    def _take_held(self, frames: list[Frame]) -> None:
        held = bytes(self._held)
        self._held.clear()
        self._take(held, frames)

    def _take_whole(self, text: str, frames: list[Frame]) -> None:
        """Read frames that end in an empty line and are together no longer than one line may be."""
        start, end = 0, len(text)
        while start < end:
            usual = _USUAL.match(text, start)
            if usual is not None:
                event, id, data = usual.groups()
                self._count()
                frames.append(_new(Frame, (event or None, id, data, None)))
                start = usual.end()
            else:
                stop = text.find("\n\n", start) + 2
                stop = end if stop == 1 else stop
                self._take(text[start:stop].encode(), frames)
                start = stop

    def _take(self, chunk: bytes, frames: list[Frame]) -> None:
        """Read lines that end in LF, and keep the begun one within its limits."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._partial:
            lines[0] = bytes(self._partial) + lines[0]
            self._partial.clear()
        for line in lines:
            if not line and (self._large is None or not self._large.open):
                if self._event or self._id or self._data or self._large is not None:
                    frames.append(self._frame())
                self._begin_frame()
                continue
            size = self._frame_bytes + len(line)
            if self._large is not None:
                self._take_large(self._large, line, ended=True)
            elif line.startswith(b":"):
                if len(line) > self._max_line:
                    raise SseLimit("line")
                self.comments += 1
            elif len(line) > self._max_line or size > self._max_frame:
                self._exceed(line, ended=True)
            else:
                self._frame_bytes = size
                self._field(line)
        if rest:
            self._begin_line(rest)

    def _begin_line(self, part: bytes) -> None:
        if self._large is not None and self._large.open:
            self._large.add(part)
            return
        partial = self._partial
        partial += part
        if self._large is not None:
            if len(partial) >= 6 and (partial.startswith(b"data:") or len(partial) > self._max_line):
                self._take_large(self._large, bytes(partial), ended=False)
        elif partial.startswith(b":"):
            if len(partial) > self._max_line:
                raise SseLimit("line")
        elif len(partial) > self._max_line or self._frame_bytes + len(partial) > self._max_frame:
            self._exceed(bytes(partial), ended=False)
            partial.clear()

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            if b"\0" not in value:
                self._id = value
        elif name == b"retry" and value.isdigit():
            self.retry_ms = min(int(value[:18]), 1 << 53)

    def _exceed(self, line: bytes, *, ended: bool) -> None:
        """Decide about a line that passes a limit, by what stood before the limit alone, wherever the chunks end."""
        room = self._max_frame - self._frame_bytes
        limit: Limit = "frame" if room <= self._max_line else "line"
        before = line[: max(0, min(room, self._max_line))]
        if self._may_exceed is None or not before.startswith(b"data:"):
            raise SseLimit(limit)
        event = self._event.decode("utf-8", "replace") if self._event else None
        head = b"\n".join([*self._data, before[5:].removeprefix(b" ")])[:HEAD_BYTES]
        if not self._may_exceed(event, head):
            raise SseLimit(limit)
        self._large = large = _Large()
        if self._data:
            large.begin()
            large.add(b"\n".join(self._data))
            self._data = []
        self._take_large(large, line, ended=ended)

    def _take_large(self, large: _Large, line: bytes, *, ended: bool) -> None:
        """Read a line, or what there is of it, of a frame whose data is hashed."""
        if large.open:
            large.add(line)
            large.open = not ended
        elif line[:5] == b"data:":
            large.begin()
            large.add(line[5:].removeprefix(b" "))
            large.open = not ended
            self._partial.clear()
        elif len(line) > self._max_line:
            raise SseLimit("line")
        elif ended:
            if line[:1] == b":":
                self.comments += 1
            elif line == b"data":
                large.begin()
            else:
                self._field(line)

    def _count(self) -> None:
        if self._events_left is not None:
            if self._events_left == 0:
                raise SseLimit("events")
            self._events_left -= 1

    def _frame(self) -> Frame:
        self._count()
        data = self._data
        try:
            return Frame(
                self._event.decode() if self._event else None,
                self._id.decode() if self._id else None,
                (data[0] if len(data) == 1 else b"\n".join(data)).decode() if data else None,
                None if self._large is None else self._large.summary(),
            )
        except UnicodeDecodeError:
            raise SseMalformed("a frame is no UTF-8") from None


def _text(block: bytes) -> str | None:
    try:
        return block.decode()
    except UnicodeDecodeError:
        return None


class _Large:
    """Data that is hashed as it comes. open: within a data line that has not ended yet."""

    def __init__(self) -> None:
        self._hash: Any = hashlib.sha256()
        self._head = b""
        self._size = 0
        self._lines = 0
        self.open = False

    def begin(self) -> None:
        if self._lines:
            self.add(b"\n")
        self._lines += 1

    def add(self, part: bytes) -> None:
        self._hash.update(part)
        self._head += part[: HEAD_BYTES - len(self._head)]
        self._size += len(part)

    def summary(self) -> Oversize:
        return Oversize(self._size, self._hash.hexdigest(), self._head)


def encode(data: str, *, event: str | None = None, id: str | None = None) -> bytes:
    """Return one frame. Line ends in `data` arrive as LF, whichever they are.

    Raises: ValueError when `event` or `id` holds a line end, `id` a NUL, or a text a lone surrogate.
    """
    lines = []
    for name, value in (("event", event), ("id", id)):
        if value is None:
            continue
        if "\n" in value or "\r" in value or (name == "id" and "\0" in value):
            raise ValueError(f"{name} holds a character that would end it")
        lines.append(f"{name}: {value}\n")
    lines += [f"data: {line}\n" for line in _LINE_END.split(data)]
    return ("".join(lines) + "\n").encode()


def comment(text: str) -> bytes:
    """Return a comment, which readers skip: a sign of life."""
    return ("".join(f": {line}\n" for line in _LINE_END.split(text)) + "\n").encode()
