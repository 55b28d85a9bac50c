"""One attempt at a claimed action: lock, prepare, intent, send, confirm, settle.

Only `send` may change anything at the provider, and it is entered once. Whatever happens before the intent is certain;
what happens after it is uncertain unless the handler proves otherwise. Source: design §3, D1, D4, D13, D22.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from aip_hermes.contract.handler import Answer, Call, FailureKind, JsonObject, Prepared, Publish, unpublished
from aip_hermes.database import Connection, StoreFailure, StoreUnavailable
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.cancellation import Cancelled, RunningAction
from aip_hermes.runtime.chunks import Chunks
from aip_hermes.runtime.events import Origin
from aip_hermes.runtime.failures import HandlerBroken, Interrupted, OutputInvalid, TimeoutExceeded
from aip_hermes.runtime.fence import Claimed, Verdict, claim
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.serial import Busy, Held, SerialLocks
from aip_hermes.runtime.settlement import Ending, LostClaim, settle
from aip_hermes.runtime.storable import side, storable
from aip_hermes.runtime.store import QUERIES, from_json, to_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Executor", "connector_failure"]

log = structlog.get_logger(__name__)

Outcome = Answer | ActionFailed
Ended = Answer | ActionFailed | Cancelled


@dataclass(slots=True)
class _Progress:
    """How far an attempt has come. sending: what `send` was given, once it was."""

    running: RunningAction
    held: Held | None = None
    intent: bool = False
    sending: tuple[Call, Prepared] | None = None


class Executor:
    """Runs attempts. Stateless but for those who wait for an end (`finished`) and settlements still on their way."""

    def __init__(self, footing: Footing, *, locks: SerialLocks) -> None:
        self._footing = footing
        self._locks = locks
        self._settling: set[asyncio.Task[Mapping[str, Any]]] = set()

    async def run(self, submission: Submission, *, ready: Prepared | ActionFailed | None = None) -> Mapping[str, Any]:
        """Run a claimed attempt to its settlement and return what is kept of the result.

        ready: what `prepare` gave before a claim that carries the intent, or how it refused.
        Raises: StoreUnavailable when the result could not be stored in time; the attempt is then settled later.
        """
        cancellable = submission.published is not None and submission.handler.operation.cancel
        progress = _Progress(RunningAction(cancellable=cancellable), intent=isinstance(ready, Prepared))
        address = {"tenant": submission.tenant, "action_id": submission.action.id}
        self._footing.running.enter(progress.running, **address)
        try:
            outcome = await self._attempt(submission, ready, progress)
            await self._footing.faults.reach("before_settle")
        except BaseException:
            if progress.held is not None:
                self._locks.free(progress.held.key)
            raise
        finally:
            self._footing.running.leave(**address)
        settling = asyncio.create_task(self._settle(submission, outcome, progress.held))
        self._settling.add(settling)
        settling.add_done_callback(self._settled)
        try:
            return await within(
                self._footing.limits.settle_wait_ms / 1000, asyncio.shield(settling), clock=self._footing.clock
            )
        except Overrun:
            raise StoreUnavailable(
                "the result could not be stored yet; query the action before sending again"
            ) from None

    async def read(self, submission: Submission) -> Mapping[str, Any] | Verdict:
        """Run a safe read and store its end in one transaction.

        Returns: what is kept, or the verdict of an equal read that settled first.
        """
        outcome = await self._attempt(submission, None, _Progress(RunningAction(cancellable=False)))
        await self._footing.faults.reach("before_settle")

        def once(connection: Connection) -> Mapping[str, Any] | Verdict:
            verdict = claim(connection, submission, now=self._footing.now_ms(), intent_at=None, facts=None)
            if not isinstance(verdict, Claimed):
                return verdict
            return self._settle_in(connection, submission.with_changes(attempt=verdict.attempt), outcome)

        outcome = _storable(submission, outcome)
        stored = await self._footing.database.write(once)
        await self._footing.faults.reach("after_settle")
        return stored

    async def aclose(self) -> None:
        """Give up on settlements that the store refuses; the next start finds their actions."""
        settling = list(self._settling)
        if settling:
            await asyncio.wait(settling, timeout=1.0)
        for task in settling:
            task.cancel()
        await asyncio.gather(*settling, return_exceptions=True)

    async def _attempt(
        self, submission: Submission, ready: Prepared | ActionFailed | None, progress: _Progress
    ) -> Ended:
        if isinstance(ready, ActionFailed):
            return ready
        try:
            return await self._stoppable(submission, ready, progress)
        except ActionFailed as failure:
            return failure
        except Busy as busy:
            return connector_failure(
                submission, "session_busy", busy.message, details=busy.details, retry_after_ms=busy.retry_after_ms
            )
        except Exception as exc:
            uncertain = progress.intent and not submission.read_only
            if isinstance(exc, StoreFailure) and not uncertain:
                return Interrupted("the store could not record the step before sending; nothing was sent")
            log.exception("action.handler_broken", action_id=submission.action.id, error_type=type(exc).__name__)
            return HandlerBroken("the connector failed in a way it does not declare", uncertain=uncertain)

    async def _stoppable(self, submission: Submission, ready: Prepared | None, progress: _Progress) -> Ended:
        """Take the steps until they end, or until somebody asks to cancel in time. A result in hand always counts."""
        steps = asyncio.create_task(self._steps(submission, ready, progress))
        asked = asyncio.create_task(progress.running.asked.wait())
        try:
            await asyncio.wait((steps, asked), return_when=asyncio.FIRST_COMPLETED)
            evidence: JsonObject | None = None
            if not steps.done() and progress.running.phase == "sending":
                evidence = await self._stop_at_provider(submission, progress)
            if steps.done() or progress.running.phase == "after":
                return await steps
            steps.cancel()
            await asyncio.wait((steps,))
            return _cancelled(submission, progress, evidence) if steps.cancelled() else steps.result()
        finally:
            asked.cancel()
            if not steps.done():
                steps.cancel()
                await asyncio.wait((steps,))

    async def _stop_at_provider(self, submission: Submission, progress: _Progress) -> JsonObject:
        assert progress.sending is not None  # noqa: S101 - set before the phase
        seconds = self._footing.limits.cancel_ms / 1000
        try:
            return await within(seconds, submission.handler.cancel(*progress.sending), clock=self._footing.clock)
        except Overrun:
            return {"stopped": False, "note": "the provider did not answer the request to stop in time"}
        except Exception as exc:
            log.exception("action.cancel_broken", action_id=submission.action.id, error_type=type(exc).__name__)
            return {"stopped": False, "note": "the connector failed to ask the provider to stop"}

    async def _steps(self, submission: Submission, ready: Prepared | None, progress: _Progress) -> Ended:
        call = submission.call()
        serial = submission.handler.serial_key(call)
        if serial is not None:
            progress.held = await self._locks.acquire(serial, call, tenant=submission.tenant)
            await self._footing.faults.reach("after_lock")
        call = submission.call(
            deadline_ms=self._footing.now_ms() + submission.timeout_ms,
            previous_uncertain=progress.held.previous_uncertain if progress.held else None,
        )
        prepared = ready if ready is not None else await self._prepare(submission, call)
        await self._footing.faults.reach("after_prepare")
        if not submission.read_only and not progress.intent:
            if call.deadline_ms is not None and self._footing.now_ms() >= call.deadline_ms:
                raise _overrun(submission, uncertain=False)
            await self._record_intent(submission, prepared)
            progress.intent = True
            await self._footing.faults.reach("after_intent")
        progress.sending = (call, prepared)
        if not progress.running.begin_sending():
            return _cancelled(submission, progress, None)
        outcome = await self._send(submission, call, prepared)
        progress.running.phase = "after"
        await self._footing.faults.reach("after_answer")
        outcome = await self._confirm(submission, call, prepared, outcome)
        return _checked_output(submission, outcome)

    async def _prepare(self, submission: Submission, call: Call) -> Prepared:
        described = submission.resumed.snapshot if submission.resumed else None
        try:
            return await within(
                self._seconds(submission, call), submission.handler.prepare(call, described), clock=self._footing.clock
            )
        except Overrun:
            raise _overrun(submission, uncertain=False) from None

    async def _record_intent(self, submission: Submission, prepared: Prepared) -> None:
        params = {
            "tenant": submission.tenant,
            "action_id": submission.action.id,
            "attempt": submission.attempt,
            "now": self._footing.now_ms(),
            "facts": to_json(prepared.facts),
        }
        recorded = await self._footing.database.write(
            lambda connection: connection.execute(QUERIES["record_intent"], params)
        )
        if not recorded:
            raise Interrupted("the claim was lost before anything was sent")

    async def _send(self, submission: Submission, call: Call, prepared: Prepared) -> Outcome:
        try:
            sending = submission.handler.send(call, prepared, publish=self._publish(submission))
            return await within(self._seconds(submission, call), sending, clock=self._footing.clock)
        except ActionFailed as failure:
            return failure
        except Overrun:
            return _overrun(submission, uncertain=not submission.read_only)

    def _publish(self, submission: Submission) -> Publish:
        if not submission.handler.operation.streaming:
            return unpublished
        origin = Origin(
            tenant=submission.tenant,
            action_id=submission.action.id,
            session_id=submission.context.aip_session_id,
            correlation_id=submission.context.correlation_id,
        )
        return Chunks(self._footing, origin=origin).publish

    async def _confirm(self, submission: Submission, call: Call, prepared: Prepared, outcome: Outcome) -> Outcome:
        seconds = (self._footing.limits.confirm_ms + self._footing.limits.overrun_ms) / 1000
        try:
            confirmed = await within(
                seconds, submission.handler.confirm(call, prepared, outcome), clock=self._footing.clock
            )
        except (Overrun, ActionFailed):
            return outcome
        except Exception as exc:
            log.exception("action.confirm_broken", action_id=submission.action.id, error_type=type(exc).__name__)
            return outcome
        # Evidence may be added; an outcome may not change sides, nor become more or less certain.
        return confirmed if side(confirmed) == side(outcome) else outcome

    async def _settle(self, submission: Submission, outcome: Ended, held: Held | None) -> Mapping[str, Any]:
        delay_s, again = 0.1, False
        outcome = _storable(submission, outcome)
        try:
            while True:
                try:
                    stored = await self._footing.database.write(
                        partial(self._settle_in, submission=submission, outcome=outcome)
                    )
                    break
                except StoreUnavailable as exc:
                    if exc.kind == "closed":
                        raise
                    log.warning("action.settle_failed", action_id=submission.action.id, kind=exc.kind)
                    await self._footing.clock.sleep(delay_s)
                    delay_s, again = min(delay_s * 2, 5.0), True
                except LostClaim:
                    # Nobody else settles our attempt: the write that was answered with a failure did arrive.
                    if not again:
                        raise
                    stored = await self._footing.database.read(lambda connection: _kept(connection, submission))
                    break
                except Exception as exc:
                    # An end without its details is still an end: the key answers and the session opens.
                    if isinstance(outcome, HandlerBroken):
                        raise
                    log.exception("action.end_broken", action_id=submission.action.id, error_type=type(exc).__name__)
                    uncertain = not submission.read_only and getattr(outcome, "uncertain", True)
                    outcome = HandlerBroken("the outcome could not be kept", uncertain=uncertain)
        finally:
            if held is not None:
                self._locks.free(held.key)
        await self._footing.faults.reach("after_settle")
        self._footing.finished.tell(tenant=submission.tenant, action_id=submission.action.id, stored=stored)
        self._footing.watchers.changed(tenant=submission.tenant, action_id=submission.action.id)
        return stored

    def _settle_in(self, connection: Connection, submission: Submission, outcome: Ended) -> Mapping[str, Any]:
        resumed = submission.resumed
        return settle(
            connection,
            tenant=submission.tenant,
            action_id=submission.action.id,
            attempt=submission.attempt,
            ending=Ending(
                outcome=outcome,
                approval_id=resumed.approval_id if resumed else None,
                approval_status="approved" if resumed else None,
                starts_run=submission.handler.operation.serial == "run",
            ),
            now=self._footing.now_ms(),
            new_id=self._footing.new_id,
        )

    def _settled(self, task: asyncio.Task[Mapping[str, Any]]) -> None:
        self._settling.discard(task)
        if not task.cancelled():
            task.exception()  # seen by whoever waits; nobody may be waiting any more

    def _seconds(self, submission: Submission, call: Call) -> float:
        """Return what is left of the action's time; never more than all of it, wherever the clock was set."""
        assert call.deadline_ms is not None  # noqa: S101 - set when the lock was taken
        left_ms = min(max(call.deadline_ms - self._footing.now_ms(), 1), submission.timeout_ms)
        return (left_ms + self._footing.limits.overrun_ms) / 1000


