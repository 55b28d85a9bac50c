"""Who decides the approvals of an endpoint, where its deployment says more than every row publishes.

Source: runtime behaviour §9.3, §9.4; issue "a runtime that never lies", approvals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from aip_hermes import wire

__all__ = ["ApprovalTerms", "ApprovalTermsInvalid"]

MAX_APPROVERS: Final = 32
_NAMED: Final = ("principal", "role", "group", "external_system")


class ApprovalTermsInvalid(ValueError):
    """Terms that can't be kept; the text names the rule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalTerms:
    """What is published in the approval policy of every gated operation of one endpoint.

    selector: `tenant_policy`, or `principal:ID`, `role:NAME`, `group:NAME`, `external_system:NAME`. approvers: how many
    different principals must approve, 1 to 32. ttl_ms: how long a request may stay undecided; None: as the rows say.
    Raises ApprovalTermsInvalid.
    """

    selector: str = "tenant_policy"
    approvers: int = 1
    ttl_ms: int | None = None

    def __post_init__(self) -> None:
        kind, _, name = self.selector.partition(":")
        if self.selector != "tenant_policy" and (kind not in _NAMED or not name.strip()):
            raise ApprovalTermsInvalid(
                "an approver selector is `tenant_policy` or one of `principal:ID`, `role:NAME`, `group:NAME`,"
                " `external_system:NAME`; rules made of several (all, any, quorum of rules, delegated authority) are"
                " not supported: name one selector and a number of approvers"
            )
        if not 1 <= self.approvers <= MAX_APPROVERS:
            raise ApprovalTermsInvalid(f"the number of approvers is 1 to {MAX_APPROVERS}")
        if kind == "principal" and self.approvers > 1:
            raise ApprovalTermsInvalid("one principal can't be several approvers; select a role or a tenant policy")
        if self.ttl_ms is not None and self.ttl_ms < 1:
            raise ApprovalTermsInvalid("the time for a decision is more than 0")

    @property
    def approver_selector(self) -> wire.ApproverSelector:
        """The selector as an approval policy has it."""
        kind, _, name = self.selector.partition(":")
        match kind:
            case "principal":
                return wire.PrincipalSelector(id=name)
            case "role":
                return wire.RoleSelector(name=name)
            case "group":
                return wire.GroupSelector(name=name)
            case "external_system":
                return wire.ExternalSystemSelector(system=name)
        return wire.TenantPolicySelector()

    @classmethod
    def of_settings(cls, *, selector: str | None, approvers: int | None, ttl_s: float | None) -> Self | None:
        """Make terms of what a settings file says; None where it says nothing."""
        if selector is None and approvers is None and ttl_s is None:
            return None
        return cls(
            selector=selector if selector is not None else "tenant_policy",
            approvers=approvers if approvers is not None else 1,
            ttl_ms=None if ttl_s is None else round(ttl_s * 1000),
        )
