"""Many calls at once through one connector: each request bears what belongs to its own call."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from aip_hermes.contract.handler import Actor, Answer
from aip_hermes.hermes import HermesConnector
from aip_hermes.ids import ActionId, CapabilityId, CorrelationId, EndpointId, PrincipalId, TenantId
from aip_hermes.ports import NoFaults, SystemClock
from aip_hermes.secret import Secret
from tests.support.hermes_calls import attempt, call_of, endpoint_of
from tests.support.hermes_stub import StubEndpoint, row_of

ENDPOINTS, TENANTS, MEMORIES = ("one", "two"), ("tenant-a", "tenant-b"), ("k1", "k2", "k3", None)
ROUNDS = 13


@pytest.mark.requirement("hermes:headers:own-call")
async def test_interleaved_calls_bear_their_own_identities() -> None:
    async with StubEndpoint([row_of("s1")]) as one, StubEndpoint([row_of("s1")]) as two:
        stubs = dict(zip(ENDPOINTS, (one, two), strict=True))
        endpoints = [
            endpoint_of(stub.base_url, id=EndpointId(name), key=Secret(f"key-of-endpoint-{name}"))
            for name, stub in stubs.items()
        ]
        expected: dict[str, dict[str, str | None]] = {}
        async with HermesConnector(endpoints, clock=SystemClock(), faults=NoFaults(), confirm_s=60) as connector:
            handlers = {
                str(offer.endpoint_id): offer.handler
                for offer in connector.offers()
                if offer.handler.operation.name == "session_chat"
            }

            async def turn(number: int, endpoint: str, tenant: str, memory: str | None) -> object:
                values = {"session_id": "s1", "message": f"of {number}"}
                call = call_of(
                    "session_chat",
                    values if memory is None else {**values, "session_key": memory},
                    action_id=ActionId(f"act_{number}"),
                    capability_id=CapabilityId(f"cap:hermes_agent:{endpoint}:session_chat"),
                    actor=Actor(
                        principal_id=PrincipalId(f"human:of-{number}"), kind="human", tenant_id=TenantId(tenant),
                        issuer="test-issuer",
                    ),
                    idempotency_key=None,
                    correlation_id=CorrelationId(f"corr_{number}"),
                )  # fmt: skip
                expected[f"of {number}"] = {
                    "x-aip-correlation-id": f"corr_{number}",
                    "x-aip-tenant-id": tenant,
                    "x-aip-principal-id": f"human:of-{number}",
                    "x-hermes-session-key": memory,
                    "endpoint": endpoint,
                }
                for _ in range(number * 7 % 5):  # no two start in the order in which they were made
                    await asyncio.sleep(0)
                return await attempt(handlers[endpoint], call)

            kinds = list(product(ENDPOINTS, TENANTS, MEMORIES)) * ROUNDS
            outcomes = await asyncio.gather(*(turn(number, *kind) for number, kind in enumerate(kinds)))
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    seen = [(name, request) for name, stub in stubs.items() for request in stub.arrived]
    assert len(seen) > 2 * len(kinds) > 400
    assert all(request.headers["authorization"] == f"Bearer key-of-endpoint-{name}" for name, request in seen)
    turns = {request.json["message"]: (name, request) for name, request in seen if request.method == "POST"}
    assert turns.keys() == expected.keys()
    for message, (name, request) in turns.items():
        wanted = expected[message]
        found = {header: request.headers.get(header) for header in wanted if header != "endpoint"}
        assert found | {"endpoint": name} == wanted
