"""What a service offers, and how one asks for it.

Source: wire model §6 "Manifest", "Resource" to "ManifestFilter", §9.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes.wire.capability import Capability
from aip_hermes.wire.closed_sets import RiskLevel, SideEffect
from aip_hermes.wire.model import Bool, Json, Time, Wire, absent_list
from aip_hermes.wire.principal import Principal

__all__ = ["Manifest", "ManifestFilter", "ManifestRequest", "Resource", "ResourceAccessPolicy"]


class ResourceAccessPolicy(Wire):
    """public: any authenticated principal may read. required_scopes: any one of them suffices."""

    public: Bool = False
    allowed_principals: list[str] = absent_list()
    required_scopes: list[str] = absent_list()
    tenant_required: Bool = False


class Resource(Wire):
    id: str
    name: str
    kind: str | None = None
    capability_id: str | None = None
    description: str | None = None
    mime_type: str | None = None
    tenant_id: str | None = None
    access: ResourceAccessPolicy | None = None
    expires_at: Time | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.id.strip():
            yield "id is blank"


class Manifest(Wire):
    """manifest_version is `aip-manifest/v1`. channels: objects with a non-blank, unique `id`, or else `name`."""

    manifest_version: str
    agent: Principal
    capabilities: list[Capability] = absent_list()
    profiles: list[str]
    resources: list[Resource] = absent_list()
    channels: list[Json] = absent_list()
    security: Json | None = None
    governance: Json | None = None
    limits: Json | None = None
    compatibility: Json | None = None
    extensions: Json | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.manifest_version.strip():
            yield "manifest_version is blank"
        if not self.profiles:
            yield "profiles is empty"
        ids = [capability.id for capability in self.capabilities]
        if len(set(ids)) != len(ids):
            yield "capabilities has a repeated id"


class ManifestFilter(Wire):
    """An empty list and an absent flag restrict nothing."""

    capability_ids: list[str] = absent_list()
    resource_kinds: list[str] = absent_list()
    profiles: list[str] = absent_list()
    risk: list[RiskLevel] = absent_list()
    side_effects: list[SideEffect] = absent_list()
    requires_approval: Bool | None = None
    supports_streaming: Bool | None = None
    supports_transactions: Bool | None = None

    def broken_rules(self) -> Iterator[str]:
        if any(not kind.strip() for kind in self.resource_kinds):
            yield "resource_kinds has a blank entry"


class ManifestRequest(Wire):
    profiles: list[str] = absent_list()
    filter: ManifestFilter | None = None
