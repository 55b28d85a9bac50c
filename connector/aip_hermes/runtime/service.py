"""The runtime as its server sees it: one object, opened on one data file, closed by whoever opened it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import structlog

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector
from aip_hermes.database import OwnerLock, Place, StoreFailure, obstacle_at, open_store
from aip_hermes.ids import ActionId, ApprovalId, MessageId, TenantId
from aip_hermes.ports import Clock, Faults, NewId, NoFaults, SystemClock, new_id
from aip_hermes.runtime.approval_clock import ApprovalClock
from aip_hermes.runtime.approval_context import ApprovalContexts
from aip_hermes.runtime.approval_policies import check_policies
from aip_hermes.runtime.authority import Authorities
from aip_hermes.runtime.background import Background
from aip_hermes.runtime.caller import Arrival, Caller, MessageContext
from aip_hermes.runtime.cancel_requests import CancelRequests
from aip_hermes.runtime.decisions import Decisions
from aip_hermes.runtime.event_pages import MAX_PAGE_BYTES
from aip_hermes.runtime.execution import Executor
from aip_hermes.runtime.failures import RuntimeStopping
from aip_hermes.runtime.fence_hits import counting_refusals
from aip_hermes.runtime.figures import Load, load
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.hearing import Hearing
from aip_hermes.runtime.keeper import Keeper
from aip_hermes.runtime.limits import RuntimeLimits
from aip_hermes.runtime.messages import MessageClaim, Messages
from aip_hermes.runtime.notices import ApprovalWaits, Notices
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.queries import Views
from aip_hermes.runtime.queue import QueueWorker
from aip_hermes.runtime.reconciliation import Reconciliations
from aip_hermes.runtime.records import Records
from aip_hermes.runtime.recovery import Released, Unfinished, recover
from aip_hermes.runtime.serial import SerialLocks
from aip_hermes.runtime.store import KIND
from aip_hermes.runtime.submission import Submission
from aip_hermes.runtime.waiting import Overrun, within
from aip_hermes.telemetry import Meter, NoMeter, NoSpans, Spans

__all__ = ["Runtime"]

log = structlog.get_logger(__name__)

T = TypeVar("T")

TAKEOVER_LOOK_S: Final = 4.0
"""How often a worker looks for what another one has left. With a lease of 30 s that is definite within 35 s."""

WRITE_WITHIN_S: Final = 5.0
"""How long a store may take for a write that changes nothing, before it is said to take none."""


class Runtime:
    """The embedded AIP runtime. `Runtime.open` makes one."""

    def __init__(
        self,
        footing: Footing,
        *,
        owner: OwnerLock | None,
        catalog: Catalog,
        connectors: Sequence[Connector],
        authorities: Authorities,
    ) -> None:
        self._footing = footing
        self._owner = owner
        self._connectors = tuple(connectors)
        self._background = Background(footing.clock)
        self._stopping = False
        self._obstacle: Callable[[], object | None] = lambda: None
        offering = {str(offer.capability_id): c for c in self._connectors for offer in c.offers()}
        self._executor = Executor(footing, locks=SerialLocks(footing))
        self._pipeline = Pipeline(footing, catalog=catalog, connectors=offering, executor=self._executor)
        self._messages = Messages(footing)
        self._decisions = Decisions(footing, authorities=authorities, pipeline=self._pipeline)
        self._queue = QueueWorker(
            footing,
            pipeline=self._pipeline,
            connectors=offering,
            approved=self._decisions.resume,
            start=self._background.start_alone,
        )
        self._cancels = CancelRequests(footing, connectors=offering)
        self.reconciliations = Reconciliations(footing, connectors=self._connectors)
        self._views = Views(footing, authorities=authorities)
        self.records = Records(footing, authorities=authorities)
        self._contexts = ApprovalContexts(footing, views=self._views, pipeline=self._pipeline)

    @classmethod
    async def open(
        cls,
        *,
        store: Place,
        catalog: Catalog,
        connectors: Sequence[Connector],
        authorities: Authorities,
        clock: Clock | None = None,
        new_id: NewId = new_id,
        faults: Faults | None = None,
        limits: RuntimeLimits | None = None,
        meter: Meter | None = None,
        spans: Spans | None = None,
        approval_waits: ApprovalWaits | None = None,
        obstacle: Callable[[Path], object | None] = obstacle_at,
    ) -> Self:
        """Take the data directory, open or make the store, bring interrupted actions to a definite state.

        store: a SQLite file, whose folder is owned until `aclose`, or a database that several runtimes share. catalog:
        made of the connectors' offers.
        obstacle: says why the file system of a file takes no write, or None.
        meter, spans: told what happens; None: nobody. approval_waits: told of each approval, once it is committed.
        Approved actions that had not passed their intent start running in the background.
        Raises: AlreadyOwned, StoreRefused, StoreUnavailable; PolicyRefused for an approval policy that can't be kept.
        """
        check_policies(catalog)
        clock = clock or SystemClock()
        meter = meter or NoMeter()
        hearing = Hearing()
        database = open_store(store, KIND, clock=clock, committed=Notices(meter, approval_waits), heard=hearing)
        owner = OwnerLock(store.parent) if isinstance(store, Path) else None
        if owner is not None:
            owner.acquire()
        footing = Footing(
            database=database,
            alone=owner is not None,
            clock=clock,
            new_id=new_id,
            faults=faults or NoFaults(),
            limits=limits or RuntimeLimits(),
            meter=meter,
            spans=spans or NoSpans(),
        )
        try:
            unfinished = await recover(footing, connectors=connectors)
        except BaseException:
            await footing.database.close()
            if owner is not None:
                owner.release()
            raise
        runtime = cls(footing, owner=owner, catalog=catalog, connectors=connectors, authorities=authorities)
        if isinstance(store, Path):
            runtime._obstacle = partial(obstacle, store)
        hearing.open(footing, runtime._background.start)
        runtime._begin(unfinished)
        return runtime

    async def aclose(self) -> None:
        """Refuse new work, wait a little for running actions, close the store. Idempotent; connectors stay open.

        An action that is still running then is found by the next start (design D4).
        """
        self._stopping = True
        await self._background.aclose(wait_ms=self._footing.limits.close_wait_ms)
        await self._executor.aclose()
        await self._footing.database.close()
        if self._owner is not None:
            self._owner.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def submit(
        self, action: wire.Action, caller: Caller, context: MessageContext
    ) -> wire.ActionResult | wire.Ack:
        """Run an action to its answer, whoever still listens; an asynchronous one is acknowledged when it waits.

        Raises: RequestRefused for a request that never became an action; StoreFailure when the store can't be used.
        """

        def submit(message: MessageClaim | None) -> Awaitable[wire.ActionResult | wire.Ack]:
            begin = partial(self._pipeline.submit, action, caller, context, message)
            return counting_refusals(self._footing, action, caller, begin)

        return await self._detached(self._messages.once(context.arrival, caller, submit))

    async def decide(self, decision: wire.ApprovalDecision, caller: Caller) -> wire.EventStream:
        """Decide an approval; an approved action runs before the answer.

        Raises: NotAuthorized with the rule in `details.code`, ApprovalUnknown.
        """
        return await self._detached(self._decisions.decide(decision, caller))

    async def status(
        self,
        action_id: ActionId | str,
        caller: Caller,
        *,
        include_result: bool = False,
        include_receipts: bool = False,
        include_chunks: bool = False,
    ) -> wire.ActionStatus:
        """Return where an action stands. include_receipts needs `receipt:read` too. Raises: NotAuthorized."""
        return await self._views.status(
            ActionId(action_id),
            caller,
            include_result=include_result,
            include_receipts=include_receipts,
            include_chunks=include_chunks,
        )

    async def result(
        self, action_id: ActionId | str, caller: Caller, *, include_receipt: bool = False
    ) -> wire.ActionResult:
        """Return an action's terminal result. Raises: NotAuthorized, ActionNotFound, ResultNotReady, ActionGone."""
        return await self._views.result(ActionId(action_id), caller, include_receipt=include_receipt)

    async def events(
        self,
        action_id: ActionId | str,
        caller: Caller,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] = (),
        include_chunks: bool = False,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> wire.ActionEvents:
        """Return what happened to an action behind `cursor`: events of `kinds` (all when empty), then chunks.

        max_bytes: of them together; the first one always fits.

        Raises: NotAuthorized, ActionNotFound, InvalidCursor, CursorExpired.
        """
        return await self._views.events(
            ActionId(action_id),
            caller,
            cursor=cursor,
            limit=limit,
            kinds=kinds,
            include_chunks=include_chunks,
            max_bytes=max_bytes,
        )

    def watching_log(self, caller: Caller) -> AbstractAsyncContextManager[asyncio.Event]:
        """As `watching`, for all actions of the caller's tenant."""
        return self._footing.watchers.watching(tenant=caller.tenant_id or "", action_id="")

    def watching(self, action_id: ActionId | str, caller: Caller) -> AbstractAsyncContextManager[asyncio.Event]:
        """Return a context whose event is set after each chunk, decision and end of the action in this process.

        What another process did is found by looking. It says nothing about the action to anybody: what there is,
        `events` tells who may read it.
        """
        return self._footing.watchers.watching(tenant=caller.tenant_id or "", action_id=str(action_id))

    async def cancel(
        self, action_id: ActionId | str, caller: Caller, *, reason: str | None = None
    ) -> wire.ActionResult:
        """Cancel an action; the answer is its result, cancelled or the terminal one that came first.

        Raises: NotAuthorized, CapabilityUnknown (`resource.not_found`), CancelUnsupported.
        """
        return await self._detached(self._cancels.cancel(ActionId(action_id), caller, reason=reason))

    async def approvals(
        self,
        caller: Caller,
        *,
        status: str | None = None,
        approver: str | None = None,
        requester: str | None = None,
        tenant_id: TenantId | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        include_action_status: bool = False,
        include_receipts: bool = False,
    ) -> wire.ApprovalList:
        """Return a page of the approvals that the caller may see. limit: default 100, clamped to 1…1000.

        Raises: NotAuthorized, TenantMismatch, InvalidCursor.
        """
        return await self._views.approvals(
            caller,
            status=status,
            approver=approver,
            requester=requester,
            tenant_id=tenant_id,
            cursor=cursor,
            limit=limit,
            include_action_status=include_action_status,
            include_receipts=include_receipts,
        )

    async def approval(
        self,
        approval_id: ApprovalId | str,
        caller: Caller,
        *,
        include_action_status: bool = False,
        include_evidence_payload: bool = False,
        include_receipts: bool = False,
    ) -> wire.ApprovalRecordView:
        """Return one approval. Raises: NotAuthorized, ApprovalNotFound."""
        return await self._views.approval(
            ApprovalId(approval_id),
            caller,
            include_action_status=include_action_status,
            include_evidence_payload=include_evidence_payload,
            include_receipts=include_receipts,
        )

    async def approval_context(self, approval_id: ApprovalId | str, caller: Caller) -> Mapping[str, Any]:
        """Return what a decision meets now: votes, target, and what the operation would touch besides (design D25).

        Raises: NotAuthorized, ApprovalNotFound.
        """
        return await self._contexts.context(ApprovalId(approval_id), caller)

    async def claim_message(self, message_id: MessageId | str, sent_at_ms: int, caller: Caller) -> None:
        """Take a message id for as long as its `sent_at` is inside the window.

        Ids are claimed per tenant, whoever of it the caller is, and not given back when the action fails.
        Raises: MessageReplayed.
        """
        await self._messages.claim(Arrival(message_id=MessageId(message_id), sent_at_ms=sent_at_ms), caller)

    async def load(self, tenant: str | None) -> Load:
        """Return what is unfinished now, of one tenant (empty: of none) or of all."""
        return await self._footing.database.read(lambda connection: load(connection, tenant=tenant))

    async def health(self) -> Mapping[str, Any]:
        """Return `{"ready", "store": {"ready"}, "endpoints": {endpoint id: {"ready", "detail"}}}`; changes nothing."""
        store = await self._store_works()
        endpoints: dict[str, dict[str, Any]] = {}
        for connector in self._connectors:
            for endpoint_id, (ready, detail) in (await connector.health()).items():
                endpoints[str(endpoint_id)] = {"ready": ready, "detail": detail}
        ready = store and all(endpoint["ready"] for endpoint in endpoints.values())
        return {"ready": ready, "store": {"ready": store}, "endpoints": endpoints}

    async def _store_works(self) -> bool:
        """Whether the store answers a read and takes a write, soon; the write that it is asked for changes nothing."""
        if self._obstacle() is not None:
            return False
        database = self._footing.database
        try:
            await database.read(lambda connection: connection.execute("SELECT 1 AS alive"))
            await within(WRITE_WITHIN_S, database.write(lambda _: None), clock=self._footing.clock)
        except (StoreFailure, Overrun):
            return False
        return True

    async def _detached(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in a task of its own, so that a client that hangs up stops nothing."""
        if self._stopping:
            work.close()
            raise RuntimeStopping("the server is stopping; send the request again later")
        return await self._background.outlast(work)

    def _begin(self, unfinished: Unfinished) -> None:
        """Go on with what was found, and start the loops."""
        self._go_on(unfinished)
        self._background.keep("queue", self._queue.run)
        self._background.keep("keeper", Keeper(self._footing).run)
        self._background.keep("approval_clock", ApprovalClock(self._footing).run)
        if not self._footing.alone:
            self._background.keep("takeover", self._take_over)

    def _go_on(self, unfinished: Unfinished) -> None:
        for submission in unfinished.interrupted:
            self._background.start_alone(self._observe(submission))
        for release in unfinished.released:
            self._background.start_alone(self._resume(release))

    async def _take_over(self) -> None:
        """Look, every now and then, for what another worker of the store has left; a lease says when."""
        while True:
            await self._footing.clock.sleep(TAKEOVER_LOOK_S)
            try:
                self._go_on(await recover(self._footing, connectors=self._connectors))
            except StoreFailure as exc:
                log.warning("takeover.store_failed", error_type=type(exc).__name__)

    async def _observe(self, submission: Submission) -> None:
        try:
            await self._pipeline.resume(submission)
        except StoreFailure as exc:
            log.error("action.observe_failed", action_id=submission.action.id, error_type=type(exc).__name__)

    async def _resume(self, release: Released) -> None:
        action, row = release
        try:
            await self._decisions.resume(action, row)
        except StoreFailure as exc:
            log.error("approval.resume_failed", action_id=action["action_id"], error_type=type(exc).__name__)
