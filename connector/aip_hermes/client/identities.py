"""The identities of a call, and who keeps them before it is sent.

A call is looked up by its Action ID, so the ID must be known before the answer can be lost. What is kept holds no
input and no transcript: a hash tells whether a submission is the same one. Source: design §1, §3 step 1, D19, D23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.failures import ClientFailure
from aip_hermes.ids import ActionId, CapabilityId, EndpointId, HermesSessionId, HermesSessionKey, IdempotencyKey

__all__ = [
    "CallIdentities",
    "CallRecord",
    "CallState",
    "IdentityClash",
    "IdentityStore",
    "IdentityStoreFailed",
    "Instruction",
    "InstructionKind",
    "endpoint_of",
]

CallState = Literal["open", "pending", "uncertain", "settled"]
"""open: about to be sent, or sent, and no answer is known. pending: taken in, its end is to come. uncertain: ended, and
its effect may have happened. settled: its end is known."""

_HERMES = "cap:hermes_agent:"


class IdentityStoreFailed(ClientFailure, code="client.identity_store", category="permanent"):
    """The identities could not be kept, so nothing was sent."""

    fixed_next_step = "make the file of identities writable, or name another one, and call again"


class IdentityClash(ClientFailure, code="client.identity_clash", category="permanent"):
    """The Action ID stands for another call already; nothing was sent."""

    fixed_next_step = "take a new Action ID for a new call; to repeat a call, repeat it unchanged"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallIdentities:
    """What a call is found by again. session_id: addressed by the call; new_session_id: the one that it makes."""

    action_id: ActionId
    capability_id: CapabilityId | None = None
    endpoint: EndpointId | None = None
    idempotency_key: IdempotencyKey | None = None
    session_id: HermesSessionId | None = None
    new_session_id: HermesSessionId | None = None
    session_key: HermesSessionKey | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRecord:
    """One consequential call.

    server: origin, `http://host:port`. session_id: addressed by the call; new_session_id: the one that it makes.
    content_hash: SHA-256 of everything that makes two submissions the same. group, step: what the call is part of, for
    whoever made it. attempts: how often it was about to be sent. result: what became of it, redacted; None while
    nothing is known: `{"outcome", "status", "output"?, "error"?, "sha256"?}`. Times are Unix milliseconds.
    """

    action_id: ActionId
    server: str
    capability_id: CapabilityId
    endpoint: EndpointId | None = None
    idempotency_key: IdempotencyKey | None = None
    session_id: HermesSessionId | None = None
    new_session_id: HermesSessionId | None = None
    session_key: HermesSessionKey | None = field(default=None, repr=False)
    mode: ActionMode = "sync"
    content_hash: str
    group: str | None = None
    step: str | None = None
    state: CallState = "open"
    attempts: int = 1
    result: Mapping[str, Any] | None = None
    begun_at: int = 0
    sent_at: int = 0
    updated_at: int = 0

    @property
    def identities(self) -> CallIdentities:
        """What the call is found by."""
        return CallIdentities(
            action_id=self.action_id,
            capability_id=self.capability_id,
            endpoint=self.endpoint,
            idempotency_key=self.idempotency_key,
            session_id=self.session_id,
            new_session_id=self.new_session_id,
            session_key=self.session_key,
        )


InstructionKind = Literal["decision", "cancel"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """One decision about an approval, or one request to cancel an action.

    instruction_id: the decision's id; of a cancel `cancel:` and the Action ID. about: the approval, or the action.
    content_hash: SHA-256 of everything that makes two of them the same, the reason included. said: what a repeat must
    not change: `{"decision", "decided_at", "policy_hash"?}`; no reason. state: `open`: about to be sent, or sent, and
    no answer is known. result: what became of it, redacted: `{"outcome", "error"?}`. Times are Unix milliseconds.
    """

    server: str
    instruction_id: str
    kind: InstructionKind
    about: str
    content_hash: str
    said: Mapping[str, Any] = field(default_factory=dict)
    state: Literal["open", "settled"] = "open"
    attempts: int = 1
    result: Mapping[str, Any] | None = None
    begun_at: int = 0
    updated_at: int = 0


class IdentityStore(Protocol):
    """Keeps calls durably: what a method returned survives a kill of the process.

    Raises, from each method: IdentityStoreFailed.
    """

    async def begin(self, record: CallRecord) -> CallRecord:
        """Keep `record` before it is sent, and return it as kept.

        A record that is there already must be of the same call: it counts one more attempt, and is `open` again unless
        its answer says completed. Raises: IdentityClash.
        """

    async def keep_answer(self, action_id: ActionId, *, state: CallState, result: Mapping[str, Any]) -> None:
        """Keep what became of a call. result: redacted by the caller."""

    async def call(self, action_id: ActionId) -> CallRecord | None:
        """Return one record, or None."""

    async def open_calls(
        self, *, server: str | None = None, endpoint: EndpointId | None = None, group: str | None = None
    ) -> Sequence[CallRecord]:
        """Return the calls whose end is not known here, oldest first: `open`, `pending` and `uncertain`."""

    async def calls(self, *, group: str) -> Sequence[CallRecord]:
        """Return every call of a group, oldest first."""

    async def begin_instruction(self, instruction: Instruction) -> Instruction:
        """Keep a decision or a request to cancel before it is sent, and return it as kept.

        Of one that is there already `said` stands; it counts one more attempt and is `open` again. Raises:
        IdentityClash for one of other content.
        """

    async def keep_said(self, instruction: Instruction, *, result: Mapping[str, Any], settled: bool) -> None:
        """Keep what became of one. result: redacted by the caller."""

    async def instruction(self, *, server: str, instruction_id: str) -> Instruction | None:
        """Return one, or None."""

    async def open_instructions(self, *, server: str | None = None) -> Sequence[Instruction]:
        """Return those whose end is not known here, oldest first."""

    async def remember(self, *, group: str, name: str, value: Any) -> None:
        """Keep one JSON value of a group, in place of an earlier one of that name. No transcript, no credential."""

    async def remember_first(self, *, group: str, name: str, value: Any) -> Any:
        """Keep one JSON value of a group unless there is one of that name; return the one that is kept then."""

    async def recall(self, *, group: str) -> dict[str, Any]:
        """Return every value that was remembered of a group, by name."""


def endpoint_of(capability_id: CapabilityId) -> EndpointId | None:
    """Return the Hermes endpoint that a capability belongs to, or None for one of another connector."""
    if not capability_id.startswith(_HERMES):
        return None
    endpoint, _, operation = capability_id.removeprefix(_HERMES).partition(":")
    try:
        return EndpointId(endpoint) if operation else None
    except ValueError:
        return None
