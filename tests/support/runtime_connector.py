"""A connector whose provider is a script, for tests of the runtime: every read and send is counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.contract import Operation, load_operations
from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.contract.handler import (
    Answer,
    Call,
    Description,
    FailureKind,
    JsonObject,
    Offer,
    Prepared,
    Publish,
    SerialKey,
    State,
    Traces,
    stateless,
    unpublished,
)
from aip_hermes.contract.reconciliation import Uncertain, Verdict
from aip_hermes.errors import ActionFailed, ProviderFailed
from aip_hermes.ids import CapabilityId, EndpointId, TenantId
from aip_hermes.ports import Faults, NoFaults

__all__ = [
    "ScriptedCancelled",
    "ScriptedConnector",
    "ScriptedCredential",
    "ScriptedOutcomeUnknown",
    "ScriptedRejected",
    "ScriptedSessionBusy",
    "ScriptedTemporary",
    "capability",
]


class ScriptedSessionBusy(ProviderFailed, code="connector.scripted.session_busy", category="temporary", retryable=True):
    """The lock was not had."""


class ScriptedOutcomeUnknown(ProviderFailed, code="connector.scripted.outcome_unknown"):
    """A crash between intent and settlement."""


class ScriptedCancelled(ProviderFailed, code="connector.scripted.cancelled", category="temporary"):
    """Cancelled."""


class ScriptedTemporary(ProviderFailed, code="connector.scripted.temporary", category="temporary", retryable=True):
    """Certain and retryable, as a refused connection is."""


class ScriptedCredential(ProviderFailed, code="connector.scripted.credential", category="auth", outside_request=True):
    """Certain, final, and no fault of the request."""


class ScriptedRejected(ProviderFailed, code="connector.scripted.rejected", category="permanent"):
    """Certain and final."""


_KINDS: Mapping[FailureKind, type[ActionFailed]] = {
    "session_busy": ScriptedSessionBusy,
    "outcome_unknown": ScriptedOutcomeUnknown,
    "cancelled": ScriptedCancelled,
}

Send = Callable[[Call], Awaitable[Answer]]


def capability(operation: str, endpoint: str = "primary") -> str:
    """Return the id under which the scripted connector offers an operation."""
    return f"cap:hermes_agent:{endpoint}:{operation}"


async def _echo(call: Call) -> Answer:
    return Answer(output={"echo": dict(call.input)}, text=None)


async def _undecided(action: Uncertain) -> Verdict:
    return Verdict(outcome="indeterminate", reason="scripted", explanation="a script proves nothing")


async def _no_context(call: Call) -> JsonObject | None:
    return None


@dataclass
class ScriptedConnector:
    """Offers rows of the real file. `send` plays the provider; `failures` raises at a step, for example `prepare`."""

    tenant: str | None = "tenant-a"
    endpoints: Sequence[str] = ("primary",)
    operations: Sequence[str] = (
        "session_create", "session_delete", "session_fork", "session_chat", "session_get", "session_patch",
    )  # fmt: skip
    send: Send = _echo
    failures: dict[str, Exception] = field(default_factory=dict)
    facts: JsonObject = field(default_factory=lambda: {"rows": 1})
    snapshot: JsonObject = field(default_factory=lambda: {"started_at": 1893456000.42, "message_count": 4})
    context: Callable[[Call], Awaitable[JsonObject | None]] = _no_context
    approval: ApprovalTerms | None = None
    """Who decides; None: as the rows say."""
    hold_s: float = 900.0
    sends: list[Call] = field(default_factory=list)
    steps: list[tuple[str, str]] = field(default_factory=list)
    described: list[Mapping[str, Any] | None] = field(default_factory=list)
    confirm: Callable[[Answer | ActionFailed], Answer | ActionFailed] = lambda outcome: outcome
    closed: bool = False
    stream: Callable[[Publish], Awaitable[Answer]] | None = None
    stopped: Mapping[str, Any] = field(default_factory=lambda: {"stopped": True, "note": "asked once"})
    streaming: frozenset[str] = frozenset()
    """Operations that are offered as streaming and cancellable, whatever their rows say."""
    faults: Faults = field(default_factory=NoFaults)
    queueing: frozenset[str] = frozenset()
    """Operations that are offered in mode async too."""
    observing: frozenset[str] = frozenset()
    """Operations that are offered with `recovery: observe`."""
    observed: list[Call] = field(default_factory=list)
    observe: Send = _echo
    """Plays the provider to whoever only looks what became of a request."""
    reconciled: list[Uncertain] = field(default_factory=list)
    verdict: Callable[[Uncertain], Awaitable[Verdict]] = _undecided
    """Plays the look at the provider."""
    keeping: Callable[[Call, State], Awaitable[Answer]] | None = None
    """Plays a handler that keeps something about its calls, in place of `send` and `observe`."""

    @property
    def connector_id(self) -> str:
        return "scripted"

    def offers(self) -> Sequence[Offer]:
        rows = load_operations()
        return [
            Offer(
                capability_id=CapabilityId(capability(name, endpoint)),
                endpoint_id=EndpointId(endpoint),
                tenant_id=None if self.tenant is None else TenantId(self.tenant),
                display_name=endpoint,
                base_url="http://127.0.0.1:8642/",
                handler=_Handler(connector=self, operation=self._row(rows[name])),
                timeout_ms=rows[name].timeout_ms,
                reads_first=rows[name].prepare != "none",
                approval=self.approval,
            )
            for endpoint in self.endpoints
            for name in self.operations
        ]

    def _row(self, row: Operation) -> Operation:
        if row.name in self.observing:
            row = row.model_copy(update={"recovery": "observe"})
        if row.name in self.queueing:
            return row.model_copy(update={"modes": ("sync", "async")})
        if row.name not in self.streaming:
            return row
        return row.model_copy(update={"modes": ("sync", "streaming"), "completion": "streaming", "cancel": True})

    def failure(self, kind: FailureKind, message: str, *, details: Mapping[str, Any], uncertain: bool) -> ActionFailed:
        return _KINDS[kind](message, details=details, uncertain=uncertain)

    async def health(self) -> Mapping[EndpointId, tuple[bool, str]]:
        return {EndpointId(endpoint): (True, "answers") for endpoint in self.endpoints}

    async def aclose(self) -> None:
        self.closed = True

    def note(self, step: str, call: Call) -> None:
        """Record a step and raise what the script says for it."""
        self.steps.append((step, call.action_id))
        if step in self.failures:
            raise self.failures[step]

    def seen(self, step: str) -> int:
        """How often a step was taken."""
        return sum(1 for name, _ in self.steps if name == step)


@dataclass
class _Handler:
    connector: ScriptedConnector
    operation: Operation

    def check(self, call: Call) -> None:
        self.connector.note("check", call)

    def serial_key(self, call: Call) -> SerialKey | None:
        if self.operation.serial == "none":
            return None
        session = str(call.input.get("session_id", ""))
        return SerialKey(
            key=f"scripted:{session}",
            use="exclusive" if self.operation.serial == "exclusive" else "turn",
            subject={"session_id": session},
            hold_s=self.connector.hold_s,
        )

    async def describe(self, call: Call, *, state: State = stateless) -> Description | None:
        self.connector.note("describe", call)
        return Description(snapshot=self.connector.snapshot, summary="It holds 4 messages.")

    async def context(self, call: Call) -> JsonObject | None:
        self.connector.note("context", call)
        return await self.connector.context(call)

    async def prepare(self, call: Call, described: Mapping[str, Any] | None) -> Prepared:
        self.connector.described.append(described)
        self.connector.note("prepare", call)
        return Prepared(facts=self.connector.facts)

    async def send(
        self, call: Call, prepared: Prepared, *, publish: Publish = unpublished, state: State = stateless
    ) -> Answer:
        (self.connector.observed if call.interrupted else self.connector.sends).append(call)
        self.connector.note("observe" if call.interrupted else "send", call)
        if self.connector.keeping is not None:
            return await self.connector.keeping(call, state)
        if call.interrupted:
            return await self.connector.observe(call)
        if not self.operation.read_only:
            await self.connector.faults.reach("after_send")
        if self.connector.stream is not None:
            return await self.connector.stream(publish)
        return await self.connector.send(call)

    async def confirm(self, call: Call, prepared: Prepared, outcome: Answer | ActionFailed) -> Answer | ActionFailed:
        self.connector.note("confirm", call)
        return self.connector.confirm(outcome)

    async def reconcile(self, action: Uncertain) -> Verdict:
        self.connector.reconciled.append(action)
        return await self.connector.verdict(action)

    def traces(self, call: Call, outcome: Answer | ActionFailed | None) -> Traces:
        session = f"scripted:{call.input.get('session_id', '')}"
        erases = frozenset({session} if self.operation.method == "DELETE" else ())
        return Traces(about=frozenset({session} if self.operation.text != "none" else ()), erases=erases)

    async def cancel(self, call: Call, prepared: Prepared, *, state: State = stateless) -> JsonObject:
        self.connector.note("cancel", call)
        return dict(self.connector.stopped)
