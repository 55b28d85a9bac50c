"""Finding a turn in a transcript: the user's row whose hash fits, and a finished reply to it.

The text of a reply is never compared: Hermes stores it masked. Source: design §5, D20; Hermes API §2.4, §3.7, §5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aip_hermes.hermes.reconcile.reading import Line, Transcript

__all__ = ["Seen", "seen_turn"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What of a turn is there. matches: how many rows fit. answered: how many of them have a finished reply.

    compacted: rows of the transcript may have been taken out since, so that what is missing may have been there.
    """

    matches: int
    answered: int
    compacted: bool


_CLOCKS_DIFFER_S: Final = 3_600.0
"""How far a clock may be wrong before a fresh summary is taken for an old one."""


def seen_turn(
    transcript: Transcript,
    *,
    text_sha256: str,
    count_before: int | None,
    since_s: float,
    count_now: int | None = None,
) -> Seen:
    """Look for a turn among the active messages of a session.

    count_before: how many there were before it; rows behind that place are new. None, and after a compression in place,
    which leaves fewer rows or a summary: rows are new by their time, Unix seconds, from `since_s` on. count_now: how
    many the row says there are; where fewer are shown, some are hidden.

    Presence by time is proven within the slack of the clocks; absence by time is not, since no clock bounds how far
    another one is behind.
    """
    lines = transcript.lines
    compacted = any(line.summary and (line.at is None or line.at >= since_s) for line in lines) or (
        count_before is not None and len(lines) < count_before
    )
    hidden = count_now is not None and len(lines) < count_now
    by_time = compacted or hidden or count_before is None
    perhaps = any(line.summary and (line.at is None or line.at >= since_s - _CLOCKS_DIFFER_S) for line in lines)
    new = [
        place
        for place, line in enumerate(lines)
        if (by_time and line.at is not None and line.at >= since_s)
        or (count_before is not None and place >= count_before)
    ]
    users = [place for place in new if lines[place].role == "user" and lines[place].sha256 == text_sha256]
    return Seen(
        matches=len(users), answered=sum(_answered(lines, place) for place in users), compacted=by_time or perhaps
    )


def _answered(lines: Sequence[Line], place: int) -> bool:
    """Whether a finished reply follows before the next user's row."""
    for line in lines[place + 1 :]:
        if line.role == "user":
            return False
        if line.finished:
            return True
    return False
