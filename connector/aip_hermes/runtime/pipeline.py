"""The ordered checks that an action passes before it may run, and the ways it can be answered on the way.

The order is the list in `Pipeline.__init__`. A check raises: RequestRefused becomes an error envelope, ActionFailed a
failed result; neither stores anything. Who repeats what is known is answered with that, whatever a check says by now:
the store is asked by the claim itself, for a safe read before it is sent, and else when a check has refused.
Source: runtime behaviour §2; design §3, D3, D5, D8.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector, Description, Prepared
from aip_hermes.database import Connection, StoreFailure
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.runtime import approval_request, leases
from aip_hermes.runtime.answers import acknowledged, answer, failed
from aip_hermes.runtime.backlog import enqueue
from aip_hermes.runtime.caller import Caller, MessageContext
from aip_hermes.runtime.capacity import Capacity, Place
from aip_hermes.runtime.checks import Checks, handler_broken
from aip_hermes.runtime.ends import outcome_lost
from aip_hermes.runtime.execution import Executor
from aip_hermes.runtime.failures import (
    CapabilityWithdrawn,
    HandlerBroken,
    Interrupted,
)
from aip_hermes.runtime.fence import Bound, Claimed, Running, Verdict, claim
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.messages import MessageClaim
from aip_hermes.runtime.repeats import Repeats, Reply
from aip_hermes.runtime.state import state_of
from aip_hermes.runtime.store import to_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Pipeline"]

_Check = Callable[[Submission], Awaitable[Submission]]


@contextmanager
def _harmless() -> Iterator[None]:
    """Say of a store that fails here that nothing was sent: a claim comes first, and a read changes nothing."""
    try:
        yield
    except StoreFailure as exc:
        exc.harmless = True
        raise


class Pipeline:
    """Takes an action from its verified caller to its answer."""

    def __init__(
        self, footing: Footing, *, catalog: Catalog, connectors: Mapping[str, Connector], executor: Executor
    ) -> None:
        """connectors: capability id → the connector that offers it."""
        self._footing = footing
        self._capacity = Capacity(footing)
        self._repeats = Repeats(footing)
        self._published = Checks(catalog=catalog, connectors=connectors)
        self._executor = executor
        self._first_checks: tuple[_Check, ...] = (self._published.identities, self._published.members_we_act_on)
        self._checks: tuple[_Check, ...] = (
            self._published.capability,
            self._published.input_schema,
            self._published.key,
            self._published.mode,
            self._published.handler_check,
            self._published.caller_policy,
        )

    async def submit(
        self, action: wire.Action, caller: Caller, context: MessageContext, message: MessageClaim | None = None
    ) -> Reply:
        """Return the action's result, or for one that is queued the acknowledgement.

        message: the id that it came under, to be stored with it.

        Raises: RequestRefused for a request that never became an action.
        """
        try:
            submission = Submission.of(action, caller, context, message)
            for check in self._first_checks:
                submission = await check(submission)
            try:
                checked = await self._checked(submission)
            except (RequestRefused, ActionFailed):
                with _harmless():
                    known = await self._repeats.answered(submission)
                if known is None:
                    raise
                return known
            with self._capacity.place(checked) as place:
                reply = await self._execute(checked, place)
            # Who is answered with what another one does has no place while it waits.
            if isinstance(reply, Claimed | Bound | Running):
                with _harmless():
                    return await self._repeats.from_verdict(checked, reply)
            return reply
        except ActionFailed as failure:
            return failed(action.id, failure)

    async def _checked(self, submission: Submission) -> Submission:
        for check in self._checks:
            submission = await check(submission)
        return submission

    async def resume(self, submission: Submission, *, refused: ActionFailed | None = None) -> Mapping[str, Any] | None:
        """Run an approved or queued action through the same path; return what is kept of its result.

        None: the attempt failed, and the action waits in the queue for another one.

        refused: why it may not run after all; it is settled with that.
        """
        ready: ActionFailed | None = None
        try:
            for check in (
                self._published.capability,
                self._published.input_schema,
                self._published.key,
                self._published.handler_check,
                self._published.caller_policy,
            ):
                submission = await check(submission)
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
        for check in (self._published.capability, self._published.key):
            submission = await check(submission)
        return submission

    # Running, waiting, parking.

    async def _execute(self, submission: Submission, place: Place) -> Reply | Verdict:
        """Run what is new; return the verdict about what is not."""
        queued = submission.action.mode == "async"
        if submission.read_only and not queued and not submission.handler.operation.streaming:
            return await self._read(submission, place)
        ready = None if queued else await self._ready_before_claim(submission)
        intent = isinstance(ready, Prepared)
        facts = to_json(ready.facts) if isinstance(ready, Prepared) else None

        waits = queued and submission.approval_policy is None

        def take(connection: Connection) -> Verdict:
            now = self._footing.now_ms()
            lease = leases.fresh(self._footing, now=now)
            verdict = claim(
                connection, submission, now=now, intent_at=now if intent else None, facts=facts, lease=lease
            )
            if isinstance(verdict, Claimed):
                place.take(connection)
                if waits:
                    enqueue(connection, submission.with_changes(attempt=verdict.attempt), self._footing)
            return verdict

        with _harmless():
            verdict = await self._footing.database.write(take)
        if not isinstance(verdict, Claimed):
            return verdict
        await self._footing.faults.reach("after_claim")
        if waits:
            self._footing.queued.set()
            return acknowledged(submission.action.id)
        submission = submission.with_changes(attempt=verdict.attempt, lease=verdict.lease)
        if submission.approval_policy is not None:
            return await self._ask(submission, submission.approval_policy, place)
        return await self._run(submission, ready)

    async def _read(self, submission: Submission, place: Place) -> Reply | Verdict:
        """Run a safe read, which is claimed with its end, if nothing is known of it."""
        with _harmless():
            verdict = await self._repeats.look(submission)
            if verdict is not None:
                return verdict
            place.take()
            stored = await self._executor.read(submission)
        return stored if isinstance(stored, Claimed | Bound | Running) else answer(submission.action.id, stored)

    async def _run(self, submission: Submission, ready: Prepared | ActionFailed | None) -> wire.ActionResult:
        stored = await self._executor.run(submission, ready=ready)
        assert stored is not None  # noqa: S101 - only what comes from the queue, or from a decision, waits again
        return answer(submission.action.id, stored)

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
            return handler_broken(submission, exc)

    async def _ask(self, submission: Submission, asked: wire.ApprovalPolicy, place: Place) -> wire.ActionResult:
        """Read what the decision will be about, then park. No approval recorded: a certain failure (design D25)."""
        try:
            stored = await self._park(submission, asked, place)
        except ActionFailed as failure:
            ready = failure
        except StoreFailure:
            ready = Interrupted("the approval could not be recorded; nothing was sent")
        except Exception as exc:
            ready = handler_broken(submission, exc)
        else:
            self._footing.parked.set()
            await self._footing.faults.reach("after_park")
            self._footing.ended(tenant=submission.tenant, action_id=submission.action.id, stored=stored)
            return answer(submission.action.id, stored)
        return await self._run(submission, ready)

    async def _park(self, submission: Submission, asked: wire.ApprovalPolicy, place: Place) -> Mapping[str, Any]:
        description = await self._describe(submission)
        now = self._footing.now_ms()
        approval_id = self._footing.new_id("appr_")
        request = approval_request.make_request(submission, asked, description, approval_id=approval_id, now=now)

        def park(connection: Connection) -> Mapping[str, Any]:
            stored = approval_request.park(connection, submission, request, description, now=now)
            place.waits()
            return stored

        return await self._footing.database.write(park)

    async def _describe(self, submission: Submission) -> Description | None:
        seconds = (submission.timeout_ms + self._footing.limits.overrun_ms) / 1000
        try:
            reading = submission.handler.describe(submission.call(), state=state_of(self._footing, submission))
            return await within(seconds, reading, clock=self._footing.clock)
        except ActionFailed:
            raise
        except Overrun:
            raise HandlerBroken("the target could not be read in time; no approval was asked", retryable=True) from None
        except Exception as exc:
            raise handler_broken(submission, exc) from exc
