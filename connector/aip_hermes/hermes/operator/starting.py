"""Starting a run at most once per Action ID: the binding first, then one request by whoever holds the claim.

| found | becomes |
|---|---|
| no binding, or one whose start was certainly not made | this call claims it and sends the one start |
| a claim of this process that has not expired | wait for its run id |
| a claim of another process, or an expired one | outcome unknown: the start may have happened |
| a run id, or an end | nothing is sent |

Source: connector contract §18.2, 1 to 3; design D4, D11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aip_hermes.contract.handler import Call
from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.failures import (
    HermesFailed,
    OperatorPolicyRefused,
    OperatorStartRejected,
    OperatorStateFailed,
    RemoteRejected,
)
from aip_hermes.hermes.operator.binding import Binding, Bindings, Claim
from aip_hermes.hermes.operator.following import Lost
from aip_hermes.hermes.operator.ground import Ground
from aip_hermes.hermes.operator.objective import fingerprint, session_id_of, start_body
from aip_hermes.hermes.request import path_id_problem

__all__ = ["started"]

_PATH: Final = "/v1/runs"


async def started(ground: Ground, call: Call, bindings: Bindings) -> Binding:
    """Return the binding of the run that `call` means, started now or before.

    Raises: HermesFailed, certain; Lost where a start may have happened.
    """
    binding = await _bound(ground, call, bindings)
    while not binding.terminal and binding.run_id is None:
        claim = binding.start_claim
        if claim is None:
            if call.interrupted:
                raise _not_begun(ground, call)
            binding, mine = await _claim(ground, bindings, call)
            if mine:
                return await _start(ground, call, bindings)
            continue
        if call.interrupted or claim.instance_id != ground.instance_id or claim.expires_at <= ground.clock.now_ms():
            raise Lost("start_interrupted", "may have been asked to start the run by a call that did not come back")
        await ground.clock.sleep(ground.policy.poll_interval_ms / 1000)
        binding = await _bound(ground, call, bindings)
    return binding


async def _bound(ground: Ground, call: Call, bindings: Bindings) -> Binding:
    """Return the binding of the call, a new one where there was none."""
    mark = fingerprint(call, endpoint_id=ground.endpoint.id)
    found = await bindings.read(call.action_id)
    if found is None:
        if call.interrupted:
            raise _not_begun(ground, call)
        now = ground.clock.now_ms()
        fresh = Binding(
            action_id=str(call.action_id),
            request_fingerprint=mark,
            endpoint_id=str(ground.endpoint.id),
            principal_id=str(call.actor.principal_id),
            session_id=session_id_of(call.action_id),
            created_at=now,
            updated_at=now,
        )
        if await bindings.create(fresh):
            return fresh
        found = await bindings.read(call.action_id)
    if found is None or found.request_fingerprint != mark:
        raise OperatorPolicyRefused(
            f"operator at Hermes endpoint {ground.endpoint.id} sent nothing: action {call.action_id} already stands for"
            " another run. Use a new Action ID.",
            endpoint_id=ground.endpoint.id,
            details=ground.details(call, run_id=None, reason="other_request", sent=False),
        )
    return found


async def _claim(ground: Ground, bindings: Bindings, call: Call) -> tuple[Binding, bool]:
    now = ground.clock.now_ms()
    claim = Claim(
        claim_id=ground.new_id("claim_"),
        instance_id=ground.instance_id,
        claimed_at=now,
        expires_at=now + ground.policy.start_claim_ttl_ms,
    )

    def take(binding: Binding) -> Binding | None:
        free = binding.start_claim is None and binding.run_id is None and not binding.terminal
        return replace(binding, start_claim=claim, status="starting") if free else None

    return await bindings.change(call.action_id, take)


async def _start(ground: Ground, call: Call, bindings: Bindings) -> Binding:
    seconds = min(ground.operation.http_timeout_s, ground.policy.start_claim_ttl_ms / 1000)
    body = start_body(call, endpoint_id=ground.endpoint.id, policy=ground.policy)
    request = ground.order(call, path=_PATH, body=body, timeout_s=seconds)
    await ground.faults.reach("hermes.send.before")
    try:
        answer = await ground.attempts.once(request, ground.asked(call, mutation=True), deadline_ms=call.deadline_ms)
    except HermesFailed as failure:
        if failure.uncertain:
            raise Lost("start", "may have started the run", provider=failure.details.get("provider")) from failure
        raise await _not_started(ground, call, bindings, failure) from failure
    await ground.faults.reach("hermes.send.after")
    run_id = answer.get("run_id")
    if not isinstance(run_id, str) or path_id_problem(run_id) is not None:
        raise Lost("run_id_missing", "took the start and named no run")
    try:
        binding, _ = await bindings.change(
            call.action_id, lambda each: replace(each, run_id=run_id, status="running") if not each.run_id else None
        )
    except ActionFailed as failure:
        raise Lost("state", f"started run {run_id}, which could not be noted") from failure
    await ground.faults.reach("hermes.operator.bound")
    return binding


async def _not_started(ground: Ground, call: Call, bindings: Bindings, failure: HermesFailed) -> HermesFailed:
    """Note that nothing was started and return the failure that says so."""
    refused = failure
    if isinstance(failure, RemoteRejected):
        refused = OperatorStartRejected(
            failure.message,
            endpoint_id=ground.endpoint.id,
            provider=failure.details.get("provider"),
            details=ground.details(call, run_id=None),
        )

    def end(binding: Binding) -> Binding:
        if refused.frees_key:  # the same action may be sent again
            return replace(binding, start_claim=None)
        error = {"code": refused.code, "message": refused.message}
        return replace(binding, start_claim=None, status="failed", error=error)

    await bindings.change(call.action_id, end)
    return refused


def _not_begun(ground: Ground, call: Call) -> OperatorStateFailed:
    return OperatorStateFailed(
        f"the server stopped before Hermes endpoint {ground.endpoint.id} was asked to start the run; nothing was sent:"
        " send the same action again",
        endpoint_id=ground.endpoint.id,
        details=ground.details(call, run_id=None, sent=False),
        retryable=True,
    )
