"""One action on its way through the pipeline: the verified request, and what the checks have found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from aip_hermes import wire
from aip_hermes.contract import Published
from aip_hermes.contract.handler import Actor, Call, Connector, Handler, Offer
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    CapabilityId,
    CorrelationId,
    IdempotencyKey,
    PrincipalId,
    TenantId,
)
from aip_hermes.runtime import digests
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.messages import MessageClaim
from aip_hermes.runtime.store import to_json
from aip_hermes.telemetry import About

__all__ = ["RESERVATION_GRACE_MS", "Fence", "Resumption", "Submission", "Taken"]

RESERVATION_GRACE_MS: Final = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Fence:
    """A key within its declared scope and the caller's tenant (design D6). ttl_ms: None keeps it for ever."""

    scope: str
    partition: str
    key: IdempotencyKey
    ttl_ms: int | None

    def params(self) -> dict[str, str]:
        """Return the key's columns."""
        return {"key_scope": self.scope, "key_partition": self.partition, "key_text": str(self.key)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumption:
    """An approval that released this action. snapshot: what the decision was about (design D25)."""

    approval_id: str
    snapshot: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A queued action in a worker's hands.

    tries: begun in this stay in the queue, this one included.
    """

    tries: int
    max_tries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A request whose caller is known. `published` and `connector` stand once the capability was found.

    interrupted: its intent was recorded by a process that is gone; what became of it is only looked at. taken: set
    where it comes from the queue. lease: its number, once it is claimed; whoever takes the action next has a higher
    one, and only the highest may settle.
    """

    action: wire.Action
    principal: wire.Principal
    actor: Actor
    context: MessageContext
    message: MessageClaim | None = None
    reads_others: bool = False
    invoke: tuple[str, ...] = ("*",)
    published: Published | None = None
    connector: Connector | None = None
    fence: Fence | None = None
    attempt: int = 1
    resumed: Resumption | None = None
    interrupted: bool = False
    taken: Taken | None = None
    lease: int | None = None

    @classmethod
    def of(
        cls, action: wire.Action, caller: Caller, context: MessageContext, message: MessageClaim | None = None
    ) -> Self:
        """Bind an action to its verified caller; an identity claim of the payload is dropped."""
        return cls(
            action=action if action.identity is None else action.model_copy(update={"identity": None}),
            principal=caller.named,
            actor=caller.actor,
            context=context,
            message=message,
            reads_others=caller.may_read_others("action"),
            invoke=caller.invoke,
        )

    @property
    def action_id(self) -> ActionId:
        return ActionId(self.action.id)

    @property
    def tenant(self) -> str:
        """The tenant column: the empty string stands for none."""
        return self.actor.tenant_id or ""

    @property
    def about(self) -> About:
        """What is told about the attempt to who counts and who follows."""
        observability = self.action.observability
        return About(
            tenant=self.tenant,
            action_id=self.action.id,
            capability_id=self.action.capability_id,
            attempt=self.attempt,
            trace_id=observability.trace_id if observability else None,
        )

    @property
    def offer(self) -> Offer:
        assert self.published is not None  # noqa: S101 - the capability check comes first
        return self.published.offer

    @property
    def handler(self) -> Handler:
        return self.offer.handler

    @property
    def capability(self) -> wire.Capability:
        assert self.published is not None  # noqa: S101 - the capability check comes first
        return self.published.capability

    @property
    def contract(self) -> wire.CapabilityContract:
        contract = self.capability.contract
        assert contract is not None  # noqa: S101 - every published row has one
        return contract

    @property
    def timeout_ms(self) -> int:
        """The smaller of what the caller and the service level allow."""
        return min(self.action.timeout_ms or self.offer.timeout_ms, self.offer.timeout_ms)

    def reserved_until(self, now: int) -> int:
        """Return when the reservation is said to end, Unix milliseconds; never acted upon (design D4)."""
        return now + self.timeout_ms + RESERVATION_GRACE_MS

    @property
    def read_only(self) -> bool:
        """A safe read: no claim, no intent, one transaction at settle."""
        return self.handler.operation.read_only and self.approval_policy is None

    @property
    def approval_policy(self) -> wire.ApprovalPolicy | None:
        """The policy that asks for a decision, or None. Source: runtime behaviour §5, authorization policy."""
        policy = self.contract.approval
        if policy is not None and policy.required:
            return policy
        if self.capability.requires_human_approval or self.capability.risk in ("high", "critical"):
            return wire.ApprovalPolicy(required=True, approver_selector=wire.TenantPolicySelector())
        return None

    def call(self, *, deadline_ms: int | None = None, previous_uncertain: ActionId | None = None) -> Call:
        """Return the attempt as the handler sees it."""
        observability = self.action.observability
        return Call(
            action_id=self.action_id,
            capability_id=CapabilityId(self.action.capability_id),
            input=self.action.input,
            actor=self.actor,
            idempotency_key=self.fence.key if self.fence else None,
            deadline_ms=deadline_ms,
            attempt=self.attempt,
            aip_session_id=self.context.aip_session_id,
            correlation_id=self.context.correlation_id,
            trace_id=observability.trace_id if observability else None,
            delegation_chain=tuple(hop.wire() for hop in self.action.delegation_chain),
            previous_uncertain=previous_uncertain,
            interrupted=self.interrupted,
        )

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with members replaced."""
        return replace(self, **changes)

    def parked(self) -> dict[str, Any]:
        """Return what an approved action needs to run later, as JSON."""
        return {
            "action": self.action.wire(),
            "principal": self.principal.wire(),
            "issuer": self.actor.issuer,
            "session_id": self.context.aip_session_id,
            "correlation_id": self.context.correlation_id,
        }

    @classmethod
    def unparked(
        cls, parked: Mapping[str, Any], *, tenant: str, attempt: int, resumed: Resumption | None = None
    ) -> Self:
        """Return the submission that `parked` froze, in the name of its requester."""
        principal = wire.Principal.model_validate(parked["principal"])
        session_id, correlation_id = parked["session_id"], parked["correlation_id"]
        return cls(
            action=wire.Action.model_validate(parked["action"]),
            principal=principal,
            actor=Actor(
                principal_id=PrincipalId(principal.id),
                kind=principal.kind,
                tenant_id=TenantId(tenant) if tenant else None,
                issuer=parked["issuer"],
            ),
            context=MessageContext(
                aip_session_id=AipSessionId(session_id) if session_id else None,
                correlation_id=CorrelationId(correlation_id) if correlation_id else None,
            ),
            attempt=attempt,
            resumed=resumed,
        )

    def claim_params(self, *, now: int, intent_at: int | None, facts: str | None, input_hash: str) -> dict[str, Any]:
        """Return the columns of a claim. input_hash: `digests.fence_input_hash`."""
        no_fence = {"key_scope": None, "key_partition": None, "key_text": None}
        assert self.connector is not None  # noqa: S101 - the capability check comes first
        return {
            "tenant": self.tenant,
            "action_id": self.action.id,
            "capability_id": self.action.capability_id,
            "connector_id": self.connector.connector_id,
            "principal_id": self.principal.id,
            "principal": self.principal.model_dump_json(by_alias=True),
            "content_hash": digests.content_hash(self.action),
            "input_hash": input_hash,
            "read_only": int(self.read_only),
            "session_id": self.context.aip_session_id,
            "correlation_id": self.context.correlation_id,
            "now": now,
            "reserved_until": self.reserved_until(now),
            "intent_at": intent_at,
            "facts": facts,
            "parked": to_json(self.parked()) if self.handler.operation.recovery == "observe" else None,
            **(self.fence.params() if self.fence else no_fence),
        }
