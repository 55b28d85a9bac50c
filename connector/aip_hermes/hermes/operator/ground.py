"""What every part of the operator stands on, and the requests that it makes of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aip_hermes.contract.handler import Call
from aip_hermes.contract.operation import Operation
from aip_hermes.hermes.answer import Asked
from aip_hermes.hermes.attempts import Attempts
from aip_hermes.hermes.endpoint import Endpoint
from aip_hermes.hermes.exchange import RequestSpec
from aip_hermes.hermes.headers import base_headers, headers_of_call
from aip_hermes.hermes.operator.policy import OperatorPolicy
from aip_hermes.hermes.request import fill_path
from aip_hermes.hermes.wording import Subject
from aip_hermes.ports import Clock, Faults, NewId

__all__ = ["STOP_S", "Ground"]

STOP_S: Final = 10.0
"""How long a request to stop may take."""

_READ_S: Final = 30.0
_RUN: Final = "/v1/runs/{run_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """instance_id: of this process; a claim of another one is nobody's any more."""

    operation: Operation
    endpoint: Endpoint
    policy: OperatorPolicy
    attempts: Attempts
    clock: Clock
    faults: Faults
    new_id: NewId
    instance_id: str = field(repr=False)

    def asked(self, call: Call, *, mutation: bool, run_id: str | None = None) -> Asked:
        """Return what answers are judged by."""
        return Asked(
            endpoint=self.endpoint,
            subject=Subject(
                endpoint_id=self.endpoint.id,
                doing=self.operation.name,
                action_id=call.action_id,
                ids={} if run_id is None else {"run_id": run_id},
            ),
            mutation=mutation,
        )

    def order(self, call: Call, *, path: str, run_id: str | None = None, body: bytes, timeout_s: float) -> RequestSpec:
        """Return a request that changes something, with the headers of the call."""
        plain = self.operation.model_copy(update={"stream": "none"})
        headers = headers_of_call(operation=plain, endpoint=self.endpoint, call=call, session_id=None, session_key=None)
        target = path if run_id is None else fill_path(_RUN + path, {"run_id": run_id})
        return RequestSpec(method="POST", target=target, headers=headers, body=body, timeout_s=timeout_s, mutation=True)

    def stop(self, run_id: str) -> RequestSpec:
        """Return the request that stops a run."""
        return RequestSpec(
            method="POST",
            target=fill_path(_RUN + "/stop", {"run_id": run_id}),
            headers=base_headers(self.endpoint, auth=True, body=False),
            body=None,
            timeout_s=STOP_S,
            mutation=True,
        )

    def read(self, run_id: str, *, events: bool = False) -> RequestSpec:
        """Return the request that reads a run's status, or its events."""
        return RequestSpec(
            method="GET",
            target=fill_path(_RUN + ("/events" if events else ""), {"run_id": run_id}),
            headers=base_headers(self.endpoint, auth=True, body=False, stream=events),
            body=None,
            timeout_s=self.policy.timeout_ms / 1000 if events else _READ_S,
            mutation=False,
        )

    def details(self, call: Call, *, run_id: str | None, **more: Any) -> Mapping[str, Any]:
        """Return what every failure of the operator tells."""
        return {"action_id": call.action_id, "run_id": run_id, **more}
