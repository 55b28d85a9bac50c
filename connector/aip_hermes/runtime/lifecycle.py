"""The states of an action and every legal move between them, with its cause and the statement that makes it.

The statements live in store/*.sql and guard themselves: a move that is not in this table changes nothing, whoever tries
it. A test walks all of them over all states. A submission in mode async is claimed and put into the queue in one
transaction: nobody sees it running before a worker takes it. Source: runtime behaviour §3; design D3, D4, D8, D9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["MOVES", "STATES", "TERMINAL", "Guard", "Move", "State"]

State = Literal["queued", "running", "pending_approval", "completed", "failed", "cancelled"]

STATES: Final[tuple[State, ...]] = ("queued", "running", "pending_approval", "completed", "failed", "cancelled")
TERMINAL: Final[frozenset[State]] = frozenset({"completed", "failed", "cancelled"})

Guard = Literal["attempt", "lease", "unsent", "queued", "free", "approval", "due", "timely", "late"]
"""What a move asks of the row besides its state. attempt: the number is the mover's. lease: so is the lease, where it
has one. unsent: no intent is recorded. queued: it came from the queue. free: the stored failure binds nobody (D3).
approval: it waits for this approval. due, timely, late: its time has come, has not passed, or has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One line of the table. sources: empty for an action that does not exist yet."""

    cause: str
    statement: str
    sources: frozenset[State]
    target: State
    guards: frozenset[Guard] = frozenset()


def _move(cause: str, statement: str, sources: tuple[State, ...], target: State, *guards: Guard) -> Move:
    return Move(cause=cause, statement=statement, sources=frozenset(sources), target=target, guards=frozenset(guards))


MOVES: Final[tuple[Move, ...]] = (
    _move("a submission passes its checks", "claim_action", (), "running"),
    _move("a safe read succeeded; it is stored with its end", "claim_ended", (), "completed"),
    _move("a safe read failed; it is stored with its end", "claim_ended", (), "failed"),
    _move("the same submission again, after a failure that binds nobody", "claim_next_attempt", ("failed",), "running",
          "free"),
    _move("the requester asked for mode async", "enqueue_action", ("running",), "queued", "attempt", "unsent"),
    _move("a policy wants an approval", "park_action", ("running",), "pending_approval", "attempt", "unsent"),
    _move("a worker takes what is due", "take_due", ("queued",), "running", "due", "timely"),
    _move("a worker takes what has waited too long, to end it", "take_late", ("queued",), "running", "late"),
    _move("a try ended certain, and another one follows", "wait_again", ("running",), "queued", "attempt", "lease"),
    _move("its worker is gone, and nothing was sent", "put_back", ("running",), "queued", "unsent", "queued"),
    _move("its approval was given", "release_parked", ("pending_approval",), "running", "approval"),
    _move("the attempt succeeded", "settle_action", ("running",), "completed", "attempt", "lease"),
    _move("the attempt failed; its approval was denied, revoked or ran out", "settle_action",
          ("running", "queued", "pending_approval"), "failed", "attempt", "lease"),
    _move("its owner cancelled it, or the provider says that it was cancelled", "settle_action",
          ("running", "queued", "pending_approval"), "cancelled", "attempt", "lease"),
)  # fmt: skip
"""In the order of a life."""
