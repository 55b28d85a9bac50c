"""Faults by name, operation and count: which request meets which."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from aip_hermes.embedded.faults import deeds
from aip_hermes.embedded.faults.deeds import Deed

__all__ = ["FAULTS", "Fault", "FaultPlan"]

_MOST: Final = 1_000_000
_CHATS: Final = frozenset({"session_chat", "session_chat_stream"})
_COMPRESSIONS: Final = frozenset({"compress", "compress-in-place"})
_STREAMS: Final = frozenset({"session_chat_stream", "run_events", "chat_completions", "responses"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """deed: what it does. sentence: that in words. operations: the only ones it can meet; None: any."""

    deed: Deed
    sentence: str
    operations: frozenset[str] | None = None


FAULTS: Final[Mapping[str, Fault]] = {
    "lost-request": Fault(
        deed=deeds.lost_request, sentence="nothing is carried out; the connection ends without an answer"
    ),
    "lost-answer": Fault(
        deed=deeds.lost_answer, sentence="carried out to its end; then the connection ends without an answer"
    ),
    "late-answer": Fault(deed=deeds.late_answer, sentence="carried out at once; the answer begins 10 seconds later"),
    "late-effect": Fault(
        deed=deeds.late_effect, sentence="the connection ends at once; the request is carried out 10 seconds later"
    ),
    "reset-mid-body": Fault(
        deed=deeds.reset_mid_body, sentence="carried out; the connection ends in the middle of the answer's body"
    ),
    "html-502": Fault(deed=deeds.html_502, sentence="carried out; answered 502 with an HTML page, as a gateway does"),
    "stalled-stream": Fault(
        deed=deeds.stalled_stream,
        sentence="carried out; after its first event the stream stays open and says nothing more, no comment either",
        operations=_STREAMS,
    ),
    "no-terminal-event": Fault(
        deed=deeds.no_terminal_event,
        sentence="carried out; the stream ends in good order, without the events that tell the end of the turn",
        operations=_STREAMS,
    ),
    "locked-database": Fault(
        deed=deeds.locked_database,
        sentence="somebody else holds the store's write lock for 16 seconds; a write waits for it, and is carried out",
    ),
    "refused-database": Fault(
        deed=deeds.refused_database, sentence="nothing is carried out; answered 503 `session_db_unavailable`"
    ),
    "compress": Fault(
        deed=deeds.compress,
        sentence="the turn begins with a rotating compression: the row ends as `compression`, a new one goes on",
        operations=_CHATS,
    ),
    "compress-in-place": Fault(
        deed=deeds.compress_in_place,
        sentence="the turn begins with a compression that keeps the id: older messages make room for a summary",
        operations=_CHATS,
    ),
}
"""Name → what a request meets."""


class FaultPlan:
    """Which faults still wait, per operation, in the order they were asked for. Each meets one request."""

    def __init__(self, wanted: Iterable[str] = (), *, operations: Iterable[str]) -> None:
        """Take `NAME:OPERATION:COUNT`, e.g. `lost-answer:session_chat:1`. NAME may be a compression and another one,
        `compress+lost-answer`: one request meets both. Raises ValueError, which says what is wrong and lists what
        there is.
        """
        known = sorted(operations)
        self._waiting: dict[str, deque[Deed]] = {}
        for text in wanted:
            deed, operation, count = _parsed(text, known)
            self._waiting.setdefault(operation, deque()).extend([deed] * count)

    def next(self, operation: str) -> Deed | None:
        """Take the fault that the next request of this operation meets."""
        waiting = self._waiting.get(operation)
        return waiting.popleft() if waiting else None


def _parsed(text: str, known: list[str]) -> tuple[Deed, str, int]:
    names, _, rest = text.partition(":")
    operation, _, count = rest.partition(":")
    first, _, second = names.partition("+")
    for name in (first, second) if second else (first,):
        if name not in FAULTS:
            raise ValueError(f"no such fault: {name}; there are: {', '.join(sorted(FAULTS))}")
        possible = sorted(FAULTS[name].operations or known)
        if operation not in possible:
            raise ValueError(f"{name} meets no operation {operation!r}; it meets: {', '.join(possible)}")
    if second and (first not in _COMPRESSIONS or second in _COMPRESSIONS):
        raise ValueError(f"{names}: only {' and '.join(sorted(_COMPRESSIONS))} go together with another fault, first")
    if not (count.isascii() and count.isdigit()) or len(count) > 9 or not 0 < int(count) <= _MOST:
        raise ValueError(f"{text}: give a count from 1 to {_MOST}, as in {names}:{operation}:1")
    deed = FAULTS[first].deed
    return (deeds.after(deed, FAULTS[second].deed) if second else deed), operation, int(count)
