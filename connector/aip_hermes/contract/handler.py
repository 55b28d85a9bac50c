"""The protocols between a runtime and a connector. The two meet here and nowhere else.

The runtime owns identities, durability and order; the connector owns what a call means at its provider. One attempt
runs

    check → serial_key → (describe, when an approval is asked) → prepare → send → confirm

and only `send` may change anything at the provider: it sends at most one mutating request and never repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.contract.operation import Operation
from aip_hermes.contract.reconciliation import Uncertain, Verdict
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    CapabilityId,
    CorrelationId,
    EndpointId,
    IdempotencyKey,
    PrincipalId,
    TenantId,
)

__all__ = [
    "Actor",
    "Answer",
    "Call",
    "Chunk",
    "ChunkKind",
    "Connector",
    "Description",
    "FailureKind",
    "Handler",
    "JsonObject",
    "Offer",
    "Prepared",
    "Publish",
    "SerialKey",
    "State",
    "Traces",
    "stateless",
    "unpublished",
]

JsonObject = dict[str, Any]

FailureKind = Literal["session_busy", "outcome_unknown", "cancelled"]
"""What a runtime has to say in the connector's own error namespace.

session_busy: the serial lock was not had in time; certain, retryable. outcome_unknown: a crash between intent and
settlement; uncertain. deadline_exceeded, cancelled: certain before `send` was entered, else uncertain for mutations.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """The authenticated caller; never taken from a payload (design D18)."""

    principal_id: PrincipalId
    kind: str
    tenant_id: TenantId | None
    issuer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One attempt at one action.

    input: has passed the capability's input schema. deadline_ms: absolute, Unix milliseconds; None until the action
    holds its serial lock. attempt: counts from 1.
    """

    action_id: ActionId
    capability_id: CapabilityId
    input: Mapping[str, Any]
    actor: Actor
    idempotency_key: IdempotencyKey | None = None
    deadline_ms: int | None = None
    attempt: int = 1
    aip_session_id: AipSessionId | None = None
    correlation_id: CorrelationId | None = None
    trace_id: str | None = None
    delegation_chain: Sequence[Mapping[str, Any]] = ()
    previous_uncertain: ActionId | None = None
    """The turn of the same session that ended uncertain and may still be running (D13)."""
    interrupted: bool = False
    """The attempt was interrupted after its intent and is taken up again (`recovery: observe`): `send` only reads."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SerialKey:
    """What calls of one session share, so that they run one at a time (design D13).

    key: unique over all connectors of the runtime. use: see SerialRule. subject: names the session in error details.
    hold_s: how long an uncertain end keeps the session closed to exclusive calls, in seconds.
    """

    key: str
    use: Literal["turn", "exclusive"]
    subject: Mapping[str, str]
    hold_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """What a decision is about (design D25).

    snapshot: JSON compared again by `prepare`; ids, times and counts only. summary: one sentence for the reviewer, free
    of transcript text.
    """

    snapshot: JsonObject
    summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What was read before sending.

    facts: durable with the intent and kept for reconciliation: ids, counts, times, hashes; never text. context: handed
    to `send` and `confirm` of the same attempt, never stored.
    """

    facts: JsonObject = field(default_factory=dict)
    context: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A certain end. output: provider JSON plus our `_aip`. text: for a person, becomes a text message part.

    cancelled: the provider says that the run was cancelled; the result's status is then `cancelled`. requires_human:
    the provider waits for a person; the result's status is then `requires_human`, and another action answers it.
    begins: names the work that goes on at the provider after this answer, unique over all connectors; None where
    nothing is known to. ends: names work that is seen to be over, whoever began it: the session that it kept closed is
    free (design D13). A failure says the same in `ActionFailed.ends`.
    """

    output: JsonObject
    text: str | None = None
    cancelled: bool = False
    requires_human: bool = False
    begins: str | None = None
    ends: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Traces:
    """Whose text an end leaves behind, and whose text ends with it (design D23).

    Names that the connector makes, unique over all connectors: what is deleted is named here as it was named by those
    who left text about it. about: of what the output and the chunks hold text. erases: of what no text may stay.
    """

    about: frozenset[str] = frozenset()
    erases: frozenset[str] = frozenset()


