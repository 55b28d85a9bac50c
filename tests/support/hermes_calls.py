"""Calls, endpoints and clocks for tests of the connector, and the steps of an attempt in the order of a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes.contract.handler import Actor, Answer, Call, Handler, Publish, State, unpublished
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes import Endpoint, HermesConnector
from aip_hermes.hermes.client import Transport
from aip_hermes.hermes.operator import OperatorPolicy
from aip_hermes.ids import ActionId, CapabilityId, CorrelationId, EndpointId, IdempotencyKey, PrincipalId, TenantId
from aip_hermes.ports import Clock, Faults, NoFaults
from aip_hermes.secret import Secret
from tests.support.hermes_stub import KEY
from tests.support.memory_state import MemoryState

__all__ = ["INPUTS", "FakeClock", "attempt", "call_of", "connector_of", "endpoint_of", "handler_of"]

INPUTS: Mapping[str, Mapping[str, Any]] = {
    "health": {},
    "health_detailed": {},
    "models": {},
    "capabilities": {},
    "skills": {},
    "toolsets": {},
    "chat": {"session_id": "s1", "prompt": "What is verified?"},
    "responses": {"input": "What is verified?"},
    "response_get": {"response_id": "resp_1"},
    "response_delete": {"response_id": "resp_1"},
    "run_start": {"session_id": "s1", "input": "Check the backups."},
    "run_status": {"run_id": "run_1"},
    "run_approval": {"run_id": "run_1", "choice": "deny"},
    "run_stop": {"run_id": "run_1"},
    "operator": {"objective": "Check the backups."},
    "sessions_list": {"limit": 5},
    "session_create": {"body": {"id": "new-1", "title": "New one"}},
    "session_get": {"session_id": "s1"},
    "session_patch": {"session_id": "s1", "title": "Renamed"},
    "session_delete": {"session_id": "s1"},
    "session_messages": {"session_id": "s1"},
    "session_fork": {"session_id": "s1", "body": {"id": "f1", "title": "Fork one"}},
    "session_chat": {"session_id": "s1", "message": "What is verified?"},
    "chat_stream": {"session_id": "s1", "messages": [{"role": "user", "content": "What is verified?"}]},
    "responses_stream": {"input": "What is verified?"},
    "run_events": {"run_id": "run_1"},
    "session_chat_stream": {"session_id": "s1", "message": "What is verified?"},
    "jobs_list": {"include_disabled": True},
    "job_create": {"name": "Nightly", "schedule": "0 3 * * *", "prompt": "Summarise the day."},
    "job_get": {"job_id": "0ddaaccff246"},
    "job_update": {"job_id": "0ddaaccff246", "schedule": "0 4 * * *"},
    "job_delete": {"job_id": "0ddaaccff246"},
    "job_pause": {"job_id": "0ddaaccff246"},
    "job_resume": {"job_id": "0ddaaccff246"},
    "job_run": {"job_id": "0ddaaccff246"},
}
"""A good input for each published operation; it addresses session `s1`, response `resp_1`, run `run_1` or the job."""


class FakeClock:
    """Time that moves only when somebody sleeps. naps: what was slept, in seconds."""

    def __init__(self, now_ms: int = 1_796_071_500_000) -> None:
        self.ms = now_ms
        self.naps: list[float] = []

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.ms += int(seconds * 1000)


def endpoint_of(base_url: str = "http://127.0.0.1:8642/", **members: Any) -> Endpoint:
    defaults: dict[str, Any] = {"id": EndpointId("primary"), "base_url": base_url, "key": Secret(KEY)}
    return Endpoint(**(defaults | members))


def connector_of(
    endpoint: Endpoint,
    *,
    transport: Transport | None = None,
    clock: Clock | None = None,
    operations: Mapping[str, Operation] | None = None,
    confirm_s: float = 2.0,
    faults: Faults | None = None,
    operator: OperatorPolicy | None = None,
) -> HermesConnector:
    return HermesConnector(
        [endpoint],
        clock=clock or FakeClock(),
        faults=faults or NoFaults(),
        transport=transport,
        operations=operations,
        confirm_s=confirm_s,
        operator=operator,
    )


def handler_of(connector: HermesConnector, name: str) -> Handler:
    return next(offer.handler for offer in connector.offers() if offer.handler.operation.name == name)


def call_of(name: str, values: Mapping[str, Any] | None = None, **members: Any) -> Call:
    defaults: dict[str, Any] = {
        "action_id": ActionId("act_1"),
        "capability_id": CapabilityId(f"cap:hermes_agent:primary:{name}"),
        "input": INPUTS[name] if values is None else values,
        "actor": Actor(
            principal_id=PrincipalId("human:ada"), kind="human", tenant_id=TenantId("tenant-a"), issuer="test-issuer"
        ),
        "idempotency_key": IdempotencyKey("key-1"),
        "correlation_id": CorrelationId("corr_1"),
    }
    return Call(**(defaults | members))


async def attempt(
    handler: Handler,
    call: Call,
    *,
    described: Mapping[str, Any] | None = None,
    publish: Publish = unpublished,
    state: State | None = None,
) -> Answer | ActionFailed:
    """Run one attempt as a runtime does and return its outcome. state: None is a store that knows nothing."""
    try:
        handler.check(call)
        prepared = await handler.prepare(call, described)
    except ActionFailed as exc:
        return exc
    try:
        outcome: Answer | ActionFailed = await handler.send(
            call, prepared, publish=publish, state=MemoryState() if state is None else state
        )
    except ActionFailed as exc:
        outcome = exc
    return await handler.confirm(call, prepared, outcome)
