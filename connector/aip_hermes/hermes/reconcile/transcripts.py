"""Finding a turn in a transcript: the user's row whose hash fits, and a finished reply to it.

The text of a reply is never compared: Hermes stores it masked. Source: design §5, D20; Hermes API §2.4, §3.7, §5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aip_hermes.hermes.reconcile.reading import Line, Transcript

__all__ = ["Seen", "seen_turn"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What of a turn is there. matches: how many rows fit. answered: how many of them have a finished reply.

    compacted: rows of the transcript were taken out since, so that what is missing may have been there.
    """

    matches: int
    answered: int
    compacted: bool


def seen_turn(transcript: Transcript, *, text_sha256: str, count_before: int | None, since_s: float) -> Seen:
    """Look for a turn among the active messages of a session.

    count_before: how many there were before it; rows behind that place are new. None, and after a compression in place,
    which leaves fewer rows or a summary: rows are new by their time, Unix seconds, from `since_s` on.
    """
    lines = transcript.lines
    compacted = any(line.summary and (line.at is None or line.at >= since_s) for line in lines) or (
        count_before is not None and len(lines) < count_before
    )
    by_time = compacted or count_before is None
    new = [
        place
        for place, line in enumerate(lines)
        if (by_time and line.at is not None and line.at >= since_s)
        or (count_before is not None and place >= count_before)
    ]
    users = [place for place in new if lines[place].role == "user" and lines[place].sha256 == text_sha256]
    return Seen(matches=len(users), answered=sum(_answered(lines, place) for place in users), compacted=compacted)


def _answered(lines: Sequence[Line], place: int) -> bool:
    """Whether a finished reply follows before the next user's row."""
    for line in lines[place + 1 :]:
        if line.role == "user":
            return False
        if line.finished:
            return True
    return False
