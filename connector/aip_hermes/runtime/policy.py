"""Who may invoke: principal kinds, delegation chains, invocation patterns.

Source: runtime behaviour §5, "Authorization policy"; design D24.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from aip_hermes import wire
from aip_hermes.runtime.failures import NotAuthorized

__all__ = ["check_delegation", "check_invocation", "check_kind"]

INVOKING_KINDS: Final = frozenset({"human", "agent", "service", "system"})
MAX_HOPS: Final = 10


def check_invocation(capability_id: str, patterns: Sequence[str]) -> None:
    """Raise NotAuthorized when none of the caller's patterns covers the capability."""
    if not any(fnmatchcase(capability_id, pattern) for pattern in patterns):
        raise NotAuthorized(
            f"this caller may not invoke {capability_id}",
            details={"code": "policy.invocation_pattern", "capability_id": capability_id},
        )


def check_kind(principal: wire.Principal) -> None:
    """Raise NotAuthorized for a kind of principal that records things but does not act."""
    if principal.kind not in INVOKING_KINDS:
        raise NotAuthorized(
            f"a principal of kind `{principal.kind}` may not invoke capabilities",
            details={"code": "policy.principal_kind", "kind": principal.kind},
        )


def check_delegation(chain: Sequence[wire.DelegationEntry], principal: wire.Principal) -> None:
    """Raise NotAuthorized for a chain that is too long, has an empty scope or does not end at the caller."""
    if len(chain) > MAX_HOPS:
        problem = f"a delegation chain has at most {MAX_HOPS} hops"
    elif any(not hop.scope.strip() for hop in chain):
        problem = "a hop of the delegation chain has an empty scope"
    elif chain and (chain[-1].to.id, chain[-1].to.kind) != (principal.id, principal.kind):
        problem = "the last hop of the delegation chain must be the acting principal"
    else:
        return
    raise NotAuthorized(problem, details={"code": "policy.delegation_chain"})
