"""Deciding an approval: the ordered rules, the one terminal decision, and the run it releases.

Every refusal is `auth.not_authorized` with the rule in `details.code` (design D9). The released action runs inside the
deciding request. Source: AIP HTTP surface §9.4–9.6; runtime behaviour §9.3–9.6; design D9, D25; issue reports on
approvals that are used up before the work has started, or given for other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from aip_hermes import wire
from aip_hermes.database import Connection, Database
from aip_hermes.ports import Clock, Faults, NewId
from aip_hermes.runtime import approvals, digests
from aip_hermes.runtime.authority import Authorities, AuthorityEntry
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.constraints import check_constraints
from aip_hermes.runtime.events import decision_event_id, fetch_event, result_event_id
from aip_hermes.runtime.failures import ApprovalUnknown, ApprovalUnverified, decision_refused
from aip_hermes.runtime.limits import RuntimeLimits
from aip_hermes.runtime.pipeline import Pipeline
from aip_hermes.runtime.settlement import Ending, settle
from aip_hermes.runtime.store import from_json
from aip_hermes.runtime.submission import RESERVATION_GRACE_MS, Resumption, Submission
from aip_hermes.runtime.waiting import Finished, Overrun, within

__all__ = ["Decisions"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """One decision under examination. row: the approval. parked: the frozen action, None once it was settled."""

    decision: wire.ApprovalDecision
    caller: Caller
    authority: AuthorityEntry
    request: wire.ApprovalRequest
    row: Mapping[str, Any]
    parked: Mapping[str, Any] | None
    now: int

    @property
    def policy(self) -> wire.ApprovalPolicy | None:
        return self.request.policy_snapshot


class Decisions:
    """Takes decisions from their verified senders."""

    def __init__(
        self,
        *,
        database: Database,
        authorities: Authorities,
        pipeline: Pipeline,
        finished: Finished,
        clock: Clock,
        new_id: NewId,
        faults: Faults,
        limits: RuntimeLimits,
    ) -> None:
        self._database = database
        self._authorities = authorities
        self._pipeline = pipeline
        self._finished = finished
        self._clock = clock
        self._new_id = new_id
        self._faults = faults
        self._limits = limits

    async def decide(self, decision: wire.ApprovalDecision, caller: Caller) -> wire.EventStream:
        """Record one terminal decision and carry out its consequence.

        Returns: the decision's event and the consequence's event; for the identical decision again, the recorded ones.
        Raises: NotAuthorized, ApprovalUnknown.
        """
        _sender_is_approver(decision, caller)
        tenant = caller.tenant_id or ""
        while True:
            row = await self._fresh(tenant, decision.approval_id)
            authority = self._authorities.resolve(caller.principal.id, now_ms=self._clock.now_ms())
            if authority is None:
                raise decision_refused("policy.approver_unauthorized", self._no_authority())
            if row["status"] != "pending":
                return await self._recorded(row, decision)
            case = await self._case(row, decision, caller, authority)
            for rule in _RULES:
                rule(case)
            if await self._conclude(case):
                return await self._carry_out(case)

    async def resume(self, action: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run an approved action that has not passed its intent; used after a decision and after a restart."""
        decision = wire.ApprovalDecision.model_validate(from_json(row["decision"]))
        resumed = Resumption(
            approval_id=row["approval_id"], snapshot=from_json(row["snapshot"]), decided_by=decision.approver
        )
        submission, found = self._unparked(action, resumed)
        unchanged = submission is not None and digests.content_hash(submission.action) == row["content_hash"]
        if submission is not None and unchanged and found == row["input_hash"]:
            return await self._pipeline.resume(submission)
        return await self._refuse(action, row, found=found)

    def _unparked(self, action: Mapping[str, Any], resumed: Resumption) -> tuple[Submission | None, str | None]:
        """Return the frozen action and its digest; None for what is no action any more."""
        try:
            submission = Submission.unparked(
                from_json(action["parked"]), tenant=action["tenant"], attempt=action["attempt"], resumed=resumed
            )
            return submission, digests.frozen_input_hash(submission.action)
        except (ValueError, TypeError, KeyError):
            log.warning("approval.parked_unreadable", action_id=action["action_id"])
            return None, None

    async def _refuse(
        self, action: Mapping[str, Any], row: Mapping[str, Any], *, found: str | None
    ) -> Mapping[str, Any]:
        refusal = ApprovalUnverified(
            "the approved input differs from the input that is stored now; nothing was sent",
            details={
                "approval_id": row["approval_id"],
                "approved_input_hash": row["input_hash"],
                "found_input_hash": found,
            },
        )
        stored = await self._database.write(
            lambda connection: settle(
                connection,
                tenant=action["tenant"],
                action_id=action["action_id"],
                attempt=action["attempt"],
                ending=Ending(outcome=refusal, approval_id=row["approval_id"], approval_status="approved"),
                now=self._clock.now_ms(),
                new_id=self._new_id,
            )
        )
        self._finished.tell(tenant=action["tenant"], action_id=action["action_id"], stored=stored)
        return stored

    async def _fresh(self, tenant: str, approval_id: str) -> Mapping[str, Any]:
        """Return the approval as it stands now; one whose time is up is ended first."""
        row = await self._database.read(lambda c: approvals.fetch(c, tenant=tenant, approval_id=approval_id))
        if row is None:
            raise ApprovalUnknown(f"there is no approval {approval_id}", details={"approval_id": approval_id})
        if not approvals.overdue(row, now=self._clock.now_ms()):
            return row

        def end(connection: Connection) -> Mapping[str, Any]:
            approvals.expire(connection, row, now=self._clock.now_ms(), new_id=self._new_id)
            fresh = approvals.fetch(connection, tenant=tenant, approval_id=approval_id)
            assert fresh is not None  # noqa: S101 - approvals are never deleted
            return fresh

        return await self._database.write(end)

    async def _case(
        self, row: Mapping[str, Any], decision: wire.ApprovalDecision, caller: Caller, authority: AuthorityEntry
    ) -> _Case:
        action = await self._database.read(lambda c: approvals.action_of(c, row["tenant"], row["action_id"]))
        return _Case(
            decision=decision,
            caller=caller,
            authority=authority,
            request=wire.ApprovalRequest.model_validate(from_json(row["request"])),
            row=row,
            parked=from_json(action["parked"]),
            now=self._clock.now_ms(),
        )

    async def _conclude(self, case: _Case) -> bool:
        recorded = case.decision.model_copy(
            update={"approver": case.caller.named, "authority_path": case.authority.path()}
        )
        reserved_until = case.now + RESERVATION_GRACE_MS
        return await self._database.write(
            lambda connection: approvals.conclude(
                connection,
                case.row,
                recorded,
                reserved_until=reserved_until,
                now=self._clock.now_ms(),
                new_id=self._new_id,
            )
        )

    async def _carry_out(self, case: _Case) -> wire.EventStream:
        await self._faults.reach("decided")
        tenant, action_id = case.row["tenant"], case.row["action_id"]
        action, row = await self._database.read(
            lambda c: (
                approvals.action_of(c, tenant, action_id),
                approvals.fetch(c, tenant=tenant, approval_id=case.request.id),
            )
        )
        if action["state"] == "running" and row is not None:
            await self.resume(action, row)
        else:
            self._finished.tell(tenant=tenant, action_id=action_id, stored=from_json(action["result"]))
        return await self._events(case.row, case.decision.decision)

    async def _recorded(self, row: Mapping[str, Any], decision: wire.ApprovalDecision) -> wire.EventStream:
        """Answer the identical decision with what was recorded; refuse any other (design D9)."""
        recorded = from_json(row["decision"])
        if not decision.decision_id or recorded.get("decision_id") != decision.decision_id:
            rule = "policy.approval_expired" if row["status"] == "expired" else "policy.approval_not_pending"
            raise decision_refused(
                rule,
                f"approval {row['approval_id']} is {row['status']}; a terminal decision exists",
                details={"approval_status": row["status"]},
            )
        if _content(recorded) != _content(decision.wire()):
            raise decision_refused(
                "policy.approval_not_pending",
                f"decision {decision.decision_id} was recorded with other content",
                details={"approval_status": row["status"]},
            )
        await self._until_settled(row)
        return await self._events(row, row["status"])

    async def _until_settled(self, row: Mapping[str, Any]) -> None:
        """Wait, as the first sender of the decision does, for the action that it released."""
        address = {"tenant": row["tenant"], "action_id": row["action_id"]}
        end = self._finished.register(**address)
        try:
            action = await self._database.read(lambda c: approvals.action_of(c, row["tenant"], row["action_id"]))
            if action["state"] == "running":
                await within(self._limits.key_wait_ms / 1000, end, clock=self._clock)
        except Overrun:
            return
        finally:
            self._finished.forget(end, **address)

    async def _events(self, row: Mapping[str, Any], status: str) -> wire.EventStream:
        ids = (decision_event_id(row["approval_id"], status), result_event_id(row["approval_id"], status))
        found = await self._database.read(
            lambda c: [fetch_event(c, tenant=row["tenant"], event_id=event_id) for event_id in ids]
        )
        return wire.EventStream(events=[event for event in found if event is not None])

    def _no_authority(self) -> str:
        if not len(self._authorities):
            return "no approval authority resolver is configured"
        return "the approval authority file names no valid entry for this principal"


