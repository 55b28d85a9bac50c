"""The ordered rules that a decision must keep. The first broken one alone is told, and nothing has changed then.

Source: AIP HTTP surface §9.4; design D9, D25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.runtime.authority import AuthorityEntry
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.constraints import check_constraints
from aip_hermes.runtime.failures import decision_refused
from aip_hermes.runtime.store import from_json

__all__ = ["RULES", "Case", "check_sender"]

_LONGEST_ID: Final = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One decision under examination. row: the approval. action: what it is about. decisions: those recorded so far."""

    decision: wire.ApprovalDecision
    caller: Caller
    authority: AuthorityEntry
    request: wire.ApprovalRequest
    row: Mapping[str, Any]
    action: Mapping[str, Any]
    decisions: Sequence[Mapping[str, Any]]

    @property
    def policy(self) -> wire.ApprovalPolicy | None:
        return self.request.policy_snapshot

    @property
    def needed(self) -> int:
        """How many different principals have to approve."""
        return 1 if self.policy is None else max(self.policy.minimum_distinct_principals, 1)

    @property
    def recorded(self) -> Mapping[str, Any] | None:
        """The decision that was recorded under this one's id."""
        wanted = self.decision.decision_id
        return next((row for row in self.decisions if row["decision_id"] == wanted), None)

    @property
    def revokes(self) -> bool:
        return self.decision.decision == "revoked"

    @property
    def released(self) -> bool:
        """Whether it was approved and nothing was sent yet."""
        waits = self.action["state"] in ("running", "queued") and self.action["intent_at"] is None
        return bool(
            self.row["status"] == "approved" and waits and self.action["approval_id"] == self.row["approval_id"]
        )


def check_sender(decision: wire.ApprovalDecision, caller: Caller) -> None:
    """Raise NotAuthorized for a decision in somebody else's name."""
    if (decision.approver.id, decision.approver.kind) != (caller.principal.id, caller.principal.kind):
        raise decision_refused(
            "policy.approver_identity_mismatch",
            "the decision names another approver than the authenticated principal",
            details={"authenticated": {"id": caller.principal.id, "kind": caller.principal.kind}},
        )


# The rules, in order.


def _open(case: Case) -> None:
    """Pending; or given and not used, for who takes it back."""
    status = case.row["status"]
    if status == "pending" or (case.revokes and case.released):
        return
    said = f"approval {case.request.id} is {status}; a terminal decision exists"
    if case.revokes and status == "approved":
        said = f"approval {case.request.id} was used: its action was sent or has ended, so it can't be revoked"
    rule = "policy.approval_expired" if status == "expired" else "policy.approval_not_pending"
    raise decision_refused(rule, said, details={"approval_status": status, "action_state": case.action["state"]})


def _decision_id(case: Case) -> None:
    given = case.decision.decision_id or ""
    if not given.strip():
        problem = "a decision needs a decision_id"
    elif len(given) > _LONGEST_ID or any("\ud800" <= char <= "\udfff" or char == "\0" for char in given):
        problem = f"a decision_id is at most {_LONGEST_ID} characters of valid Unicode"
    elif given.startswith(f"decision:{case.request.id}:"):
        problem = "a decision_id of this form is the runtime's own; choose another"
    else:
        return
    raise decision_refused("policy.approval_decision_id_required", problem)


def _policy_hash(case: Case) -> None:
    if case.request.policy_hash is not None and case.decision.policy_hash != case.request.policy_hash:
        raise decision_refused(
            "policy.approval_hash_mismatch",
            "policy_hash is not the request's; read the approval again and decide on what it shows",
        )


def _same_tenant(case: Case) -> None:
    if case.row["tenant"] and case.authority.tenant_id != case.row["tenant"]:
        raise decision_refused("policy.approver_tenant_mismatch", "the approver's authority is for another tenant")


def _duties_are_separate(case: Case) -> None:
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


def _authority_fits(case: Case) -> None:
    # Such a policy is refused when a runtime opens; a request that was frozen before that can't be approved either.
    ruled = case.policy is not None and (case.policy.rule is not None or case.policy.delegated_authority is not None)
    if ruled or not case.authority.fits(case.request.approver_selector, tenant=case.row["tenant"]):
        raise decision_refused(
            "policy.approver_unauthorized",
            "the policy has a rule of several parts, which this runtime does not evaluate"
            if ruled
            else "the approver's authority does not match the request's selector",
        )


def _sees_what_it_approves(case: Case) -> None:
    if case.decision.decision == "approved" and not all(
        case.caller.may(scope) for scope in ("approval:export", "approval:sensitive")
    ):
        raise decision_refused(
            "policy.approval_input_not_visible",
            "who may not read the exact input (approval:export and approval:sensitive) cannot approve it",
        )


def _evidence(case: Case) -> None:
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


def _revocation_target(case: Case) -> None:
    if not case.revokes:
        return
    target = case.decision.target_decision_id or ""
    if not target.strip():
        raise decision_refused(
            "policy.approval_revocation_target_required",
            "a revocation names the approving decision that it takes back; end what nobody approved by denying it",
        )
    if not any(row["decision_id"] == target and row["decision"] == "approved" for row in case.decisions):
        raise decision_refused(
            "policy.approval_revocation_target_missing", "there is no approving decision of that id on this approval"
        )


def _approves_once(case: Case) -> None:
    mine = case.caller.principal.id
    if case.decision.decision == "approved" and any(
        row["approver_id"] == mine and row["decision"] == "approved" for row in case.decisions
    ):
        raise decision_refused(
            "policy.approval_vote_repeated",
            f"this principal has approved already; {case.needed} different ones have to",
            details={"approvals_needed": case.needed},
        )


def _constraints(case: Case) -> None:
    if case.decision.decision != "approved":
        return
    parked = from_json(case.action["parked"])
    if parked is None:
        raise decision_refused("policy.approval_action_mismatch", "the parked action is gone")
    check_constraints(case.decision.constraints, parked["action"]["input"])


RULES: Final[tuple[Callable[[Case], None], ...]] = (
    _open,
    _decision_id,
    _policy_hash,
    _same_tenant,
    _duties_are_separate,
    _authority_fits,
    _sees_what_it_approves,
    _evidence,
    _revocation_target,
    _approves_once,
    _constraints,
)
