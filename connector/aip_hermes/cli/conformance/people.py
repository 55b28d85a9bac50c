"""Who takes part in the kit's scenarios and in the tests: a requester, reviewers, their standing, their decisions."""

from __future__ import annotations

from typing import Any

from aip_hermes import wire
from aip_hermes.ids import TenantId
from aip_hermes.runtime import AuthorityEntry, Caller

__all__ = ["Crash", "Unexpected", "approval_request", "authority", "caller", "decision", "requester", "reviewer"]

_REVIEWING = frozenset({"action:read", "approval:read", "approval:export", "approval:sensitive"})
_REQUESTING = frozenset({"action:read", "action:write", "approval:read"})


class Unexpected(Exception):
    """What was observed has not even the form that a scenario needs to go on."""


class Crash(BaseException):
    """The process is gone: nothing above may catch it and write."""


def caller(
    principal: str, *, scopes: frozenset[str], tenant: str | None = "tenant-a", invoke: tuple[str, ...] = ("*",)
) -> Caller:
    """Return an authenticated caller; the kind is the id's prefix."""
    return Caller(
        principal=wire.Principal.model_validate({"id": principal, "kind": principal.split(":", 1)[0]}),
        tenant_id=None if tenant is None else TenantId(tenant),
        scopes=scopes,
        invoke=invoke,
        issuer="conformance",
    )


def requester() -> Caller:
    return caller("agent:example:requester", scopes=_REQUESTING)


def reviewer(principal: str = "human:example:reviewer") -> Caller:
    return caller(principal, scopes=_REVIEWING)


def authority(principal: str = "human:example:reviewer", **changes: Any) -> AuthorityEntry:
    """Return a reviewer's standing in tenant-a, with members changed."""
    members: dict[str, Any] = {
        "principal_id": principal,
        "tenant_id": "tenant-a",
        "roles": ("session-reviewer",),
        "groups": (),
        "tenant_policies": ("hermes-session-approval",),
        "external_systems": (),
        "delegated_scopes": (),
        "revision": 1,
        "revoked": False,
    }
    return AuthorityEntry(**{**members, **changes})


def decision(
    request: wire.ApprovalRequest, by: Caller | None = None, *, decision_id: str | None, **members: Any
) -> wire.ApprovalDecision:
    """Return an approving decision on `request`, with members changed; None leaves one out."""
    who = by or reviewer()
    given: dict[str, Any] = {
        "approval_id": request.id,
        "decision": "approved",
        "approver": {"id": who.principal.id, "kind": who.principal.kind},
        "decided_at": "2030-01-01T00:00:00Z",
        "reason": "case closed",
        "decision_id": decision_id,
        "policy_hash": request.policy_hash,
        **members,
    }
    return wire.ApprovalDecision.model_validate({name: value for name, value in given.items() if value is not None})


def approval_request(result: wire.ActionResult) -> wire.ApprovalRequest:
    """Return the request that a pending result carries."""
    if not isinstance(result.output, dict) or "approval_request" not in result.output:
        raise Unexpected(f"no approval was asked for; the action is {result.status}")
    return wire.ApprovalRequest.model_validate(result.output["approval_request"])
