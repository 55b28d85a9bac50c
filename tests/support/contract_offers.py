"""Offers without a provider, for tests of what is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aip_hermes.contract import Operation, load_operations, publish
from aip_hermes.contract.handler import (
    Answer,
    Call,
    Description,
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
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import CapabilityId, EndpointId, TenantId

__all__ = ["UnboundHandler", "endpoint_offers", "published_text"]


@dataclass(frozen=True)
class UnboundHandler:
    """A handler that only knows its row."""

    operation: Operation

    def check(self, call: Call) -> None:
        raise NotImplementedError

    def serial_key(self, call: Call) -> SerialKey | None:
        raise NotImplementedError

    async def describe(self, call: Call, *, state: State = stateless) -> Description | None:
        raise NotImplementedError

    async def context(self, call: Call) -> JsonObject | None:
        raise NotImplementedError

    async def prepare(self, call: Call, described: Mapping[str, Any] | None) -> Prepared:
        raise NotImplementedError

    async def send(
        self, call: Call, prepared: Prepared, *, publish: Publish = unpublished, state: State = stateless
    ) -> Answer:
        raise NotImplementedError

    async def cancel(self, call: Call, prepared: Prepared, *, state: State = stateless) -> JsonObject:
        raise NotImplementedError

    async def reconcile(self, action: Uncertain) -> Verdict:
        raise NotImplementedError

    def traces(self, call: Call, outcome: Answer | ActionFailed | None) -> Traces:
        raise NotImplementedError

    async def confirm(self, call: Call, prepared: Prepared, outcome: Answer | ActionFailed) -> Answer | ActionFailed:
        raise NotImplementedError


def endpoint_offers(
    endpoint_id: str = "primary",
    *,
    tenant_id: str | None = None,
    display_name: str = "Primary",
    base_url: str = "http://127.0.0.1:8642/",
    turn_timeout_s: float = 900,
) -> list[Offer]:
    """Offer every row under one endpoint."""
    return [
        Offer(
            capability_id=CapabilityId(f"cap:hermes_agent:{endpoint_id}:{operation.name}"),
            endpoint_id=EndpointId(endpoint_id),
            tenant_id=None if tenant_id is None else TenantId(tenant_id),
            display_name=display_name,
            base_url=base_url,
            handler=UnboundHandler(operation),
            timeout_ms=int(turn_timeout_s * 1000) if operation.turn else operation.timeout_ms,
            reads_first=operation.prepare != "none",
        )
        for operation in load_operations().values()
    ]


def published_text() -> str:
    """Return the published capabilities of endpoint `primary` as indented JSON, in row order."""
    return json.dumps([publish(offer).wire() for offer in endpoint_offers()], indent=2, ensure_ascii=False) + "\n"
