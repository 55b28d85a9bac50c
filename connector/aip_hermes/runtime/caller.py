"""Who asks, and in which conversation: what the edge has verified, never what a payload claims."""

from __future__ import annotations

from dataclasses import dataclass

from aip_hermes import wire
from aip_hermes.contract.handler import Actor
from aip_hermes.ids import AipSessionId, CorrelationId, MessageId, PrincipalId, TenantId

__all__ = ["Arrival", "Caller", "MessageContext"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """An authenticated principal.

    scopes: `<object>:<read|write|export>`, `…:any`, `*`. invoke: shell patterns over capability ids (design D24).
    issuer: who vouched for the principal, for example the server's token table.
    """

    principal: wire.Principal
    tenant_id: TenantId | None
    scopes: frozenset[str]
    issuer: str
    invoke: tuple[str, ...] = ("*",)

    def may(self, scope: str) -> bool:
        """Whether the caller holds `scope`, its `:any` form or `*`."""
        return not self.scopes.isdisjoint((scope, f"{scope}:any", "*"))

    def may_read_others(self, kind: str) -> bool:
        """Whether the caller may read records of other principals of its tenant; `kind` is `action` or `approval`."""
        return not self.scopes.isdisjoint((f"{kind}:read:any", "principal:read:any", "*"))

    @property
    def actor(self) -> Actor:
        """The caller as connectors see it."""
        return Actor(
            principal_id=PrincipalId(self.principal.id),
            kind=self.principal.kind,
            tenant_id=self.tenant_id,
            issuer=self.issuer,
        )

    @property
    def named(self) -> wire.Principal:
        """The principal as records keep it: id, kind and label, without authority and authentication data."""
        return wire.Principal(id=self.principal.id, kind=self.principal.kind, display_name=self.principal.display_name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A message that came in. sent_at_ms: Unix, as its sender says."""

    message_id: MessageId
    sent_at_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageContext:
    """What the envelope says besides its body. arrival: None where the message was claimed before, or there is none."""

    aip_session_id: AipSessionId | None = None
    correlation_id: CorrelationId | None = None
    arrival: Arrival | None = None
