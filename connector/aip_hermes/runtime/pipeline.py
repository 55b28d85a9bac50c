"""The ordered checks that an action passes before it may run, and the ways it can be answered on the way.

The order is the list in `Pipeline.__init__`. A check raises: RequestRefused becomes an error envelope, ActionFailed a
failed result; neither stores anything. A check that returns a result ends the pipeline with it.
Source: runtime behaviour §2; design §3, D3, D5, D8.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector, Description, Prepared
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.ids import ActionId, CapabilityId, IdentityError
from aip_hermes.runtime import approval_request, approvals, leases, policy
from aip_hermes.runtime.answers import acknowledged, answer, failed
from aip_hermes.runtime.backlog import enqueue
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.capacity import Capacity
from aip_hermes.runtime.ends import outcome_lost
from aip_hermes.runtime.erasure import erase, is_due
from aip_hermes.runtime.execution import Executor
from aip_hermes.runtime.failures import (
    ApprovalUnverified,
    CapabilityUnknown,
    CapabilityWithdrawn,
    HandlerBroken,
    InputInvalid,
    Interrupted,
    MemberRefused,
    ModeUnsupported,
    TransactionUnsupported,
)
from aip_hermes.runtime.fence import Bound, Claimed, Running, Verdict, claim, fence_of, in_progress, look
from aip_hermes.runtime.fence_hits import count_hit
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.store import from_json, to_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Pipeline"]

log = structlog.get_logger(__name__)

MODES: Final = frozenset({"sync", "streaming", "async"})
"""Modes that this runtime runs, whatever a capability supports."""

_Answer = wire.ActionResult | wire.Ack
_Passed = Submission | wire.ActionResult | wire.Ack
_Check = Callable[[Submission], Awaitable[_Passed]]


class Pipeline:
    """Takes an action from its verified caller to its answer."""

    def __init__(
        self, footing: Footing, *, catalog: Catalog, connectors: Mapping[str, Connector], executor: Executor
    ) -> None:
        """connectors: capability id → the connector that offers it."""
        self._footing = footing
        self._capacity = Capacity(footing)
        self._catalog = catalog
        self._connectors = connectors
        self._executor = executor
        self._checks: tuple[_Check, ...] = (
            self._identities,
            self._members_we_act_on,
            self._duplicate_action_id,
            self._capability,
            self._input_schema,
            self._key,
            self._mode,
            self._handler_check,
            self._policy,
            self._fence,
        )

    async def submit(self, action: wire.Action, caller: Caller, context: MessageContext) -> _Answer:
        """Return the action's result, or for one that is queued the acknowledgement.

        Raises: RequestRefused for a request that never became an action.
        """
        try:
            submission = Submission.of(action, caller, context)
            for check in self._checks:
                passed = await check(submission)
                if isinstance(passed, wire.ActionResult | wire.Ack):
                    return passed
                submission = passed
            with self._capacity.place(submission):
                return await self._execute(submission)
        except ActionFailed as failure:
            return failed(action.id, failure)

    async def resume(self, submission: Submission, *, refused: ActionFailed | None = None) -> Mapping[str, Any] | None:
        """Run an approved or queued action through the same path; return what is kept of its result.

        None: the attempt failed, and the action waits in the queue for another one.

        refused: why it may not run after all; it is settled with that.
        """
        ready: ActionFailed | None = None
        try:
            for check in (self._capability, self._input_schema, self._key, self._handler_check, self._policy):
                passed = await check(submission)
                assert isinstance(passed, Submission)  # noqa: S101 - these five never answer
                submission = passed
            ready = refused
        except RequestRefused:
            ready = CapabilityWithdrawn("the capability was withdrawn while the action waited; nothing was sent")
        except ActionFailed as failure:
            ready = failure
        if ready is not None and submission.interrupted:
            # What refuses it now says nothing about what its request did then.
            ready = outcome_lost(
                submission.connector, action_id=submission.action.id, capability_id=submission.action.capability_id
            )
        return await self._executor.run(submission, ready=ready)

    async def addressed(self, submission: Submission) -> Submission:
        """Return a kept submission with the capability that it names as it is published now, for reading only.

        Raises: RequestRefused where it was withdrawn, ActionFailed.
        """
        for check in (self._capability, self._key):
            passed = await check(submission)
            assert isinstance(passed, Submission)  # noqa: S101 - these two never answer
            submission = passed
        return submission

    # The checks, in order.

    async def _identities(self, submission: Submission) -> _Passed:
        """Ids that the store can hold and a record can name."""
        try:
            for kind, value in ((ActionId, submission.action.id), (CapabilityId, submission.action.capability_id)):
                kind(value).encode()
        except (IdentityError, UnicodeEncodeError) as exc:
            problem = str(exc) if isinstance(exc, IdentityError) else "an identifier is not valid Unicode"
            raise MemberRefused(problem, details={"member": "id"}) from exc
        return submission

    async def _members_we_act_on(self, submission: Submission) -> _Passed:
        """Nothing is accepted and then ignored (design D8)."""
        action = submission.action
        for member in ("callback", "federation"):
            if getattr(action, member) is not None:
                raise MemberRefused(f"`{member}` is not supported by this runtime", details={"member": member})
        if action.transaction is not None and action.transaction.mode != "execute":
            raise TransactionUnsupported(
                f"transaction mode `{action.transaction.mode}` is not supported; only `execute` is",
                details={"mode": action.transaction.mode},
            )
        if action.approval is not None:
            raise ApprovalUnverified(
                "an approval is attached by the runtime after a decision, never by the caller",
                details={"approval_id": action.approval.approval_id},
            )
        return submission

    async def _duplicate_action_id(self, submission: Submission) -> _Passed:
        """The stored result of the same submission (design D3)."""
        return await self._answered(submission) or submission

    async def _capability(self, submission: Submission) -> _Passed:
        capability_id = submission.action.capability_id
        tenant_id = submission.actor.tenant_id
        published = self._catalog.find(CapabilityId(capability_id), tenant_id)
        if published is None:
            near = self._catalog.near_misses(capability_id, tenant_id)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise CapabilityUnknown(
                f"there is no capability {capability_id}{hint}",
                details={"capability_id": capability_id, **({"did_you_mean": near} if near else {})},
            )
        policy.check_invocation(capability_id, submission.invoke)
        return submission.with_changes(published=published, connector=self._connectors[capability_id])

    async def _input_schema(self, submission: Submission) -> _Passed:
        assert submission.published is not None  # noqa: S101 - the capability check comes first
        violations = submission.published.input_violations(submission.action.input)
        if violations or not isinstance(submission.action.input, Mapping):
            raise InputInvalid(
                "the input does not match the capability's schema",
                details={
                    "capability_id": submission.action.capability_id,
                    "violations": violations or ["(root): is not an object"],
                },
            )
        return submission

    async def _key(self, submission: Submission) -> _Passed:
        return submission.with_changes(fence=fence_of(submission))

    async def _mode(self, submission: Submission) -> _Passed:
        mode = submission.action.mode or "sync"
        if mode not in submission.handler.operation.modes or mode not in MODES:
            raise ModeUnsupported(
                f"mode `{mode}` is not supported",
                details={"capability_id": submission.action.capability_id, "mode": mode},
            )
        return submission

    async def _handler_check(self, submission: Submission) -> _Passed:
        try:
            submission.handler.check(submission.call())
        except ActionFailed:
            raise
        except Exception as exc:
            raise self._broken(submission, exc) from exc
        return submission

    async def _policy(self, submission: Submission) -> _Passed:
        policy.check_kind(submission.principal)
        policy.check_delegation(submission.action.delegation_chain, submission.principal)
        return submission

    async def _fence(self, submission: Submission) -> _Passed:
        """The stored result of the same key; the claim asks again, atomically."""
        if submission.fence is None:
            return submission
        return await self._answered(submission) or submission

    # Running, waiting, parking.

    async def _execute(self, submission: Submission) -> _Answer:
        queued = submission.action.mode == "async"
        if submission.read_only and not queued and not submission.handler.operation.streaming:
            stored = await self._executor.read(submission)
            if isinstance(stored, Claimed | Bound | Running):
                return await self._from_verdict(submission, stored)
            return answer(submission.action.id, stored)
        ready = None if queued else await self._ready_before_claim(submission)
        intent = isinstance(ready, Prepared)
        facts = to_json(ready.facts) if isinstance(ready, Prepared) else None

        def take(connection: Connection) -> Verdict:
            now = self._footing.now_ms()
            lease = leases.fresh(self._footing, now=now)
            verdict = claim(
                connection, submission, now=now, intent_at=now if intent else None, facts=facts, lease=lease
            )
            if isinstance(verdict, Claimed):
                self._capacity.check(connection, submission)
            return verdict

        verdict = await self._footing.database.write(take)
        if not isinstance(verdict, Claimed):
            return await self._from_verdict(submission, verdict)
        await self._footing.faults.reach("after_claim")
        submission = submission.with_changes(attempt=verdict.attempt, lease=verdict.lease)
        if submission.approval_policy is not None:
            return await self._ask(submission, submission.approval_policy)
        if queued:
            return await self._enqueue(submission)
        return await self._run(submission, ready)

    async def _run(self, submission: Submission, ready: Prepared | ActionFailed | None) -> wire.ActionResult:
        stored = await self._executor.run(submission, ready=ready)
        assert stored is not None  # noqa: S101 - only what comes from the queue, or from a decision, waits again
        return answer(submission.action.id, stored)

    async def _enqueue(self, submission: Submission) -> wire.Ack:
        """Let a claimed action wait for the worker, durably, before it is acknowledged."""
        await self._footing.database.write(lambda connection: enqueue(connection, submission, self._footing))
        self._footing.queued.set()
        return acknowledged(submission.action.id)

    async def _ready_before_claim(self, submission: Submission) -> Prepared | ActionFailed | None:
        """Prepare what reads nothing and waits for nobody, so that claim and intent are one commit."""
        if submission.approval_policy is not None or submission.offer.reads_first:
            return None
        call = submission.call(deadline_ms=self._footing.now_ms() + submission.timeout_ms)
        try:
            if submission.handler.serial_key(call) is not None:
                return None
            prepared = await submission.handler.prepare(call, None)
            to_json(prepared.facts)  # what can't be kept is the handler's fault, found before the claim
            return prepared
        except ActionFailed as failure:
            return failure
        except Exception as exc:
            return self._broken(submission, exc)

    async def _ask(self, submission: Submission, asked: wire.ApprovalPolicy) -> wire.ActionResult:
        """Read what the decision will be about, then park. No approval recorded: a certain failure (design D25)."""
        try:
            stored = await self._park(submission, asked)
        except ActionFailed as failure:
            ready = failure
        except StoreFailure:
            ready = Interrupted("the approval could not be recorded; nothing was sent")
        except Exception as exc:
            ready = self._broken(submission, exc)
        else:
            self._footing.parked.set()
            await self._footing.faults.reach("after_park")
            self._footing.finished.tell(tenant=submission.tenant, action_id=submission.action.id, stored=stored)
            return answer(submission.action.id, stored)
        return await self._run(submission, ready)

    async def _park(self, submission: Submission, asked: wire.ApprovalPolicy) -> Mapping[str, Any]:
        description = await self._describe(submission)
        now = self._footing.now_ms()
        approval_id = self._footing.new_id("appr_")
        request = approval_request.make_request(submission, asked, description, approval_id=approval_id, now=now)
        return await self._footing.database.write(
            lambda connection: approval_request.park(connection, submission, request, description, now=now)
        )

    async def _describe(self, submission: Submission) -> Description | None:
        seconds = (submission.timeout_ms + self._footing.limits.overrun_ms) / 1000
        try:
            return await within(seconds, submission.handler.describe(submission.call()), clock=self._footing.clock)
        except ActionFailed:
            raise
        except Overrun:
            raise HandlerBroken("the target could not be read in time; no approval was asked", retryable=True) from None
        except Exception as exc:
            raise self._broken(submission, exc) from exc

    def _broken(self, submission: Submission, exc: Exception) -> HandlerBroken:
        log.error("action.handler_broken", action_id=submission.action.id, error_type=type(exc).__name__, exc_info=exc)
        return HandlerBroken("the connector failed in a way it does not declare; nothing was sent")

    async def _answered(self, submission: Submission) -> _Answer | None:
        verdict = await self._footing.database.read(
            lambda connection: look(connection, submission, now=self._footing.now_ms())
        )
        return None if verdict is None else await self._from_verdict(submission, verdict)

    async def _from_verdict(self, submission: Submission, verdict: Verdict) -> _Answer:
        """Answer from the store, or wait for the one who runs. Who asked for no result now is told that it waits."""
        count_hit(self._footing, submission, verdict)
        if isinstance(verdict, Running) and submission.action.mode == "async":
            return acknowledged(verdict.owner)
        if isinstance(verdict, Running):
            return await self._wait_for(submission, verdict)
        assert isinstance(verdict, Bound)  # noqa: S101 - a claim is no answer
        if verdict.action["state"] == "pending_approval":
            verdict = await self._expire(submission, verdict)
        elif is_due(verdict.action, now=self._footing.now_ms(), keep_ms=self._footing.limits.transcripts_ms):
            verdict = await self._without_text(verdict)
        return verdict.result()

    async def _without_text(self, bound: Bound) -> Bound:
        """Text that was kept long enough goes before it is answered again (design D23)."""

        def once(connection: Connection) -> Mapping[str, Any]:
            erase(connection, bound.action, reason="expired", now=self._footing.now_ms())
            return approvals.action_of(connection, bound.action["tenant"], bound.action["action_id"])

        return replace(bound, action=await self._footing.database.write(once))

    async def _wait_for(self, submission: Submission, running: Running) -> wire.ActionResult:
        """Wait for an equal submission that runs; its answer is ours, whatever it is."""
        address = {"tenant": submission.tenant, "action_id": running.owner}
        end = self._footing.finished.register(**address)

        def look_again(connection: Connection) -> tuple[Verdict | None, Mapping[str, Any]]:
            verdict = look(connection, submission, now=self._footing.now_ms())
            return verdict, approvals.action_of(connection, submission.tenant, running.owner)

        try:
            again, row = await self._footing.database.read(look_again)
            if isinstance(again, Running) and again.owner == running.owner:
                stored = await within(self._footing.limits.key_wait_ms / 1000, end, clock=self._footing.clock)
                return running.bound.result(stored)
            return running.bound.result(from_json(row["result"]))
        except Overrun:
            raise in_progress(running, submission, now=self._footing.now_ms()) from None
        finally:
            self._footing.finished.forget(end, **address)

    async def _expire(self, submission: Submission, bound: Bound) -> Bound:
        """A pending approval whose time is up ends before it is shown."""
        now = self._footing.now_ms()
        tenant, approval_id = submission.tenant, bound.action["approval_id"]

        def end(connection: Connection) -> Mapping[str, Any]:
            row = approvals.fetch(connection, tenant=tenant, approval_id=approval_id)
            if row is not None and approvals.overdue(row, now=now):
                approvals.expire(connection, row, now=now, new_id=self._footing.new_id)
            return approvals.action_of(connection, tenant, bound.action["action_id"])

        return Bound(action=await self._footing.database.write(end), key=bound.key, input_differs=bound.input_differs)
