"""What the routes of one endpoint share, and the quirks it may have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from aip_hermes.embedded.agent import Turns
from aip_hermes.embedded.agent.habits import Habits
from aip_hermes.embedded.agent.queues import Queues
from aip_hermes.embedded.agent.runs import Runs
from aip_hermes.embedded.api.repeats import Repeats
from aip_hermes.embedded.session_db import JobStore, ResponseStore, SessionDB
from aip_hermes.ports import Clock, NewId
from aip_hermes.secret import Secret

__all__ = [
    "ANSWERS_ON_FAILURE",
    "CHAT_IGNORES_CONTINUATION",
    "FORK_CHILD_RESOLVES",
    "FORK_NOT_ATOMIC",
    "QUIRKS",
    "TURNS_NOT_SERIALISED",
    "UNCHECKED_FORK_ID",
    "Endpoint",
    "chosen_quirks",
]

FORK_NOT_ATOMIC: Final = "fork-not-atomic"
FORK_CHILD_RESOLVES: Final = "fork-child-resolves"
CHAT_IGNORES_CONTINUATION: Final = "chat-ignores-continuation"
TURNS_NOT_SERIALISED: Final = "turns-not-serialised"
UNCHECKED_FORK_ID: Final = "unchecked-fork-id"
ANSWERS_ON_FAILURE: Final = "answers-on-failure"

QUIRKS: Final[dict[str, str]] = {
    FORK_NOT_ATOMIC: "a fork ends its source, inserts the child, copies and sets the title in steps of their own; "
    "a bad title comes last and leaves a half fork",
    FORK_CHILD_RESOLVES: "forks carry no mark, and the messages of a source are answered by its newest child",
    CHAT_IGNORES_CONTINUATION: "a chat on a compressed id runs on that row's own history and is stored there, where "
    "the messages route does not show it",
    TURNS_NOT_SERIALISED: "chats of one session run at once, each on the history it found, and their rows interleave",
    UNCHECKED_FORK_ID: "a fork takes any id that is not blank and has no CR, LF or NUL, such as one with slashes",
    ANSWERS_ON_FAILURE: "a chat answers 200 also when the model failed (with a text about it and no usage), when the "
    "history could not be read (on an empty one) and when a row could not be stored",
}
"""Behaviours of release 0.19.0 that a client must survive: name → what changes. None is on by default."""


def chosen_quirks(names: Iterable[str]) -> frozenset[str]:
    """Return the quirks by name. Raises ValueError, listing those that exist, for another name."""
    wanted = frozenset(names)
    if unknown := sorted(wanted - QUIRKS.keys()):
        raise ValueError(f"no such quirk: {', '.join(unknown)}; there are: {', '.join(sorted(QUIRKS))}")
    return wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One endpoint: a borrowed store, the turns on it, its key and its name.

    model_name: what `/v1/models` advertises and rows get as their default label. conversations: queues of the responses
    that continue one by name. started_at_ms: Unix time.
    """

    db: SessionDB
    jobs: JobStore
    responses: ResponseStore
    turns: Turns
    runs: Runs
    repeats: Repeats
    conversations: Queues
    key: Secret
    quirks: frozenset[str]
    model_name: str
    clock: Clock
    new_id: NewId
    started_at_ms: int

    @property
    def habits(self) -> Habits:
        """How chat turns behave with the quirks of this endpoint."""
        return Habits(
            follows_compression=CHAT_IGNORES_CONTINUATION not in self.quirks,
            one_at_a_time=TURNS_NOT_SERIALISED not in self.quirks,
            admits_failure=ANSWERS_ON_FAILURE not in self.quirks,
        )