def _storable(submission: Submission, outcome: Ended) -> Ended:
    if isinstance(outcome, Cancelled):
        return outcome
    # A capability that was withdrawn meanwhile can't say that it only reads.
    read_only = submission.published is not None and submission.read_only
    return storable(outcome, capability_id=submission.action.capability_id, read_only=read_only)


def _kept(connection: Connection, submission: Submission) -> Mapping[str, Any]:
    address = {"tenant": submission.tenant, "action_id": submission.action.id}
    kept: Mapping[str, Any] = from_json(connection.execute(QUERIES["fetch_action"], address)[0]["result"])
    return kept


def connector_failure(
    submission: Submission,
    kind: FailureKind,
    message: str,
    *,
    details: Mapping[str, Any],
    uncertain: bool = False,
    retry_after_ms: int | None = None,
) -> ActionFailed:
    """Return an error in the namespace of the action's connector."""
    assert submission.connector is not None  # noqa: S101 - the capability check comes first
    failure = submission.connector.failure(kind, message, details=details, uncertain=uncertain)
    if failure.retry_after_ms is None:
        failure.retry_after_ms = retry_after_ms
    return failure


def _cancelled(submission: Submission, progress: _Progress, evidence: JsonObject | None) -> Cancelled:
    sent = progress.running.phase == "sending"
    uncertain = sent and not submission.read_only
    if uncertain:
        message = "the action was cancelled after it was sent; read the target before sending anything like it again"
    else:
        message = "the action was cancelled" if sent else "the action was cancelled before anything was sent"
    failure = connector_failure(
        submission, "cancelled", message, details={"action_id": submission.action.id, "sent": sent}, uncertain=uncertain
    )
    return Cancelled(failure=failure, reason=progress.running.reason, evidence=evidence)


def _overrun(submission: Submission, *, uncertain: bool) -> TimeoutExceeded:
    return TimeoutExceeded(
        "the connector did not answer within the action's timeout",
        details={
            "action_id": submission.action.id,
            "capability_id": submission.action.capability_id,
            "timeout_ms": submission.timeout_ms,
        },
        retryable=not uncertain,
        uncertain=uncertain,
    )


def _checked_output(submission: Submission, outcome: Outcome) -> Outcome:
    if isinstance(outcome, ActionFailed) or outcome.cancelled or submission.published is None:
        return outcome
    violations = submission.published.output_violations(outcome.output)
    if not violations:
        return outcome
    return OutputInvalid(
        "the provider's answer does not match the capability's output schema",
        details={"capability_id": submission.action.capability_id, "violations": violations},
        uncertain=not submission.read_only,
    )