def _sender_is_approver(decision: wire.ApprovalDecision, caller: Caller) -> None:
    if (decision.approver.id, decision.approver.kind) != (caller.principal.id, caller.principal.kind):
        raise decision_refused(
            "policy.approver_identity_mismatch",
            "the decision names another approver than the authenticated principal",
            details={"authenticated": {"id": caller.principal.id, "kind": caller.principal.kind}},
        )


# The rules of a pending approval, in order.


def _decision_id(case: _Case) -> None:
    if not (case.decision.decision_id or "").strip():
        raise decision_refused("policy.approval_decision_id_required", "a decision needs a decision_id")


def _policy_hash(case: _Case) -> None:
    if case.request.policy_hash is not None and case.decision.policy_hash != case.request.policy_hash:
        raise decision_refused(
            "policy.approval_hash_mismatch",
            "policy_hash is not the request's; read the approval again and decide on what it shows",
        )


def _same_tenant(case: _Case) -> None:
    if case.row["tenant"] and case.authority.tenant_id != case.row["tenant"]:
        raise decision_refused("policy.approver_tenant_mismatch", "the approver's authority is for another tenant")


def _duties_are_separate(case: _Case) -> None:
    if case.policy is None:
        return
    duties = case.policy.separation_of_duties
    mine = case.caller.principal.id
    if mine == case.request.requester.id and (duties.requester_must_differ or not duties.allow_self_approval):
        raise decision_refused(
            "policy.separation_of_duties.requester", "the requester may not decide its own request; ask a reviewer"
        )
    if duties.operator_must_differ and case.request.operator is not None and mine == case.request.operator.id:
        raise decision_refused("policy.separation_of_duties.operator", "the operator may not decide this request")


