"""The ordered rules that a decision must keep. The first broken one alone is told, and nothing has changed then.

Source: AIP HTTP surface §9.4; design D9, D25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.runtime.authority import AuthorityEntry
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.constraints import check_constraints
from aip_hermes.runtime.failures import decision_refused

__all__ = ["RULES", "Case", "check_sender"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
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


def check_sender(decision: wire.ApprovalDecision, caller: Caller) -> None:
    """Raise NotAuthorized for a decision in somebody else's name."""
    if (decision.approver.id, decision.approver.kind) != (caller.principal.id, caller.principal.kind):
        raise decision_refused(
            "policy.approver_identity_mismatch",
            "the decision names another approver than the authenticated principal",
            details={"authenticated": {"id": caller.principal.id, "kind": caller.principal.kind}},
        )


# The rules of a pending approval, in order.


def _decision_id(case: Case) -> None:
    if not (case.decision.decision_id or "").strip():
        raise decision_refused("policy.approval_decision_id_required", "a decision needs a decision_id")


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
    quorum = case.policy is not None and (case.policy.rule is not None or case.policy.minimum_distinct_principals > 1)
    if quorum or not case.authority.fits(case.request.approver_selector, tenant=case.row["tenant"]):
        raise decision_refused(
            "policy.approver_unauthorized",
            "this policy needs more than one decision, which this runtime does not take"
            if quorum
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


def _nothing_to_revoke(case: Case) -> None:
    # With one approval needed, an admitted approval is terminal: nothing pending can be revoked.
    if case.decision.decision == "revoked":
        named = bool((case.decision.target_decision_id or "").strip())
        raise decision_refused(
            f"policy.approval_revocation_target_{'missing' if named else 'required'}",
            "a revocation names an admitted decision of a pending approval",
        )


def _constraints(case: Case) -> None:
    if case.decision.decision != "approved":
        return
    if case.parked is None:
        raise decision_refused("policy.approval_action_mismatch", "the parked action is gone")
    check_constraints(case.decision.constraints, case.parked["action"]["input"])


RULES: Final[tuple[Callable[[Case], None], ...]] = (
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
