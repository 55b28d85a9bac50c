"""From an offer to what callers see of it: the capability with its contract, schemas and digests.

Values come from the row and from the common part of capabilities.yaml; what can be derived is derived here. Contracts,
schemas and compiled validators are made once per row and shared by all endpoints.
Source: connector contract §3–§5, design D9, D18.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.contract.handler import Offer
from aip_hermes.contract.operation import Operation
from aip_hermes.contract.rows import load_capability_file
from aip_hermes.contract.schemas import operation_schema, operation_validator
from aip_hermes.wire import Capability, CapabilityContract, sha256_hex

__all__ = ["Published", "publish"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """An offer beside its capability. Digests: `sha256:` and the hex SHA-256 of the canonical JSON of the contract, and
    of `{input_schema, output_schema}`."""

    offer: Offer
    capability: Capability
    contract_digest: str
    schema_digest: str

    @classmethod
    def of(cls, offer: Offer) -> Published:
        operation = offer.handler.operation
        return cls(
            offer=offer,
            capability=publish(offer),
            contract_digest=contract_digest(operation, offer.timeout_ms, offer.approval),
            schema_digest=schema_digest(operation.input, operation.output),
        )

    @property
    def operation(self) -> Operation:
        return self.offer.handler.operation

    def input_violations(self, value: object) -> list[str]:
        """Return at most 16 texts; none of them repeats a value."""
        return operation_validator(self.operation.input).violations(value)

    def output_violations(self, value: object) -> list[str]:
        """Return at most 16 texts; a missing output is checked as null."""
        return operation_validator(self.operation.output).violations(value)

    def wire(self) -> dict[str, Any]:
        """Return the JSON object of a catalogue page."""
        return {
            "capability": self.capability.wire(),
            "contract_digest": self.contract_digest,
            "schema_digest": self.schema_digest,
        }


def publish(offer: Offer) -> Capability:
    """Return the capability under which `offer` is published."""
    operation = offer.handler.operation
    facts = load_capability_file().connector
    published: dict[str, Any] = {
        "id": str(offer.capability_id),
        "name": published_name(offer),
        "kind": operation.kind,
        "input_schema": operation_schema(operation.input),
        "output_schema": operation_schema(operation.output),
        "description": published_description(offer),
        "risk": operation.risk,
        "stability": operation.stability,
        "bindings": [
            {
                "profile": facts.profile,
                "system": facts.system,
                "endpoint_id": str(offer.endpoint_id),
                "operation": operation.name,
                "base_url": offer.base_url.rstrip("/") + "/",
                "method": operation.method,
                "path": operation.path,
                "streaming": operation.streaming,
            }
        ],
        "requires_human_approval": operation.approval is not None,
        "contract": contract(operation, offer.timeout_ms, offer.approval),
    }
    if operation.auth:
        published["auth"] = {"scheme": "bearer", "source": "endpoint.api_key"}
    return Capability.model_validate(published)


def published_name(offer: Offer) -> str:
    family = load_capability_file().connector.family
    return f"{family} {offer.handler.operation.title} ({offer.endpoint_id})"


def published_description(offer: Offer) -> str:
    operation = offer.handler.operation
    return f"{operation.summary} Operation {operation.name} of {offer.display_name}: {operation.http}"


@lru_cache(maxsize=4096)
def contract(operation: Operation, timeout_ms: int, terms: ApprovalTerms | None = None) -> CapabilityContract:
    """Return the contract of a row; `timeout_ms` is the endpoint's (turns) or the row's own (all others).

    terms: who decides at this endpoint, where it says more than all rows do.
    """
    common = load_capability_file().common
    idempotency: dict[str, Any] = {
        "requirement": operation.key,
        "collision_behavior": common.key_collision,
        "key_scope": common.key_scope,
    }
    if operation.key == "required":
        idempotency["ttl_ms"] = common.required_key_ttl_ms
    parts: dict[str, Any] = {
        "side_effects": list(operation.effects),
        "idempotency": idempotency,
        "execution": {
            "supports_sync": "sync" in operation.modes,
            "supports_async": "async" in operation.modes,
            "supports_streaming": operation.streaming,
            "supports_cancel": operation.cancel,
            "supports_retry": operation.read_only,
            "expected_completion": operation.completion,
            "retry_safety": "safe" if operation.read_only else "unsafe",
        },
        "data": {
            "sensitivity": operation.sensitivity,
            "contains_pii": operation.pii,
            "redaction_required": operation.redact,
        },
        "sla": {
            "expected_latency_ms": operation.latency_ms,
            "timeout_ms": timeout_ms,
            "async_expected": operation.async_expected,
            "max_queue_delay_ms": common.max_queue_delay_ms,
            "availability_target": common.availability_target,
        },
        "compensation": {"mode": common.compensation, "requires_approval": operation.approval is not None},
    }
    if operation.approval is not None:
        parts["approval"] = _approval(operation.approval, terms)
    return CapabilityContract.model_validate(parts)


@lru_cache(maxsize=4096)
def contract_digest(operation: Operation, timeout_ms: int, terms: ApprovalTerms | None = None) -> str:
    return "sha256:" + sha256_hex(contract(operation, timeout_ms, terms).wire())


@lru_cache(maxsize=256)
def schema_digest(input_name: str, output_name: str) -> str:
    schemas = {"input_schema": operation_schema(input_name), "output_schema": operation_schema(output_name)}
    return "sha256:" + sha256_hex(schemas)


def _approval(reason: str, terms: ApprovalTerms | None) -> dict[str, Any]:
    values = load_capability_file().common.approval
    selector = {"type": values.selector} if terms is None else terms.approver_selector.wire()
    ttl_ms = values.ttl_ms if terms is None or terms.ttl_ms is None else terms.ttl_ms
    return {
        "required": True,
        "reason": reason,
        "approver_selector": selector,
        "ttl_ms": ttl_ms,
        "evidence_requirements": list(values.evidence),
        "minimum_distinct_principals": values.distinct_principals if terms is None else terms.approvers,
        "separation_of_duties": {
            "requester_must_differ": values.requester_must_differ,
            "operator_must_differ": values.operator_must_differ,
            "allow_self_approval": values.allow_self_approval,
        },
    }
