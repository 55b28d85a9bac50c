"""A claimed action from its attempt to its settlement, which comes however long the store refuses it.

Source: design §3, D1, D4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog

from aip_hermes.contract.handler import Prepared
from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.errors import ActionFailed
from aip_hermes.runtime import leases
from aip_hermes.runtime.attempt import Attempts, Progress
from aip_hermes.runtime.backlog import waits_again
from aip_hermes.runtime.cancellation import Cancelled, RunningAction
from aip_hermes.runtime.ends import Ended, not_kept
from aip_hermes.runtime.failures import HandlerBroken
from aip_hermes.runtime.fence import Claimed, Verdict, claim
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.keeping import keeping_of
from aip_hermes.runtime.serial import SerialLocks
from aip_hermes.runtime.settlement import Ending, LostClaim, columns_of, conclude, settle
from aip_hermes.runtime.storable import storable
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within

__all__ = ["Executor"]

log = structlog.get_logger(__name__)


class Executor:
    """Runs attempts. Stateless but for those who wait for an end (`finished`) and settlements still on their way."""

    def __init__(self, footing: Footing, *, locks: SerialLocks) -> None:
        self._footing = footing
        self._attempts = Attempts(footing, locks=locks)
        self._settling: set[asyncio.Task[Mapping[str, Any] | None]] = set()

    async def run(
        self, submission: Submission, *, ready: Prepared | ActionFailed | None = None
    ) -> Mapping[str, Any] | None:
        """Run a claimed attempt to its settlement; return what is kept of the result, None for what waits again.

        ready: what `prepare` gave before a claim that carries the intent, or how it refused.
        Raises: StoreUnavailable when the result could not be stored in time; the attempt is then settled later.
        """
        with self._footing.spans.attempt(submission.about) as span:
            stored = await self._run(submission, ready)
            span.outcome(stored)
            return stored

    async def _run(self, submission: Submission, ready: Prepared | ActionFailed | None) -> Mapping[str, Any] | None:
        progress = Progress(self._known(submission), intent=isinstance(ready, Prepared) or submission.interrupted)
        address = {"tenant": submission.tenant, "action_id": submission.action.id}
        self._footing.running.enter(progress.running, **address)
        try:
            outcome = await self._attempts.run(submission, ready, progress)
            await self._footing.faults.reach("before_settle")
        except BaseException:
            self._attempts.free(progress)
            raise
        finally:
            self._footing.running.leave(**address)
        settling = asyncio.create_task(self._settle(submission, outcome, progress))
        self._settling.add(settling)
        settling.add_done_callback(self._settled)
        try:
            return await within(
                self._footing.limits.settle_wait_ms / 1000, settling, clock=self._footing.clock, cancels=False
            )
        except Overrun:
            raise StoreUnavailable(
                "the result could not be stored yet; query the action before sending again"
            ) from None
        except LostClaim:
            if submission.taken is not None:
                raise
            raise StoreUnavailable("the action is in other hands now; query it before sending again") from None

    async def read(self, submission: Submission) -> Mapping[str, Any] | Verdict:
        """Run a safe read and store its end in one transaction.

        Returns: what is kept, or the verdict of an equal read that settled first.
        """
        with self._footing.spans.attempt(submission.about) as span:
            stored = await self._read(submission)
            if isinstance(stored, Mapping):
                span.outcome(stored)
            return stored

    async def _read(self, submission: Submission) -> Mapping[str, Any] | Verdict:
        unknown = RunningAction(cancellable=False, cancel_ms=0)
        outcome = await self._attempts.run(submission, None, Progress(unknown, stoppable=False))
        await self._footing.faults.reach("before_settle")

        def once(connection: Connection) -> Mapping[str, Any] | Verdict:
            now = self._footing.now_ms()
            lease = leases.fresh(self._footing, now=now)
            end = columns_of(ending, stored)
            verdict = claim(connection, submission, now=now, intent_at=None, facts=None, lease=lease, end=end)
            if not isinstance(verdict, Claimed):
                return verdict
            if verdict.ended is None:  # another attempt under an Action ID that is known
                claimed = submission.with_changes(attempt=verdict.attempt, lease=verdict.lease)
                return self._settle_in(connection, claimed, outcome)
            conclude(connection, verdict.ended, stored, ending, now=now)
            return stored

        outcome = _storable(submission, outcome)
        ending = _ending(submission, outcome)
        stored = ending.stored
        with self._footing.spans.step("settle"):
            kept = await self._footing.database.write(once)
        await self._footing.faults.reach("after_settle")
        return kept

    def _known(self, submission: Submission) -> RunningAction:
        longest_ms = self._footing.limits.cancel_ms
        if submission.published is None:
            return RunningAction(cancellable=False, cancel_ms=longest_ms)
        return RunningAction(
            cancellable=submission.handler.operation.cancel, cancel_ms=submission.offer.cancel_ms or longest_ms
        )

    async def aclose(self) -> None:
        """Give up on settlements that the store refuses; the next start finds their actions."""
        settling = list(self._settling)
        if settling:
            await asyncio.wait(settling, timeout=1.0)
        for task in settling:
            task.cancel()
        await asyncio.gather(*settling, return_exceptions=True)

    async def _settle(self, submission: Submission, outcome: Ended, progress: Progress) -> Mapping[str, Any] | None:
        delay_s, again = 0.1, False
        outcome = _storable(submission, outcome)
        try:
            while True:
                try:
                    # Who was asked to stop makes no further try.
                    end = self._settle_in if progress.running.asked else self._settle_or_wait
                    with self._footing.spans.step("settle"):
                        stored = await self._footing.database.write(
                            partial(end, submission=submission, outcome=outcome)
                        )
                    break
                except StoreUnavailable as exc:
                    if exc.kind == "closed":
                        raise
                    log.warning("action.settle_failed", action_id=submission.action.id, kind=exc.kind)
                    await self._footing.clock.sleep(delay_s)
                    delay_s, again = min(delay_s * 2, 5.0), True
                except LostClaim:
                    # The write that was answered with a failure did arrive; or its approval was revoked before it sent.
                    stored = await self._footing.database.write(lambda connection: _kept(connection, submission))
                    if not again and (submission.resumed is None or stored is None):
                        raise
                    break
                except Exception as exc:
                    # An end without its details is still an end: the key answers and the session opens.
                    if isinstance(outcome, HandlerBroken):
                        raise
                    log.exception("action.end_broken", action_id=submission.action.id, error_type=type(exc).__name__)
                    outcome = not_kept(submission, uncertain=getattr(outcome, "uncertain", True))
        finally:
            self._attempts.free(progress)
        await self._footing.faults.reach("after_settle")
        if stored is None:
            self._footing.queued.set()
        else:
            self._footing.finished.tell(tenant=submission.tenant, action_id=submission.action.id, stored=stored)
        self._footing.watchers.changed(tenant=submission.tenant, action_id=submission.action.id)
        return stored

    def _settle_or_wait(
        self, connection: Connection, submission: Submission, outcome: Ended
    ) -> Mapping[str, Any] | None:
        if waits_again(connection, submission, outcome, self._footing):
            return None
        return self._settle_in(connection, submission, outcome)

    def _settle_in(self, connection: Connection, submission: Submission, outcome: Ended) -> Mapping[str, Any]:
        return settle(
            connection,
            tenant=submission.tenant,
            action_id=submission.action.id,
            attempt=submission.attempt,
            ending=_ending(submission, outcome),
            now=self._footing.now_ms(),
            lease=submission.lease,
            by_worker=submission.taken is not None,
        )

    def _settled(self, task: asyncio.Task[Mapping[str, Any] | None]) -> None:
        self._settling.discard(task)
        if not task.cancelled():
            task.exception()  # seen by whoever waits; nobody may be waiting any more


def _ending(submission: Submission, outcome: Ended) -> Ending:
    resumed = submission.resumed
    # A capability that was withdrawn meanwhile starts nothing, and can't say what it held.
    serial = "unknown" if submission.published is None else submission.handler.operation.serial
    return Ending(
        outcome=outcome,
        approval_id=resumed.approval_id if resumed else None,
        approval_status="approved" if resumed else None,
        starts_run=serial == "run",
        may_hold=serial != "none",
        keeping=keeping_of(submission, outcome),
    )


def _storable(submission: Submission, outcome: Ended) -> Ended:
    if isinstance(outcome, Cancelled):
        return outcome
    # A capability that was withdrawn meanwhile can't say that it only reads.
    read_only = submission.published is not None and submission.read_only
    return storable(outcome, capability_id=submission.action.capability_id, read_only=read_only)


def _kept(connection: Connection, submission: Submission) -> Mapping[str, Any] | None:
    """Return how this attempt ended by another hand, and give back what it may hold; None: it did not end."""
    address = {"tenant": submission.tenant, "action_id": submission.action.id}
    row = connection.execute(QUERIES["fetch_action"], address)[0]
    if row["settled_at"] is None or row["attempt"] != submission.attempt:
        return None
    connection.execute(QUERIES["give_lock_back"], address)
    kept: Mapping[str, Any] = from_json(row["result"])
    return kept
