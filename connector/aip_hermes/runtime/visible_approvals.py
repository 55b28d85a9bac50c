"""Who takes part in an approval and may therefore see it, and what is kept about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.runtime.authority import Authorities
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.store import from_json

__all__ = ["sees_approval"]


def sees_approval(caller: Caller, row: Mapping[str, Any], *, authorities: Authorities, now: int) -> bool:
    """Requester, subject, named approver, past decider, matching authority, or a scope over others' records."""
    me = caller.principal.id
    if caller.may_read_others("approval") or me in (row["requester_id"], row["subject_id"], row["decided_by"]):
        return True
    request = wire.ApprovalRequest.model_validate(from_json(row["request"]))
    selector = request.approver_selector
    if isinstance(selector, wire.PrincipalSelector) and selector.id == me:
        return True
    authority = authorities.resolve(me, now_ms=now)
    return authority is not None and authority.fits(selector, tenant=row["tenant"])
