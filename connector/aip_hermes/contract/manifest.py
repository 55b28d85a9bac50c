"""The manifest: who the server is and, for a known tenant, what it may call.

Endpoint origins stay out, and an endpoint is named to those only who may use it (design D24).
Source: HTTP page §12, connector contract §20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aip_hermes.contract.publish import Published
from aip_hermes.contract.rows import ConnectorFacts, load_capability_file
from aip_hermes.wire import Binding, Capability, Manifest, ManifestFilter

__all__ = ["SERVER_HEALTH", "ServerCard", "make_manifest"]

NATIVE_HTTP = "aip.native.http.v1"

SERVER_HEALTH = Capability.model_validate(
    {
        "id": "cap:aip:server:health",
        "name": "AIP server health",
        "kind": "tool",
        "input_schema": {"type": "object", "additionalProperties": False, "properties": {}},
        "output_schema": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
        "description": "Tells whether the server lives: at the bound route, without bearer and without action.",
        "risk": "low",
        "stability": "stable",
        "bindings": [{"profile": NATIVE_HTTP, "method": "GET", "path": "/health"}],
        "requires_human_approval": False,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerCard:
    """What the manifest says of the server itself. max_request_bytes: of one request body."""

    principal_id: str = "service:aip-hermes:server"
    display_name: str = "AIP Hermes connector"
    max_request_bytes: int = 1_048_576
    security: Mapping[str, Any] = field(
        default_factory=lambda: {
            "transport": "http",
            "envelope_schema_validation": "required",
            "sender_principal": "required_for_actions",
            "signed_envelopes": "unsupported",
            "runtime_storage": "durable_file",
            "idempotency": "required_for_replay_sensitive_actions",
        }
    )
    native_http: Mapping[str, str] = field(
        default_factory=lambda: {
            "messages": "/aip/v1/messages",
            "actions": "/aip/v1/actions",
            "capabilities": "/aip/v1/capabilities",
            "manifest": "/aip/v1/manifest",
        }
    )
    own: tuple[Capability, ...] = (SERVER_HEALTH,)


def make_manifest(seen: Sequence[Published], *, server: ServerCard, wanted: ManifestFilter | None) -> Manifest:
    """Return the manifest of the server and of the capabilities in `seen`, less what `wanted` filters out."""
    facts = load_capability_file().connector
    capabilities = [*server.own, *(without_origin(published.capability) for published in seen)]
    compatibility: dict[str, Any] = {"native_http": dict(server.native_http)}
    if seen:
        compatibility["connectors"] = [facts.id]
    return Manifest.model_validate(
        {
            "manifest_version": "aip-manifest/v1",
            "agent": {"id": server.principal_id, "kind": "service", "display_name": server.display_name},
            "capabilities": [capability for capability in capabilities if _passes(capability, wanted)],
            "profiles": [NATIVE_HTTP, facts.profile] if seen else [NATIVE_HTTP],
            "security": dict(server.security),
            "limits": {"max_request_bytes": server.max_request_bytes},
            "compatibility": compatibility,
            "extensions": {"connectors": {facts.id: _connector(seen, facts)}} if seen else None,
        }
    )


def without_origin(capability: Capability) -> Capability:
    """Return the capability without the addresses of its endpoint."""
    bindings = [
        Binding.model_validate({name: value for name, value in binding.wire().items() if name != "base_url"})
        for binding in capability.bindings
    ]
    return capability.model_copy(update={"bindings": bindings})


def _connector(seen: Sequence[Published], facts: ConnectorFacts) -> dict[str, Any]:
    tenants = {str(published.offer.endpoint_id): published.offer.tenant_id for published in seen}
    return {
        "agent": {"id": facts.principal, "kind": "agent"},
        "profiles": [facts.profile],
        "security": {
            "session_continuity_header": facts.session_id_header,
            "session_key_header": facts.session_key_header,
        },
        "limits": {
            "default_sse_event_limit": facts.default_sse_event_limit,
            "maximum_sse_event_limit": facts.maximum_sse_event_limit,
            "max_json_response_bytes": facts.max_json_response_bytes,
            "max_stream_response_bytes": facts.max_stream_response_bytes,
            "max_sse_frame_bytes": facts.max_sse_frame_bytes,
            "max_request_body_bytes": facts.max_request_body_bytes,
            "max_request_url_bytes": facts.max_request_url_bytes,
        },
        "compatibility": {
            "system": facts.system,
            "endpoints": list(tenants),
            "tenant_bound_endpoints": [
                {"endpoint_id": endpoint, "tenant_id": str(tenant)}
                for endpoint, tenant in tenants.items()
                if tenant is not None
            ],
            "operations": list(dict.fromkeys(published.operation.name for published in seen)),
        },
    }


def _passes(capability: Capability, wanted: ManifestFilter | None) -> bool:
    if wanted is None:
        return True
    contract = capability.contract
    effects = set(contract.side_effects) if contract else set()
    approval = bool(
        capability.requires_human_approval or (contract and contract.approval and contract.approval.required)
    )
    tests: tuple[tuple[object, bool], ...] = (
        (wanted.capability_ids, capability.id in wanted.capability_ids),
        (wanted.profiles, any(binding.profile in wanted.profiles for binding in capability.bindings)),
        (wanted.risk, capability.risk in wanted.risk),
        (wanted.side_effects, not effects.isdisjoint(wanted.side_effects)),
    )
    flags: tuple[tuple[bool | None, bool], ...] = (
        (wanted.requires_approval, approval),
        (wanted.supports_streaming, bool(contract and contract.execution.supports_streaming)),
        (wanted.supports_transactions, bool(contract and contract.transaction)),
    )
    return all(holds for asked, holds in tests if asked) and all(
        asked is holds for asked, holds in flags if asked is not None
    )
