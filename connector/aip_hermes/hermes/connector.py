"""The connector: every operation of every endpoint, behind one error namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from aip_hermes.contract import load_capability_file, load_operations
from aip_hermes.contract.handler import FailureKind, Handler, Offer
from aip_hermes.contract.operation import Operation
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.client import HermesClient, Transport
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import ExchangeFailed, RequestSpec
from aip_hermes.hermes.failures import Cancelled, HermesFailed, OutcomeUnknown, SessionBusy
from aip_hermes.hermes.handler import CONFIRM_S, HermesHandler
from aip_hermes.hermes.headers import base_headers
from aip_hermes.hermes.operator import OperatorHandler, OperatorPolicy
from aip_hermes.hermes.operator.ground import STOP_S, Ground
from aip_hermes.hermes.reconcile import QuietTimes, Reconciler
from aip_hermes.ids import CapabilityId, EndpointId
from aip_hermes.ports import Clock, Faults, NewId
from aip_hermes.ports import new_id as random_id

__all__ = ["HermesConnector"]

_HEALTH_TIMEOUT_S: Final = 5.0

_KINDS: Final[Mapping[FailureKind, type[HermesFailed]]] = {
    "session_busy": SessionBusy,
    "outcome_unknown": OutcomeUnknown,
    "cancelled": Cancelled,
}


class HermesConnector:
    """Publishes the rows of capabilities.yaml for each endpoint.

    transport: stands in for the network in tests. operations: the rows; None reads the project's own. confirm_s: for
    one read-back, in seconds. operator: the policy of every run that is followed. new_id: names this process and its
    claims. quiet: how long nothing may have happened before a reconciliation takes absence for a proof.
    Raises ValueError without an endpoint and for two of one id.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        clock: Clock,
        faults: Faults,
        transport: Transport | None = None,
        operations: Mapping[str, Operation] | None = None,
        confirm_s: float = CONFIRM_S,
        operator: OperatorPolicy | None = None,
        new_id: NewId = random_id,
        quiet: QuietTimes = QuietTimes(),  # noqa: B008  frozen
    ) -> None:
        self._endpoints = sorted(endpoints, key=lambda endpoint: endpoint.id)
        if not self._endpoints:
            raise ValueError("a Hermes connector needs at least one endpoint")
        if len({endpoint.id for endpoint in self._endpoints}) < len(self._endpoints):
            raise ValueError("two Hermes endpoints have the same id")
        self._facts = load_capability_file().connector
        self._confirm_s = confirm_s
        self._operator = OperatorPolicy() if operator is None else operator
        self._new_id = new_id
        self._quiet = quiet
        self._instance_id = new_id("inst_")
        self._clients = {
            endpoint.id: HermesClient(endpoint, transport=transport, faults=faults) for endpoint in self._endpoints
        }
        rows = load_operations() if operations is None else operations
        self._offers = tuple(
            self._offer(row, endpoint, clock=clock, faults=faults)
            for endpoint in self._endpoints
            for row in rows.values()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def connector_id(self) -> str:
        return self._facts.id

    def offers(self) -> Sequence[Offer]:
        return self._offers

    def failure(self, kind: FailureKind, message: str, *, details: Mapping[str, Any], uncertain: bool) -> ActionFailed:
        return _KINDS[kind](message, details=details, uncertain=uncertain, retryable=False if uncertain else None)

    async def health(self) -> Mapping[EndpointId, tuple[bool, str]]:
        found = await asyncio.gather(*(self._health(endpoint) for endpoint in self._endpoints))
        return {endpoint.id: state for endpoint, state in zip(self._endpoints, found, strict=True)}

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    def _offer(self, row: Operation, endpoint: Endpoint, *, clock: Clock, faults: Faults) -> Offer:
        follows = row.follow == "run"
        timeout_ms = int(endpoint.turn_timeout_s * 1000) if row.turn else row.timeout_ms
        return Offer(
            capability_id=CapabilityId(f"{self._facts.id_prefix}{endpoint.id}:{row.name}"),
            endpoint_id=endpoint.id,
            tenant_id=endpoint.tenant_id,
            display_name=endpoint.display_name or endpoint.id,
            base_url=endpoint.base_url,
            handler=self._handler(row, endpoint, clock=clock, faults=faults),
            timeout_ms=self._operator.timeout_ms if follows else timeout_ms,
            reads_first=row.prepare != "none",
            approval=endpoint.approval,
            cancel_ms=self._operator.cancel_grace_ms + int(STOP_S * 1000) + 2_000 if follows else None,
        )

    def _handler(self, row: Operation, endpoint: Endpoint, *, clock: Clock, faults: Faults) -> Handler:
        attempts = Attempts(self._clients[endpoint.id], clock=clock)
        if row.follow == "run":
            return OperatorHandler(
                Ground(
                    operation=row,
                    endpoint=endpoint,
                    policy=self._operator,
                    attempts=attempts,
                    clock=clock,
                    faults=faults,
                    new_id=self._new_id,
                    instance_id=self._instance_id,
                ),
                reconciler=Reconciler(row, endpoint=endpoint, attempts=attempts, clock=clock, quiet=self._quiet),
            )
        return HermesHandler(
            row,
            endpoint=endpoint,
            attempts=attempts,
            clock=clock,
            faults=faults,
            confirm_s=self._confirm_s,
            quiet=self._quiet,
        )

    async def _health(self, endpoint: Endpoint) -> tuple[bool, str]:
        request = RequestSpec(
            method="GET",
            target="/health",
            headers=base_headers(endpoint, auth=False, body=False),
            body=None,
            timeout_s=_HEALTH_TIMEOUT_S,
            mutation=False,
        )
        try:
            status = (await self._clients[endpoint.id].send(request)).status
        except ExchangeFailed as exc:
            return False, f"Hermes endpoint {endpoint.id} gave no answer: {exc.reason.replace('_', ' ')}"
        if 200 <= status < 300:
            return True, f"Hermes endpoint {endpoint.id} answers"
        return False, f"Hermes endpoint {endpoint.id} answered HTTP {status}"
