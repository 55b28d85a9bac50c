"""Frames of a stream on stdout as they come, and the call whose stream is followed while it runs.

Stdout: one JSON document per line, so that a pipe can read each as it comes. Who watches on a terminal while stdout
goes elsewhere sees the assistant's text on stderr, each line marked, so that it can't be taken for a line of ours.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Coroutine, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TextIO

from aip_hermes.cli.aipctl.terminal import print_json_line, safe_text, say
from aip_hermes.ids import ActionId

if TYPE_CHECKING:
    from aip_hermes.client import AipConnection, Reply, StreamFrame

__all__ = ["LiveText", "Printer", "call_and_follow", "events_command"]

_FIRST_LOOK_S: Final = 0.05
_LONGEST_LOOK_S: Final = 1.0
_LAST_FRAMES_S: Final = 10.0
"""How long the last frames are waited for once the answer is there."""


def events_command(url: str, action_id: str, *options: str, cursor: str | None = None) -> str:
    """Return the command that follows an action, from a position."""
    position = [] if cursor is None else ["--cursor", cursor]
    return shlex.join(["aipctl", "action", "events", url, action_id, *options, "--follow", *position])


class LiveText:
    """Text of a stream for people: every line begins with a mark, unsafe characters are shown, not sent."""

    _MARK: Final = "  | "

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_start = True

    def write(self, text: str) -> None:
        """Show a part; lines end where LF or CRLF end them."""
        encoding = self._stream.encoding or "ascii"
        for line in _lines(text.replace("\r\n", "\n")):
            shown = safe_text(line.removesuffix("\n")).encode(encoding, "backslashreplace").decode(encoding)
            self._stream.write((self._MARK if self._at_start else "") + shown)
            self._at_start = line.endswith("\n")
            if self._at_start:
                self._stream.write("\n")
        self._stream.flush()

    def close(self) -> None:
        """End a begun line."""
        if not self._at_start:
            self._stream.write("\n")
            self._stream.flush()
            self._at_start = True


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


class Printer:
    """Prints frames. cursor: the last position that was printed. begun: whether a frame was."""

    def __init__(self, *, cursor: str | None = None) -> None:
        self.cursor = cursor
        self.begun = False
        self._live = LiveText(sys.stderr) if sys.stderr.isatty() and not sys.stdout.isatty() else None

    def show(self, frame: StreamFrame) -> None:
        """Print one frame now."""
        self.begun = True
        print_json_line(frame.data)
        self.cursor = frame.cursor or self.cursor
        if self._live is not None and frame.kind == "chunk":
            self._live.write(_text_of(frame.data["chunk"]))

    def close(self) -> None:
        """End what is open on the terminal, before anything is said there."""
        if self._live is not None:
            self._live.close()


def _text_of(chunk: Mapping[str, Any]) -> str:
    """Return the assistant's text in a chunk: progress, tools and thoughts have none."""
    part = chunk.get("part")
    text = part.get("text") if chunk.get("kind") == "data" and isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


async def call_and_follow(
    connection: AipConnection, call: Coroutine[Any, Any, Reply], *, action_id: ActionId, printer: Printer
) -> Reply:
    """Await `call`, which is sent once, and print the frames of its action meanwhile.

    Following that fails is said, and does not end the call. Raises: what `call` raises; OSError when stdout fails.
    """
    calling = asyncio.create_task(call)
    following = asyncio.create_task(_follow(connection, action_id, printer, calling))
    try:
        await asyncio.wait({calling, following}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            _told(following, printer)
        reply = await calling
        ends = reply.outcome != "pending" and reply.body.get("action_id") == action_id
        if ends and not following.done():
            await asyncio.wait({following}, timeout=_LAST_FRAMES_S)
            _told(following, printer)
        return reply
    finally:
        for task in (calling, following):
            task.cancel()
        await asyncio.gather(calling, following, return_exceptions=True)
        printer.close()


async def _follow(
    connection: AipConnection, action_id: ActionId, printer: Printer, calling: asyncio.Task[Reply]
) -> None:
    """Follow as soon as the server knows the action; return at its end, or when it never came to be."""
    from aip_hermes.client import PeerError

    look_s = _FIRST_LOOK_S
    while True:
        answered = calling.done()
        try:
            async with aclosing(connection.follow(action_id)) as frames:
                async for frame in frames:
                    printer.show(frame)
            return
        except PeerError as exc:
            if exc.code != "action.not_found" or printer.begun:
                raise
        if answered:
            return
        await asyncio.wait({calling}, timeout=look_s)
        look_s = min(look_s * 2, _LONGEST_LOOK_S)


def _told(following: asyncio.Task[None], printer: Printer) -> None:
    """Say why following ended early. Raises: what is no failure between client and server."""
    from aip_hermes.client import ClientFailure

    if not following.done():
        why = "its last events did not come in time"
    else:
        failure = following.exception()
        if failure is None:
            return
        if not isinstance(failure, ClientFailure):
            raise failure
        why = failure.message
    printer.close()
    say(f"no longer followed: {why}", "  the call itself is waited for")