ChunkKind = Literal["data", "progress", "tool", "thought", "preview", "pending_approval", "error", "done"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """One piece of a running stream. data: JSON, redacted. text: what of it is for a person; becomes a text part."""

    kind: ChunkKind
    data: JsonObject
    text: str | None = None


class Publish(Protocol):
    """Stores a chunk; it is durable and readable when this returns.

    Raises: ActionFailed when it can't be stored; the stream ends then, uncertain for a mutation.
    """

    async def __call__(self, chunk: Chunk) -> None: ...


async def unpublished(chunk: Chunk) -> None:
    """Where nobody keeps chunks: they are in the output only."""


class State(Protocol):
    """What a connector keeps about its calls: JSON objects by key, of one connector and one tenant (design §3).

    Durable when a method returns. Values hold ids, counts, times and hashes, and of a transcript no more than a result
    may (design D19).
    Raises: ActionFailed, certain, when the store can't be reached; nothing was written then.
    """

    async def read(self, key: str) -> tuple[JsonObject, int] | None:
        """Return a value and its version, or None."""

    async def compare_and_set(self, key: str, *, expected: int | None, value: JsonObject) -> int | None:
        """Store a value if the stored version is still `expected` (None: there is no value); return its new version.

        None: somebody else was faster, and nothing was stored.
        """


class _Stateless:
    """Where nobody keeps state: who needs it can't work."""

    async def read(self, key: str) -> tuple[JsonObject, int] | None:
        raise LookupError("this runtime keeps no state for connectors")

    async def compare_and_set(self, key: str, *, expected: int | None, value: JsonObject) -> int | None:
        raise LookupError("this runtime keeps no state for connectors")


stateless: Final[State] = _Stateless()


class Handler(Protocol):
    """One operation of one endpoint."""

    @property
    def operation(self) -> Operation: ...

    def check(self, call: Call) -> None:
        """Refuse what can't become a request: identities, headers, sizes, tenant, a missing endpoint key. No I/O.

        Raises: ActionFailed, certain. Nothing has been stored or sent then.
        """

    def serial_key(self, call: Call) -> SerialKey | None:
        """Name the session whose lock the call needs, or None."""

    async def describe(self, call: Call, *, state: State = stateless) -> Description | None:
        """Read what an approval will be about; None where there is nothing to read. state: only read here.

        Raises: ActionFailed, certain; then no approval is asked.
        """

    async def context(self, call: Call) -> JsonObject | None:
        """Read what else the call would touch, for whoever decides about it: ids and counts, now, with reads only.

        None where there is nothing to say. The runtime gives it two seconds.
        Raises: ActionFailed, certain.
        """

    async def prepare(self, call: Call, described: Mapping[str, Any] | None) -> Prepared:
        """Read before sending. `described`: the snapshot of the approval that released this call, or None.

        Raises: ActionFailed, certain (`session_superseded`, `target_changed`, a failed read). Nothing was changed.
        """

    async def send(
        self, call: Call, prepared: Prepared, *, publish: Publish = unpublished, state: State = stateless
    ) -> Answer:
        """Send the one request of this attempt; publish chunks as they come, each before the next is read.

        An interrupted call (`call.interrupted`) is one whose row says `recovery: observe`; it sends nothing that may
        change anything, reads what became of the request, and may publish further chunks. `prepared` is empty then.
        Raises: ActionFailed whose `uncertain` says whether the effect may have happened.
        """

    async def confirm(self, call: Call, prepared: Prepared, outcome: Answer | ActionFailed) -> Answer | ActionFailed:
        """Read back (at most 2 s) and return the same outcome with evidence added; never another outcome.

        A failed read-back is evidence too ("not confirmed"), never an exception.
        """

    async def reconcile(self, action: Uncertain) -> Verdict:
        """Read what became of an action whose effect nobody knows (design §5).

        Sends nothing that may change anything. What can't be read is a verdict too: indeterminate, with the cause.
        """

    def traces(self, call: Call, outcome: Answer | ActionFailed | None) -> Traces:
        """Name whose text this end holds and whose text it ends. No I/O. outcome: None before there is one."""

    async def cancel(self, call: Call, prepared: Prepared, *, state: State = stateless) -> JsonObject:
        """Stop at the provider what can be stopped, with at most one request that changes anything, while `send` is
        under way.

        Returns `{"stopped": bool, "note": str, "ended"?: bool}`: what was asked of the provider, and what goes on
        there. ended: true where `send` has seen the end and is about to return it; that is the result then. What can't
        be stopped is said, not raised; nor is a failed request.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A handler with the coordinates under which it is published.

    reads_first: `prepare` does I/O, so claim and intent are two commits. timeout_ms: published service level.
    approval: who decides at this endpoint, where it says more than all rows do.
    cancel_ms: how long `cancel` may take; None leaves it to the runtime.
    """

    capability_id: CapabilityId
    endpoint_id: EndpointId
    tenant_id: TenantId | None
    display_name: str
    base_url: str
    handler: Handler
    timeout_ms: int
    reads_first: bool
    cancel_ms: int | None = None
    approval: ApprovalTerms | None = None


class Connector(Protocol):
    """A set of offers with one error namespace. Built by an entry point of the group `aip.connectors`:
    `build(settings, *, clock, new_id, faults) -> Connector`."""

    @property
    def connector_id(self) -> str: ...

    def offers(self) -> Sequence[Offer]:
        """Every operation of every endpoint, endpoints in id order, operations in the order of the rows."""

    def failure(self, kind: FailureKind, message: str, *, details: Mapping[str, Any], uncertain: bool) -> ActionFailed:
        """Return the error of this connector's namespace for something that only the runtime noticed."""

    async def health(self) -> Mapping[EndpointId, tuple[bool, str]]:
        """Ask every endpoint whether it lives: ready, and a sentence without origin or credential."""

    async def aclose(self) -> None:
        """Close connections. Idempotent."""
