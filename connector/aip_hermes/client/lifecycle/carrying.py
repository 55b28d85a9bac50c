"""One consequential step from its plan to a known end, whatever is lost on the way.

Nothing is sent twice: an open call is asked for first, an uncertain one is reconciled, and the same submission leaves
again only under the same Action ID, where the server's rules make that safe: it never received the first one, or
answered a failure that binds neither ID nor key (design D2, D3). Source: design §5; issue 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.envelopes import ActionMode
from aip_hermes.client.failures import ClientFailure, PeerError
from aip_hermes.client.identities import CallRecord, IdentityClash, IdentityStore, IdentityStoreFailed
from aip_hermes.client.lifecycle import failures as failing
from aip_hermes.client.lifecycle.journal import Journal, Plan
from aip_hermes.client.results import CallResult
from aip_hermes.client.resuming import ResumeRefused
from aip_hermes.ids import ApprovalId, CapabilityId
from aip_hermes.ports import Clock

__all__ = ["Carried", "Carrier"]

_LOOKS: Final = 4
"""How often a call whose answer was lost is asked for before it is left for later."""

_PAUSE_S: Final = 0.2
_LATER: Final = "run the step again later: it asks what became of {action_id} and sends nothing new"
_AGAIN: Final = (
    "`decide(step={step!r}, outcome='again', …)` and run the step again: it is sent anew, under a new Action ID"
)
_PERSON: Final = (
    "{told} A person then says `decide(step={step!r}, outcome='applied' or 'again', …)`, and the step is run again"
)
_DECIDED: Final = frozenset({"policy.approval_denied", "policy.approval_expired", "policy.approval_revoked"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """How a step ended, or that it waits. result: None where the answer is lost and a verdict says `applied`."""

    result: CallResult | None = None
    approval_id: ApprovalId | None = None
    waits: bool = False


class Carrier:
    """Carries steps through. wait_s: how long one may wait for an end or a verdict. Raises: LifecycleError."""

    def __init__(
        self, client: AipClient, *, store: IdentityStore, journal: Journal, clock: Clock, wait_s: float
    ) -> None:
        self._client = client
        self._store = store
        self._journal = journal
        self._clock = clock
        self._wait_s = wait_s

    async def carry(
        self,
        plan: Plan,
        input: Mapping[str, Any],
        *,
        capability_id: CapabilityId,
        may_wait: bool = False,
        mode: ActionMode = "sync",
    ) -> Carried:
        """Bring a step to its end. may_wait: return where a reviewer has to decide, instead of raising.

        mode: as the step is first sent; whoever takes it over goes on in the mode that was kept.
        """
        if plan.state in ("failed", "not_applied"):
            raise self._stuck(plan)
        if plan.stuck is not None:
            # From here on it may move again: what was decidable before is not any more.
            plan = await self._journal.keep(replace(plan, stuck=None))
        ends = self._clock.monotonic() + self._wait_s
        result = await self._known(plan, input, capability_id=capability_id, mode=mode, ends=ends)
        match result.outcome:
            case "completed":
                return Carried(result=result)
            case "uncertain":
                await self._reconcile(plan, ends=ends)
                return Carried()
            case "pending" if may_wait:
                return Carried(approval_id=result.approval_id, waits=True)
            case "pending":
                pending = failing.DecisionPending(
                    f"step {plan.step!r} waits for a decision",
                    next_step=f"have {result.approval_id} decided, then run the step again",
                    step=plan.step,
                    action_id=plan.action_id,
                    session_id=plan.session_id,
                )
                pending.approval_id = result.approval_id
                raise pending
        raise await self._failed(plan, result)

    async def _known(
        self, plan: Plan, input: Mapping[str, Any], *, capability_id: CapabilityId, mode: ActionMode, ends: float
    ) -> CallResult:
        """Return how the action stands: ended, or waiting for a reviewer."""
        lost: ClientFailure | None = None
        for look in range(_LOOKS):
            if look:
                await self._clock.sleep(_PAUSE_S * look)
            try:
                return await self._once(plan, input, capability_id=capability_id, mode=mode, ends=ends)
            except (IdentityStoreFailed, IdentityClash, failing.LifecycleError):
                raise
            except ResumeRefused as refused:
                raise await self._undecided(plan, refused.message, told=refused.next_step + ".") from refused
            except TimeoutError:
                raise self._later(plan, "it has not ended yet") from None
            except ClientFailure as failure:
                await self._unless_certain(plan, failure)
                lost = failure
        raise self._later(plan, lost.message if lost is not None else "no answer")

    async def _once(
        self, plan: Plan, input: Mapping[str, Any], *, capability_id: CapabilityId, mode: ActionMode, ends: float
    ) -> CallResult:
        record = await self._store.call(plan.action_id)
        if record is None or _never_taken(record):
            result = await self._client.call(
                capability_id,
                dict(input),
                action_id=plan.action_id,
                idempotency_key=plan.idempotency_key,
                mode=mode,
                group=self._journal.group,
                step=plan.step,
            )
        else:
            resumed = await self._client.resume(record, input=dict(input))
            if resumed.result is not None:
                result = resumed.result
            elif resumed.state == "pending" and resumed.approval_id is not None:
                return CallResult(
                    identities=record.identities,
                    outcome="pending",
                    status="pending_approval",
                    approval_id=resumed.approval_id,
                    raw={},
                )
            else:
                return await self._client.wait(plan.action_id, timeout_s=self._left_s(ends))
        if result.outcome == "pending" and result.approval_id is None:
            return await self._client.wait(plan.action_id, timeout_s=self._left_s(ends))
        return result

    async def _unless_certain(self, plan: Plan, failure: ClientFailure) -> None:
        """Return where the action may be on its way. Raises: StepFailed where it certainly is not."""
        record = await self._store.call(plan.action_id)
        if record is not None and not _never_taken(record):
            return
        if isinstance(failure, PeerError) and not failure.retryable:
            next_step = f"correct what the server names ({failure.code}) and run the step again; nothing was sent"
        else:
            next_step = failure.next_step or "run the step again; nothing was sent"
        raise failing.StepFailed(
            f"step {plan.step!r} was not taken in: {failure.message}",
            next_step=next_step,
            step=plan.step,
            action_id=plan.action_id,
            session_id=plan.session_id,
            details={"cause": failure.code},
            retryable=True,
            retry_after_ms=failure.retry_after_ms,
        ) from failure

    async def _reconcile(self, plan: Plan, *, ends: float) -> None:
        """Return where the effect is proven. Raises: NotApplied, PartlyApplied, Undecided, UnknownYet."""
        while True:
            try:
                verdict = await self._client.reconcile(plan.action_id)
            except ClientFailure as failure:
                raise self._later(plan, failure.message) from failure
            outcome, wait_ms = verdict.verdict, verdict.retry_after_ms
            if outcome != "indeterminate" or wait_ms is None:
                break
            left_s = self._left_s(ends)
            if wait_ms / 1000 > left_s:
                raise self._later(plan, verdict.explanation, retry_after_ms=wait_ms)
            await self._clock.sleep(wait_ms / 1000)
        if outcome == "applied":
            return
        told = verdict.next_step
        if outcome == "indeterminate":
            raise await self._undecided(plan, verdict.explanation, told=told)
        kind = failing.NotApplied if outcome == "not_applied" else failing.PartlyApplied
        next_step = (_AGAIN if outcome == "not_applied" else _PERSON).format(step=plan.step, told=told)
        state = "not_applied" if outcome == "not_applied" else plan.state
        raise await self._stopped(
            replace(plan, state=state), kind, f"the answer was lost: {verdict.explanation}", next_step=next_step
        )

    async def _failed(self, plan: Plan, result: CallResult) -> failing.LifecycleError:
        error = result.error
        code = error.code if error is not None else f"action.{result.status}"
        retryable = error is not None and error.retryable
        kind = failing.DecisionDenied if code in _DECIDED else failing.StepFailed
        message = error.message if error is not None else f"the action is {result.status}"
        next_step = (
            "run the step again: the same Action ID may be tried again after this"
            if retryable
            else f"correct what is named; then {_AGAIN.format(step=plan.step)}"
        )
        details: dict[str, Any] = {"cause": code}
        if error is not None and isinstance(error.details.get("provider"), Mapping):
            details["provider"] = error.details["provider"]
        if error is not None and code.endswith(".session_superseded"):
            next_step = (
                f"`messages(session)` gives the handle of the continuation; then {_AGAIN.format(step=plan.step)}"
            )
        return await self._stopped(
            plan if retryable else replace(plan, state="failed"),
            kind,
            message,
            next_step=next_step,
            details=details,
            retryable=retryable,
            retry_after_ms=error.retry_after_ms if error is not None else None,
        )

    async def _undecided(self, plan: Plan, why: str, *, told: str) -> failing.LifecycleError:
        next_step = _PERSON.format(step=plan.step, told=told)
        return await self._stopped(
            plan, failing.Undecided, f"the answer was lost: {why}", next_step=next_step, uncertain=True
        )

    async def _stopped(
        self,
        plan: Plan,
        kind: type[failing.LifecycleError],
        message: str,
        *,
        next_step: str,
        details: Mapping[str, Any] | None = None,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        uncertain: bool = False,
    ) -> failing.LifecycleError:
        """Keep why a step does not go on, and return it."""
        stuck = {"code": kind.code, "message": message, "next_step": next_step, "details": dict(details or {})}
        await self._journal.keep(replace(plan, stuck=stuck))
        return kind(
            f"step {plan.step!r}: {message}",
            next_step=next_step,
            step=plan.step,
            action_id=plan.action_id,
            session_id=plan.session_id,
            details=details,
            retryable=retryable,
            retry_after_ms=retry_after_ms,
            uncertain=uncertain,
        )

    def _stuck(self, plan: Plan) -> failing.LifecycleError:
        """Return again what a step ended with; nothing is sent or read."""
        stuck = plan.stuck or {}
        kinds = (failing.NotApplied, failing.DecisionDenied, failing.StepFailed)
        kind = next((each for each in kinds if each.code == stuck.get("code")), failing.StepFailed)
        return kind(
            f"step {plan.step!r}: {stuck.get('message', 'it failed')}",
            next_step=str(stuck.get("next_step", _AGAIN.format(step=plan.step))),
            step=plan.step,
            action_id=plan.action_id,
            session_id=plan.session_id,
            details=stuck.get("details"),
        )

    def _later(self, plan: Plan, why: str, *, retry_after_ms: int | None = None) -> failing.LifecycleError:
        return failing.UnknownYet(
            f"what became of step {plan.step!r} is not known yet: {why}",
            next_step=_LATER.format(action_id=plan.action_id),
            step=plan.step,
            action_id=plan.action_id,
            session_id=plan.session_id,
            retry_after_ms=retry_after_ms,
            uncertain=True,
        )

    def _left_s(self, ends: float) -> float:
        return max(ends - self._clock.monotonic(), 0.0)


def _never_taken(record: CallRecord) -> bool:
    """Whether the same submission may leave again as if it had never left: refused before it became an action, or
    failed in a way that binds neither Action ID nor key (design D2, D3)."""
    if record.state != "settled" or record.result is None:
        return False
    if record.result.get("outcome") == "not_accepted":
        return True
    error = record.result.get("error")
    failed = record.result.get("outcome") in ("failed", "connector_failed")
    return failed and isinstance(error, Mapping) and error.get("retryable") is True
