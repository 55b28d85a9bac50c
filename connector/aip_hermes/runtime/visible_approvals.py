"""Who takes part in an approval and may therefore see it, and what is kept about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.runtime.authority import Authorities
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.store import from_json, to_json

__all__ = ["Sight", "sees_approval"]


class Sight:
    """What one caller sees at one moment: requester, subject, named approver, past decider, matching authority, or a
    scope over others' records. Rows that `sees` gets say in `voted`, where they have it, whether it once voted."""

    def __init__(self, caller: Caller, *, authorities: Authorities, now: int) -> None:
        self.principal_id = caller.principal.id
        self._all = caller.may_read_others("approval")
        self._authority = authorities.resolve(self.principal_id, now_ms=now)
        self._fitting: dict[tuple[str, str], bool] = {}

    def sees(self, row: Mapping[str, Any]) -> bool:
        """Whether it may see the approval of a row."""
        me = self.principal_id
        if self._all or me in (row["requester_id"], row["subject_id"], row["decided_by"]) or row.get("voted"):
            return True
        selector = from_json(row["request"])["approver_selector"]
        known = (row["tenant"], to_json(selector))
        if known not in self._fitting:
            # Approvals are many, selectors few.
            self._fitting[known] = self._fits(row)
        return self._fitting[known]

    def _fits(self, row: Mapping[str, Any]) -> bool:
        selector = wire.ApprovalRequest.model_validate(from_json(row["request"])).approver_selector
        if isinstance(selector, wire.PrincipalSelector) and selector.id == self.principal_id:
            return True
        return self._authority is not None and self._authority.fits(selector, tenant=row["tenant"])


def sees_approval(caller: Caller, row: Mapping[str, Any], *, authorities: Authorities, now: int) -> bool:
    """Whether a caller may see the approval of a row."""
    return Sight(caller, authorities=authorities, now=now).sees(row)
