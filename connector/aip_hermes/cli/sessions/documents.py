"""Sessions as lines of a file: one JSON object each, in UTF-8."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aip_hermes.cli.sessions.refused import SessionsRefused
from aip_hermes.embedded.session_db.import_check import problem_of

__all__ = ["Line", "in_order", "line_of", "lines_of", "plain_messages", "session_at"]

_BYTES: Final = "aip_hermes:base64"
"""JSON has no bytes. A content of bytes is written as an object with this one member."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """Where a session stands in a file. number: counts from 1. start, length: bytes."""

    number: int
    start: int
    length: int
    session_id: str
    parent_id: str | None


def line_of(document: Mapping[str, Any]) -> bytes:
    """Return an exported session as one line."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=_plain).encode() + b"\n"


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages whose contents JSON can hold."""
    found = [dict(message) for message in messages]
    for message in found:
        if isinstance(message["content"], bytes):
            message["content"] = _plain(message["content"])
    return found


def lines_of(path: Path) -> Iterator[Line]:
    """Yield where each session of a file stands, after checking it; empty lines are nothing.

    Raises SessionsRefused for the first line that is no session, with its number; OSError.
    """
    seen: dict[str, int] = {}
    start = 0
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if text.strip():
                session = _parsed(path, number, text)
                first = seen.setdefault(session["id"], number)
                if first != number:
                    raise _refused(path, number, f"session {session['id']} stands in line {first} already")
                yield Line(
                    number=number,
                    start=start,
                    length=len(text),
                    session_id=session["id"],
                    parent_id=session.get("parent_session_id"),
                )
            start += len(text)


def session_at(path: Path, line: Line) -> dict[str, Any]:
    """Return the session of a line. Raises SessionsRefused where the file is no longer what it was."""
    with path.open("rb") as file:
        file.seek(line.start)
        text = file.read(line.length)
    session = _parsed(path, line.number, text)
    if session["id"] != line.session_id:
        raise _refused(path, line.number, "the file was changed meanwhile")
    return session


def in_order(lines: list[Line]) -> list[Line]:
    """Return the lines with each parent before its children; a circle is entered at its first line."""
    waiting = {line.session_id: line for line in lines}
    ordered: list[Line] = []
    for line in lines:
        branch: list[Line] = []
        above: Line | None = line
        while above is not None and waiting.pop(above.session_id, None) is not None:
            branch.append(above)
            above = None if above.parent_id is None else waiting.get(above.parent_id)
        ordered += reversed(branch)
    return ordered


def _parsed(path: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        session = json.loads(text, object_hook=_with_bytes)
    except UnicodeDecodeError as error:
        raise _refused(path, number, f"no UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise _refused(path, number, f"no JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise _refused(path, number, "no JSON that can be read") from None
    problem = problem_of(session)
    if problem is not None:
        raise _refused(path, number, problem)
    return dict(session)


def _refused(path: Path, number: int, problem: str) -> SessionsRefused:
    return SessionsRefused(f"{path}, line {number}: {problem}; correct or remove that line, then import again")


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    raise TypeError(f"no JSON for {type(value).__name__}")


def _with_bytes(value: dict[str, Any]) -> object:
    if value.keys() == {_BYTES} and isinstance(value[_BYTES], str):
        return base64.b64decode(value[_BYTES], validate=True)
    return value
