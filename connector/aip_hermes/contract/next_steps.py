"""The safe next action after a verdict: one sentence by phase of a session's life and by what is proven.

The phases are those of recovery in the session-lifecycle guide: create, turn, change, fork, delete; and beside a
session's life the start of a response, a run or a job. A sentence never asks for a repetition of the action itself: its
Action ID and its key stand for what was sent, so whatever is sent anew has others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from aip_hermes.contract.operation import ReconcileRule
from aip_hermes.contract.reconciliation import VerdictOutcome

__all__ = ["PHASE_OF_RULE", "STEPS", "Phase", "Situation", "next_step", "situation_of"]

Phase = Literal["read", "create", "turn", "start", "change", "fork", "delete"]

Situation = Literal["applied", "not_applied", "partially_applied", "waiting", "undecided"]
"""waiting: indeterminate now, and time may change that. undecided: indeterminate, and a person has to look."""

PHASE_OF_RULE: Final[Mapping[ReconcileRule, Phase]] = MappingProxyType(
    {
        "none": "read",
        "session_row": "create",
        "session_patch": "change",
        "session_gone": "delete",
        "session_fork": "fork",
        "session_turn": "turn",
        "text_listing": "start",
        "run_start": "start",
        "run_answer": "change",
        "target_gone": "delete",
        "target_state": "change",
        "job_listing": "start",
        "job_change": "change",
        "job_due": "change",
    }
)

_WAIT: Final = "Send nothing; reconcile the action again after retry_after_ms."

STEPS: Final[Mapping[tuple[Phase, Situation], str]] = MappingProxyType(
    {
        ("read", "applied"): "Use the stored result, or read again under a new Action ID.",
        ("read", "not_applied"): "Read again under a new Action ID; a read changes nothing.",
        ("read", "partially_applied"): "Read again under a new Action ID; a read changes nothing.",
        ("read", "waiting"): _WAIT,
        ("read", "undecided"): "Read again under a new Action ID; a read changes nothing.",
        ("create", "applied"): "Go on with the session under this id; do not create it again.",
        ("create", "not_applied"): (
            "Create the session under the same session id, with a new Action ID and a new idempotency key."
        ),
        ("create", "partially_applied"): "Read the exact row and complete what is missing by a patch.",
        ("create", "waiting"): _WAIT,
        ("create", "undecided"): (
            "Read the exact row and the listing; use a new session id where this one may be somebody else's."
        ),
        ("turn", "applied"): (
            "Read the messages, take the stored reply as the turn's, and go on; do not send the turn again."
        ),
        ("turn", "not_applied"): (
            "Check the systems that the turn's tools may have changed, then send it again with a new Action ID"
            " and, where one is used, a new key."
        ),
        ("turn", "partially_applied"): (
            "The message is stored without a finished reply: read the messages and check the systems that the tools may"
            " have changed, then ask for the rest in a new turn that does not repeat the message."
        ),
        ("turn", "waiting"): (
            "Send nothing: the turn may still be running; read the messages later and reconcile the action again."
        ),
        ("turn", "undecided"): (
            "Read the row, the messages and the systems that the tools may have changed, and let a person decide"
            " before the turn is sent again."
        ),
        ("start", "applied"): "Go on with what was found; do not start it again.",
        ("start", "not_applied"): "Start it again with a new Action ID and a new key.",
        ("start", "partially_applied"): "Follow what was found to its end; do not start it again.",
        ("start", "waiting"): _WAIT,
        ("start", "undecided"): (
            "List the sessions or jobs of the endpoint since the action was sent, check the systems that it may have"
            " changed, and let a person decide before it is started again."
        ),
        ("change", "applied"): "Go on with the values that were read; do not send the change again.",
        ("change", "not_applied"): (
            "Read the row and send the change again with a new Action ID and a new key, if it is still wanted."
        ),
        ("change", "partially_applied"): (
            "Read the row and send what is missing alone, with a new Action ID and a new key."
        ),
        ("change", "waiting"): _WAIT,
        ("change", "undecided"): (
            "Read what the change was about and compare it with what you want; send only the difference, with a new"
            " Action ID and a new key."
        ),
        ("fork", "applied"): "Read source and child, and go on in the child; do not fork again.",
        ("fork", "not_applied"): ("Read the source, then fork with the same child id, a new Action ID and a new key."),
        ("fork", "partially_applied"): (
            "Inspect source and child: the source may be ended and the child without its title or messages. Complete"
            " the child by a patch, or fork to another child id with a new Action ID and a new key."
        ),
        ("fork", "waiting"): _WAIT,
        ("fork", "undecided"): (
            "Inspect the source and every child of it, and let a person decide before a fork is sent with a new key."
        ),
        ("delete", "applied"): (
            "Record it as deleted; look at its children, and do not delete it again: the id may be taken anew."
        ),
        ("delete", "not_applied"): (
            "It still exists: ask for a new approval with a new Action ID and a new key, if it is still to go."
        ),
        ("delete", "partially_applied"): "Read it and its children, and let a person decide.",
        ("delete", "waiting"): _WAIT,
        ("delete", "undecided"): (
            "Read what is under the id now and whose it is; never delete it on the strength of the old approval."
        ),
    }
)


def situation_of(outcome: VerdictOutcome, *, retry_after_ms: int | None) -> Situation:
    """Return how a verdict stands for somebody who must decide what to do next."""
    if outcome != "indeterminate":
        return outcome
    return "undecided" if retry_after_ms is None else "waiting"


def next_step(rule: ReconcileRule, outcome: VerdictOutcome, *, retry_after_ms: int | None) -> str:
    """Return the safe next action after a verdict about an operation with that rule."""
    return STEPS[PHASE_OF_RULE[rule], situation_of(outcome, retry_after_ms=retry_after_ms)]
