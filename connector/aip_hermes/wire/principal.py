"""Who acts, and the identity that a message claims to act in.

Source: wire model §6 "Principal", §7 "IdentityContext", §9.1 identity rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from aip_hermes.wire.closed_sets import PrincipalKind
from aip_hermes.wire.model import Bool, Json, Time, Wire, absent_list

__all__ = [
    "CredentialRef",
    "DelegatedAuthorityGrant",
    "ExternalAccountRef",
    "ExternalRef",
    "ExternalUserRef",
    "IdentityContext",
    "OAuthCredentialState",
    "Principal",
    "TenantRef",
    "principal_kind",
]

_KINDS: Final[Mapping[str, PrincipalKind]] = MappingProxyType(
    {
        "human": "human",
        "service": "service",
        "system": "system",
        "tenant": "tenant",
        "customer": "customer",
        "contact": "contact",
    }
)


def principal_kind(principal_id: str) -> PrincipalKind:
    """Return the kind that an id's first segment names; anything else is an agent (design D22)."""
    return _KINDS.get(principal_id.partition(":")[0], "agent")


class ExternalRef(Wire):
    """An id in another product."""

    system: str
    type: str
    id: str


class DelegatedAuthorityGrant(Wire):
    """Authority over another principal's work. `*` among the scopes stands for every scope; expired means absent."""

    principal_id: str
    scopes: list[str] = absent_list()
    expires_at: Time | None = None
    reason: str | None = None


class Principal(Wire):
    """Actor or authority."""

    id: str
    kind: PrincipalKind
    display_name: str | None = None
    trust_domain: str | None = None
    did: str | None = None
    external_refs: list[ExternalRef] = absent_list()
    delegated_authority: list[DelegatedAuthorityGrant] = absent_list()
    auth_context: Json | None = None


class TenantRef(Wire):
    id: str
    system: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.id.strip():
            yield "id is blank"


class ExternalAccountRef(Wire):
    id: str
    system: str

    def broken_rules(self) -> Iterator[str]:
        if not self.id.strip():
            yield "id is blank"
        if not self.system.strip():
            yield "system is blank"


class ExternalUserRef(ExternalAccountRef):
    pass


class CredentialRef(Wire):
    """A handle of a credential, never the credential."""

    id: str
    issuer: str
    scopes: list[str] = absent_list()

    def broken_rules(self) -> Iterator[str]:
        if not self.id.strip():
            yield "id is blank"
        if not self.issuer.strip():
            yield "issuer is blank"
        if any(not scope.strip() for scope in self.scopes):
            yield "scopes has a blank entry"


class OAuthCredentialState(Wire):
    issuer: str
    client_id: str | None = None
    scopes: list[str] = absent_list()
    expires_at: Time | None = None
    refresh_available: Bool

    def broken_rules(self) -> Iterator[str]:
        if not self.issuer.strip():
            yield "issuer is blank"
        if self.client_id == "":
            yield "client_id is empty"
        if any(not scope.strip() for scope in self.scopes):
            yield "scopes has a blank entry"


class IdentityContext(Wire):
    """In whose name, for whom, and with which credential handle. A claim until the edge has bound it."""

    tenant: TenantRef | None = None
    external_account: ExternalAccountRef | None = None
    external_user: ExternalUserRef | None = None
    human_actor: Principal | None = None
    service_account: Principal | None = None
    acted_on_behalf_of: Principal | None = None
    credential_ref: CredentialRef | None = None
    oauth: OAuthCredentialState | None = None
