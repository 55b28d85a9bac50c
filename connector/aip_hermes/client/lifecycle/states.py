"""What a lifecycle hands out: states of sessions and deletions are types, and a step takes the type that it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from aip_hermes.client.hermes_objects import Message, Session
from aip_hermes.ids import ActionId, ApprovalId, EndpointId, HermesSessionId, HermesSessionKey, PrincipalId

__all__ = [
    "ActiveMessages",
    "ClosedSession",
    "ConfirmEffects",
    "DeleteConfirmed",
    "DeleteDecided",
    "DeleteRequested",
    "Discovered",
    "EffectsLook",
    "Forked",
    "LifecyclePolicy",
    "OpenSession",
    "SharedSessionKey",
    "StepView",
    "VerifiedTurn",
]


class SharedSessionKey(UserWarning):
    """Parent and child have one session key: what either of them is told is remembered for both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LifecyclePolicy:
    """turns_after_close: Hermes never refuses a turn of a closed session; `refuse` does it here (design D14).
    wait_s: how long a step may wait for an end or a verdict before it says that it is not known yet. page_size: of
    listings, 2–200. rounds: how often a listing is read for a session that is not in it."""

    turns_after_close: Literal["refuse", "allow"] = "refuse"
    wait_s: float = 60.0
    page_size: int = 100
    rounds: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSession:
    """A session that may take turns. session_key: sent with its turns; None sends none."""

    id: HermesSessionId
    session_key: HermesSessionKey | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedSession:
    """A session that has ended. reason: as the row has it."""

    id: HermesSessionId
    reason: str
    session_key: HermesSessionKey | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Forked:
    """Both sides of a fork, as they were read back. shares_session_key: then SharedSessionKey was warned of."""

    source: ClosedSession
    child: OpenSession
    shares_session_key: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveMessages:
    """session: the one to go on with; another id than before only after a proven compression. own: whether the
    messages are this session's; 0.19.0 answers for a forked source with its child's, which proves nothing about it."""

    session: OpenSession | ClosedSession
    messages: tuple[Message, ...] = field(repr=False)
    whose: HermesSessionId
    own: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedTurn:
    """A turn that is stored. session: go on with it; `adopted` says whether its id is a new one.

    reply: model output, no proof of anything; None where a repeated step can't read it any more. proof: `messages`:
    question and reply were read back; `row`: the endpoint does not show this session's messages, and the row counts
    them; `decision`: a person took it for stored.
    """

    session: OpenSession
    action_id: ActionId
    reply: Any = field(repr=False)
    adopted: bool
    proof: Literal["messages", "row", "decision"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectsLook:
    """What an application is asked: turn: `stored`: do the systems show what the turn should have done? `absent`: do
    they show that it did nothing?"""

    step: str
    session_id: HermesSessionId
    action_id: ActionId
    turn: Literal["stored", "absent"]


ConfirmEffects = Callable[[EffectsLook], Awaitable[bool]]
"""The application's own look at the systems that a turn may have changed. It must only read; a repeated step asks
again until it was told yes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteRequested:
    """A deletion that a reviewer decides about. children: of the row, as they were. approval_id: None where the server
    asks nobody."""

    step: str
    session_id: HermesSessionId
    action_id: ActionId
    approval_id: ApprovalId | None
    children: tuple[HermesSessionId, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteDecided:
    """A deletion that was carried out, or so it was answered."""

    request: DeleteRequested


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteConfirmed:
    """The row is gone. orphaned: children that stay, without a parent. gone: children that went with it (subagents)."""

    session_id: HermesSessionId
    orphaned: tuple[HermesSessionId, ...]
    gone: tuple[HermesSessionId, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Discovered:
    """What a lifecycle stands on. digests: of the contracts, by operation; they change when a contract does. streams:
    whether turns can be streamed."""

    principal_id: PrincipalId
    endpoint: EndpointId
    digests: dict[str, str | None]
    delete_needs_approval: bool
    streams: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StepView:
    """Where a step stands, for a person. state: `planned`: begun, its end not known. attempt: 1 for the first."""

    step: str
    operation: str
    state: Literal["planned", "failed", "not_applied", "done"]
    attempt: int
    action_id: ActionId
    session_id: HermesSessionId | None
    why: str | None
    next_step: str


def handle_of(row: Session, *, session_key: HermesSessionKey | None) -> OpenSession | ClosedSession:
    """Return the handle that a row stands for."""
    if row.ended_at is None:
        return OpenSession(id=row.id, session_key=session_key)
    return ClosedSession(id=row.id, reason=row.end_reason or "", session_key=session_key)
