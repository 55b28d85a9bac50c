"""What to do after a refused decision: the next safe step by the rule that was broken."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

__all__ = ["STEPS", "step_after_refusal"]

_SHOW = "read it again and decide on what it shows: aipctl approval show {url} APPROVAL_ID"
_ENDED = "it is decided; look at it: aipctl approval show {url} APPROVAL_ID"

STEPS: Mapping[str, str] = {
    "policy.approval_constraint_failed": _SHOW,
    "policy.approval_constraint_missing_field": _SHOW,
    "policy.approval_decision_conflict": "choose another decision_id; this one stands for another decision",
    "policy.approval_decision_id_required": "give a decision_id of your own, at most 512 characters",
    "policy.approval_evidence_missing": "send it again with what is missing; `--reason` is evidence too",
    "policy.approval_expired": "its time is up; ask for a new approval under a new Action ID and key",
    "policy.approval_hash_mismatch": _SHOW,
    "policy.approval_input_not_visible": "use a reviewer's token with approval:export and approval:sensitive",
    "policy.approval_not_pending": _ENDED,
    "policy.approval_revocation_target_missing": "name an approving decision: aipctl approval show {url} APPROVAL_ID",
    "policy.approval_revocation_target_required": "name an approving decision with --target, or deny it",
    "policy.approval_vote_repeated": "your approval counts already; another reviewer has to approve too",
    "policy.separation_of_duties.operator": "ask a reviewer who is not the operator of this request",
    "policy.separation_of_duties.requester": "ask a reviewer, or withdraw it: aipctl action cancel {url} ACTION_ID",
}
"""Broken rule → next step. Others are about who decides: another reviewer's token."""


def step_after_refusal(rule: object, *, url: str) -> str | None:
    """Return the step for the rule in an error's `details.code`, or None where there is nothing better to say."""
    step = STEPS.get(rule) if isinstance(rule, str) else None
    return None if step is None else step.format(url=shlex.quote(url))
