"""Which approval policies this runtime can keep; the others are refused when it opens, not when somebody decides.

Source: runtime behaviour §9.4, §20 (`contract.approval.*`); issue "a runtime that never lies", flat quorum.
"""

from __future__ import annotations

from collections.abc import Iterable

from aip_hermes import wire
from aip_hermes.contract import Published

__all__ = ["PolicyRefused", "check_policies"]


class PolicyRefused(ValueError):
    """A published approval policy that nobody could satisfy here; the text names the capability and the rule."""


def check_policies(catalog: Iterable[Published]) -> None:
    """Raise PolicyRefused for the first policy with more than a selector and a number of approvers."""
    for published in catalog:
        contract = published.capability.contract
        policy = None if contract is None else contract.approval
        if policy is not None and (problem := _problem(policy)):
            raise PolicyRefused(f"{published.capability.id}: its approval policy {problem}")


def _problem(policy: wire.ApprovalPolicy) -> str | None:
    if policy.rule is not None:
        return (
            f"has a rule `{policy.rule.operator}`, and rules of several parts are not supported;"
            " publish one approver_selector and minimum_distinct_principals instead"
        )
    if policy.delegated_authority is not None:
        return "names a delegated authority, which is not supported; publish a role or group selector instead"
    if policy.minimum_distinct_principals < 1:
        return "asks for no approver; minimum_distinct_principals is at least 1"
    if policy.ttl_ms == 0:
        return "gives no time to decide; leave ttl_ms out for a request without an end"
    if isinstance(policy.approver_selector, wire.PrincipalSelector) and policy.minimum_distinct_principals > 1:
        return "asks for several approvers and selects one principal"
    return None
