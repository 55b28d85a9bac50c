"""The steps of one attempt at a claimed action: lock, prepare, intent, send, confirm.

Only `send` may change anything at the provider, and it is entered once. Whatever happens before the intent is certain;
what happens after it is uncertain unless the handler proves otherwise. Source: design §3, D1, D4, D13, D22.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from aip_hermes.contract.handler import Call, JsonObject, Prepared, Publish, unpublished
from aip_hermes.database import StoreFailure
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime.cancellation import RunningAction
from aip_hermes.runtime.chunks import Chunks
from aip_hermes.runtime.ends import (
    Ended,
    Outcome,
    cancelled_end,
    checked_output,
    connector_failure,
    outcome_lost,
    overrun,
)
from aip_hermes.runtime.events import Origin
from aip_hermes.runtime.failures import HandlerBroken, Interrupted
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.keeping import named_by
from aip_hermes.runtime.serial import Busy, Held, SerialLocks
from aip_hermes.runtime.state import state_of
from aip_hermes.runtime.storable import side
from aip_hermes.runtime.store import QUERIES, to_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, Wake, within

__all__ = ["Attempts", "Progress"]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Progress:
    """How far an attempt has come.

    stoppable: somebody may ask to cancel it meanwhile. sending: what `send` was given, once it was.
    """

    running: RunningAction
    held: Held | None = None
    intent: bool = False
    sending: tuple[Call, Prepared] | None = None
    stoppable: bool = True


class Attempts:
    """Takes the steps of attempts; each returns how it ended, stored nowhere yet."""

    def __init__(self, footing: Footing, *, locks: SerialLocks) -> None:
        self._footing = footing
        self._locks = locks

    def free(self, progress: Progress) -> None:
        """Let the next call of the session in."""
        if progress.held is not None:
            self._locks.free(progress.held.key)

    async def run(self, submission: Submission, ready: Prepared | ActionFailed | None, progress: Progress) -> Ended:
        if isinstance(ready, ActionFailed):
            return ready
        try:
            take = self._stoppable if progress.stoppable else self._steps
            return await take(submission, ready, progress)
        except ActionFailed as failure:
            return failure
        except Busy as busy:
            if submission.interrupted:
                return self._lost(submission)
            return connector_failure(
                submission, "session_busy", busy.message, details=busy.details, retry_after_ms=busy.retry_after_ms
            )
        except Exception as exc:
            uncertain = progress.intent and not submission.read_only
            if isinstance(exc, StoreFailure) and not uncertain:
                return Interrupted("the store could not record the step before sending; nothing was sent")
            log.exception("action.handler_broken", action_id=submission.action.id, error_type=type(exc).__name__)
            return HandlerBroken("the connector failed in a way it does not declare", uncertain=uncertain)

    def _lost(self, submission: Submission) -> ActionFailed:
        action = submission.action
        return outcome_lost(submission.connector, action_id=action.id, capability_id=action.capability_id)

    async def _stoppable(self, submission: Submission, ready: Prepared | None, progress: Progress) -> Ended:
        """Take the steps until they end, or until somebody asks to cancel in time. A result in hand always counts."""
        if progress.running.asked:
            return cancelled_end(submission, progress.running, None)
        wake = Wake()
        progress.running.when_asked(wake)
        steps = wake.at_end_of(self._steps(submission, ready, progress))
        try:
            await wake.sleep()
            evidence: JsonObject | None = None
            if not steps.done() and progress.running.phase == "sending":
                evidence = await self._stop_at_provider(submission, progress)
            seen_ending = evidence is not None and evidence.get("ended") is True
            if steps.done() or progress.running.phase == "after" or seen_ending:
                return await steps
            steps.cancel()
            await asyncio.wait((steps,))
            return cancelled_end(submission, progress.running, evidence) if steps.cancelled() else steps.result()
        finally:
            if not steps.done():
                steps.cancel()
                await asyncio.wait((steps,))

    async def _stop_at_provider(self, submission: Submission, progress: Progress) -> JsonObject:
        assert progress.sending is not None  # noqa: S101 - set before the phase
        stopping = submission.handler.cancel(*progress.sending, state=state_of(self._footing, submission))
        try:
            return await within(progress.running.cancel_ms / 1000, stopping, clock=self._footing.clock)
        except Overrun:
            return {"stopped": False, "note": "the provider did not answer the request to stop in time"}
        except Exception as exc:
            log.exception("action.cancel_broken", action_id=submission.action.id, error_type=type(exc).__name__)
            return {"stopped": False, "note": "the connector failed to ask the provider to stop"}

    async def _steps(self, submission: Submission, ready: Prepared | None, progress: Progress) -> Ended:
        call = submission.call()
        serial = submission.handler.serial_key(call)
        if serial is not None:
            progress.held = await self._locks.acquire(serial, call, tenant=submission.tenant)
            await self._footing.faults.reach("after_lock")
        call = submission.call(
            deadline_ms=self._footing.now_ms() + submission.timeout_ms,
            previous_uncertain=progress.held.previous_uncertain if progress.held else None,
        )
        prepared = Prepared() if submission.interrupted else ready or await self._prepare(submission, call)
        await self._footing.faults.reach("after_prepare")
        if not submission.read_only and not progress.intent:
            if call.deadline_ms is not None and self._footing.now_ms() >= call.deadline_ms:
                raise overrun(submission, uncertain=False)
            await self._record_intent(submission, prepared)
            progress.intent = True
            await self._footing.faults.reach("after_intent")
        progress.sending = (call, prepared)
        if not progress.running.begin_sending():
            return cancelled_end(submission, progress.running, None)
        outcome = await self._send(submission, call, prepared)
        progress.running.phase = "after"
        await self._footing.faults.reach("after_answer")
        if submission.handler.operation.confirm != "none":
            outcome = await self._confirm(submission, call, prepared, outcome)
        return checked_output(submission, outcome)

    async def _prepare(self, submission: Submission, call: Call) -> Prepared:
        described = submission.resumed.snapshot if submission.resumed else None
        seconds = self._seconds(submission, call)
        try:
            with self._footing.spans.step("prepare"):
                if not submission.offer.reads_first:
                    return await submission.handler.prepare(call, described)
                return await within(seconds, submission.handler.prepare(call, described), clock=self._footing.clock)
        except Overrun:
            raise overrun(submission, uncertain=False) from None

    async def _record_intent(self, submission: Submission, prepared: Prepared) -> None:
        params = {
            "tenant": submission.tenant,
            "action_id": submission.action.id,
            "attempt": submission.attempt,
            "lease": submission.lease,
            "now": self._footing.now_ms(),
            "facts": to_json(prepared.facts),
        }
        recorded = await self._footing.database.write(
            lambda connection: connection.execute(QUERIES["record_intent"], params)
        )
        if not recorded:
            raise Interrupted("the claim was lost before anything was sent")

    async def _send(self, submission: Submission, call: Call, prepared: Prepared) -> Outcome:
        began = self._footing.clock.monotonic()
        try:
            sending = submission.handler.send(
                call, prepared, publish=self._publish(submission), state=state_of(self._footing, submission)
            )
            with self._footing.spans.step("send"):
                return await within(self._seconds(submission, call), sending, clock=self._footing.clock)
        except ActionFailed as failure:
            return failure
        except Overrun:
            return overrun(submission, uncertain=not submission.read_only)
        finally:
            about, seconds = submission.about, self._footing.clock.monotonic() - began
            self._footing.meter.provider_took(tenant=about.tenant, operation=about.operation, seconds=seconds)

    def _publish(self, submission: Submission) -> Publish:
        if not submission.handler.operation.streaming:
            return unpublished
        origin = Origin(
            tenant=submission.tenant,
            action_id=submission.action.id,
            session_id=submission.context.aip_session_id,
            correlation_id=submission.context.correlation_id,
        )
        chunks = Chunks(
            self._footing,
            origin=origin,
            attempt=submission.attempt,
            lease=submission.lease,
            about=named_by(submission),
        )
        return chunks.publish

    async def _confirm(self, submission: Submission, call: Call, prepared: Prepared, outcome: Outcome) -> Outcome:
        seconds = (self._footing.limits.confirm_ms + self._footing.limits.overrun_ms) / 1000
        try:
            with self._footing.spans.step("confirm"):
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

    def _seconds(self, submission: Submission, call: Call) -> float:
        """Return what is left of the action's time; never more than all of it, wherever the clock was set."""
        assert call.deadline_ms is not None  # noqa: S101 - set when the lock was taken
        left_ms = min(max(call.deadline_ms - self._footing.now_ms(), 1), submission.timeout_ms)
        return (left_ms + self._footing.limits.overrun_ms) / 1000