def _authority_fits(case: _Case) -> None:
    quorum = case.policy is not None and (case.policy.rule is not None or case.policy.minimum_distinct_principals > 1)
    if quorum or not case.authority.fits(case.request.approver_selector, tenant=case.row["tenant"]):
        raise decision_refused(
            "policy.approver_unauthorized",
            "this policy needs more than one decision, which this runtime does not take"
            if quorum
            else "the approver's authority does not match the request's selector",
        )


def _sees_what_it_approves(case: _Case) -> None:
    if case.decision.decision == "approved" and not all(
        case.caller.may(scope) for scope in ("approval:export", "approval:sensitive")
    ):
        raise decision_refused(
            "policy.approval_input_not_visible",
            "who may not read the exact input (approval:export and approval:sensitive) cannot approve it",
        )


def _evidence(case: _Case) -> None:
    kinds = {artifact.kind for artifact in (*case.request.evidence, *case.decision.evidence)}
    if (case.decision.reason or "").strip():
        kinds.add("reason")
    if case.request.policy_decision_id is not None:
        kinds.add("policy_decision")
    wanted = case.policy.evidence_requirements if case.policy is not None else []
    missing = [kind for kind in wanted if kind not in kinds]
    if missing:
        raise decision_refused(
            "policy.approval_evidence_missing",
            f"the decision needs {', '.join(missing)}",
            details={"missing": missing},
        )


def _nothing_to_revoke(case: _Case) -> None:
    # With one approval needed, an admitted approval is terminal: nothing pending can be revoked.
    if case.decision.decision == "revoked":
        named = bool((case.decision.target_decision_id or "").strip())
        raise decision_refused(
            f"policy.approval_revocation_target_{'missing' if named else 'required'}",
            "a revocation names an admitted decision of a pending approval",
        )


def _constraints(case: _Case) -> None:
    if case.decision.decision != "approved":
        return
    if case.parked is None:
        raise decision_refused("policy.approval_action_mismatch", "the parked action is gone")
    check_constraints(case.decision.constraints, case.parked["action"]["input"])


_RULES: Final[tuple[Callable[[_Case], None], ...]] = (
    _decision_id,
    _policy_hash,
    _same_tenant,
    _duties_are_separate,
    _authority_fits,
    _sees_what_it_approves,
    _evidence,
    _nothing_to_revoke,
    _constraints,
)


def _content(decision: Mapping[str, Any]) -> Any:
    """What makes two decisions the same: everything but the authority path and the approver's label."""
    kept = {name: value for name, value in decision.items() if name != "authority_path"}
    approver = kept.get("approver", {})
    kept["approver"] = (approver.get("id"), approver.get("kind"))
    return kept
