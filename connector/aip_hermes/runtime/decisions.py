"""Deciding an approval: the ordered rules, the one terminal decision, and the run it releases.

Every refusal is `auth.not_authorized` with the rule in `details.code` (design D9). The released action runs inside the
deciding request. Source: AIP HTTP surface §9.4–9.6; runtime behaviour §9.3–9.6; design D9, D25; issue reports on
approvals that are used up before the work has started, or given for other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from aip_hermes import wire
from aip_hermes.database import Connection, StoreUnavailable
from aip_hermes.runtime import approvals, digests, leases
from aip_hermes.runtime.authority import Authorities, AuthorityEntry
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.decision_answers import DecisionAnswers
from aip_hermes.runtime.decision_rules import RULES, Case, check_sender
from aip_hermes.runtime.failures import ApprovalUnknown, ApprovalUnverified, decision_refused
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import from_json
from aip_hermes.runtime.submission import RESERVATION_GRACE_MS, Resumption, Submission, Taken
from aip_hermes.runtime.unreadable import readable

__all__ = ["Decisions"]

log = structlog.get_logger(__name__)


_WAYS_OUT: Final = "no decision was recorded and nothing was sent: the operator can put a backup of the store back"

_Concluded = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An action and its approval, as a decision left them."""


class Decisions:
    """Takes decisions from their verified senders."""

    def __init__(self, footing: Footing, *, authorities: Authorities, pipeline: Pipeline) -> None:
        self._footing = footing
        self._authorities = authorities
        self._pipeline = pipeline
        self._answers = DecisionAnswers(footing)

    async def decide(self, decision: wire.ApprovalDecision, caller: Caller) -> wire.EventStream:
        """Record one decision and carry out its consequence.

        Returns: the decision's event and the consequence's event; of a vote that does not suffice, its event alone; for
        the identical decision again, the recorded ones.
        Raises: NotAuthorized, ApprovalUnknown, ApprovalUnreadable.
        """
        check_sender(decision, caller)
        tenant = caller.tenant_id or ""
        while True:
            row = await self._fresh(tenant, decision.approval_id)
            authority = self._authorities.resolve(caller.principal.id, now_ms=self._footing.now_ms())
            if authority is None:
                raise decision_refused("policy.approver_unauthorized", self._no_authority())
            with readable(decision.approval_id, advice=_WAYS_OUT):
                case = await self._case(row, decision, caller, authority)
                if (same := case.recorded) is not None:
                    return await self._answers.again(row, decision, same)
                for rule in RULES:
                    rule(case)
                concluded = await self._conclude(case)
            if concluded is not None:
                return await self._carry_out(case, *concluded)

    async def resume(
        self, action: Mapping[str, Any], row: Mapping[str, Any], taken: Taken | None = None
    ) -> Mapping[str, Any] | None:
        """Run an approved action that has not passed its intent: after a decision, after a restart, from the queue.

        taken: set where the worker took it. Returns what is kept of its result, None for what waits again.
        """
        decision = wire.ApprovalDecision.model_validate(from_json(row["decision"]))
        resumed = Resumption(approval_id=row["approval_id"], snapshot=from_json(row["snapshot"]))
        submission = self._unparked(action, resumed)
        if submission is not None and _as_decided(submission, action, row, decision):
            return await self._pipeline.resume(submission.with_changes(taken=taken, lease=action["lease_number"]))
        found = None if submission is None else digests.frozen_input_hash(submission.action)
        return await self._refuse(action, row, found=found)

    def _unparked(self, action: Mapping[str, Any], resumed: Resumption) -> Submission | None:
        """Return the frozen action; None for what is no action any more."""
        try:
            return Submission.unparked(
                from_json(action["parked"]), tenant=action["tenant"], attempt=action["attempt"], resumed=resumed
            )
        except (ValueError, TypeError, KeyError):
            log.warning("approval.parked_unreadable", action_id=action["action_id"])
            return None

    async def _refuse(
        self, action: Mapping[str, Any], row: Mapping[str, Any], *, found: str | None
    ) -> Mapping[str, Any]:
        refusal = ApprovalUnverified(
            "what is stored now differs from what was approved; nothing was sent",
            details={
                "approval_id": row["approval_id"],
                "approved_input_hash": row["input_hash"],
                "found_input_hash": found,
            },
        )

        def end(connection: Connection) -> Mapping[str, Any]:
            return settle(
                connection,
                tenant=action["tenant"],
                action_id=action["action_id"],
                attempt=action["attempt"],
                ending=Ending(outcome=refusal, approval_id=row["approval_id"], approval_status="approved"),
                now=self._footing.now_ms(),
            )

        stored = await self._until_stored(end)
        self._footing.ended(tenant=action["tenant"], action_id=action["action_id"], stored=stored)
        return stored

    async def _until_stored(self, end: Callable[[Connection], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Write an end that must come, however long the store refuses it."""
        while True:
            try:
                return await self._footing.database.write(end)
            except StoreUnavailable as exc:
                if exc.kind == "closed":
                    raise
                await self._footing.clock.sleep(1)

    async def _fresh(self, tenant: str, approval_id: str) -> Mapping[str, Any]:
        """Return the approval as it stands now; one whose time is up is ended first."""
        row = await self._footing.database.read(lambda c: approvals.fetch(c, tenant=tenant, approval_id=approval_id))
        if row is None:
            raise ApprovalUnknown(f"there is no approval {approval_id}", details={"approval_id": approval_id})
        if not approvals.overdue(row, now=self._footing.now_ms()):
            return row

        def end(connection: Connection) -> Mapping[str, Any]:
            approvals.expire(connection, row, now=self._footing.now_ms())
            fresh = approvals.fetch(connection, tenant=tenant, approval_id=approval_id)
            assert fresh is not None  # noqa: S101 - approvals are never deleted
            return fresh

        return await self._footing.database.write(end)

    async def _case(
        self, row: Mapping[str, Any], decision: wire.ApprovalDecision, caller: Caller, authority: AuthorityEntry
    ) -> Case:
        def look(connection: Connection) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            action = approvals.action_of(connection, row["tenant"], row["action_id"])
            return action, approvals.decisions_of(connection, row["approval_id"])

        action, decisions = await self._footing.database.read(look)
        return Case(
            decision=decision,
            caller=caller,
            authority=authority,
            request=wire.ApprovalRequest.model_validate(from_json(row["request"])),
            row=row,
            action=action,
            decisions=decisions,
        )

    async def _conclude(self, case: Case) -> _Concluded | None:
        """Record the decision; return action and approval as they stand after it, None when it came too late.

        Recorded is what is known here, not what the sender says of itself: the approver's label, the authority, and
        `decided_at`, which is the time of recording (runtime behaviour §9.5), the same as in the event.
        """
        known = {"approver": case.caller.named, "authority_path": case.authority.path()}
        tenant, action_id = case.row["tenant"], case.row["action_id"]

        def conclude(connection: Connection) -> _Concluded | None:
            now = self._footing.now_ms()
            recorded = case.decision.model_copy(update=known | {"decided_at": wire.rfc3339(now)})
            if not self._record(connection, case, recorded, now=now):
                return None
            leases.take(connection, self._footing, tenant=tenant, action_id=action_id, now=now)
            row = approvals.fetch(connection, tenant=tenant, approval_id=case.request.id)
            assert row is not None  # noqa: S101 - approvals are never deleted
            return approvals.action_of(connection, tenant, action_id), row

        try:
            return await self._footing.database.write(conclude)
        except approvals.DecisionTaken:
            return None

    def _record(self, connection: Connection, case: Case, recorded: wire.ApprovalDecision, *, now: int) -> bool:
        until = now + RESERVATION_GRACE_MS
        if case.row["status"] == "approved":
            return approvals.withdraw(connection, case.row, recorded, now=now)
        if recorded.decision == "approved":
            needed = case.needed
            voted = approvals.vote(connection, case.row, recorded, needed=needed, reserved_until=until, now=now)
            return voted is not None
        return approvals.conclude(connection, case.row, recorded, reserved_until=until, now=now)

    async def _carry_out(self, case: Case, action: Mapping[str, Any], row: Mapping[str, Any]) -> wire.EventStream:
        """Nothing is read between the commit and the run: a released action has nobody else to run it."""
        address = {"tenant": action["tenant"], "action_id": action["action_id"]}
        self._footing.watchers.changed(**address)
        await self._footing.faults.reach("after_decision")
        if row["status"] == "pending":
            return await self._answers.voted(row, str(case.decision.decision_id))
        if action["state"] == "running":
            await self.resume(action, row)
        else:
            self._footing.ended(**address, stored=from_json(action["result"]))
            running = self._footing.running.find(**address)
            if running is not None:  # it was released, and revoked before it sent: it ends now, without an effect
                running.ask("the approval was revoked")
        return await self._answers.ended(row, case.decision.decision)

    def _no_authority(self) -> str:
        if not len(self._authorities):
            return "no approval authority resolver is configured"
        return "the approval authority file names no valid entry for this principal"


def _as_decided(
    submission: Submission, action: Mapping[str, Any], row: Mapping[str, Any], decision: wire.ApprovalDecision
) -> bool:
    """Whether all that runs is what was frozen, and what the decider's hash stands for (field reports F061, F062)."""
    if digests.frozen_hash(from_json(action["parked"]), from_json(row["snapshot"])) != row["content_hash"]:
        return False
    request = wire.ApprovalRequest.model_validate(from_json(row["request"]))
    if request.policy_snapshot is None:
        return True
    bound = digests.policy_hash(
        request.policy_snapshot,
        action=submission.action,
        requester_id=submission.principal.id,
        subject_id=None,
        input_hash=digests.frozen_input_hash(submission.action),
    )
    return bound == decision.policy_hash and submission.action.id == action["action_id"]
