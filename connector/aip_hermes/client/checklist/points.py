"""The checklist as a table: fourteen points, what each says, and on which others it stands.

Source: issue 5; the order is that of a session's life.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aip_hermes.client.checklist import branching, ending, making, recovering, talking
from aip_hermes.client.checklist.case import Case, Point

__all__ = ["POINTS", "Row"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One point. needs: the ids of the points that must have passed before."""

    number: int
    id: str
    sentence: str
    play: Callable[[Case, Point], Awaitable[None]]
    needs: tuple[str, ...] = ()


def _row(number: int, id: str, sentence: str, play: Callable[[Case, Point], Awaitable[None]], *needs: str) -> Row:
    return Row(number=number, id=id, sentence=sentence, play=play, needs=needs)


POINTS: Final = (
    _row(1, "discovery", "The endpoint's capabilities are found in the caller's own catalogue, with their contracts.",
         making.discover),
    _row(2, "identities", "Action ID, key, session id and session key are chosen first, and what is no id is refused.",
         making.identities, "discovery"),
    _row(3, "create", "A session is created under the intended id and read back by it.",
         making.create, "identities"),
    _row(4, "replay", "The same key again returns the first answer, says so, and makes nothing.",
         making.replayed, "create"),
    _row(5, "list", "The list is read page by page, each session once, and the exact row decides.",
         making.listed, "create"),
    _row(6, "turn", "A turn counts when its question and a finished reply are stored.",
         talking.turn, "create"),
    _row(7, "transcript", "The active messages are read after a turn, and their session is checked.",
         talking.transcript, "turn"),
    _row(8, "change", "Only title and end reason can be changed; a change is read back.",
         talking.renamed, "turn"),
    _row(9, "fork", "A fork is read back on both sides.",
         branching.forked, "turn"),
    _row(10, "separation", "A child's turns do not reach its parent, and no fork is taken for a continuation.",
         branching.apart, "fork"),
    _row(11, "close", "The first end reason stays, and no turn is sent after an end.",
         branching.closed, "separation"),
    _row(12, "delete-request", "A delete waits for another person; its requester can't approve it.",
         ending.delete_requested, "close"),
    _row(13, "delete-confirmed", "After the approval the same Action ends, and reads show what is left.",
         ending.delete_confirmed, "delete-request"),
    _row(14, "recovery", "What became of an action is asked by its id and reconciled; nothing is sent again.",
         recovering.recovered, "turn"),
)  # fmt: skip
"""In this order."""
