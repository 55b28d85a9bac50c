"""The checks of an action that need no store: each one refuses, or returns what it has found out.

RequestRefused becomes an error envelope, ActionFailed a failed result; neither stores anything. Their order is in
pipeline.py. Source: runtime behaviour §2; design D5, D8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Connector
from aip_hermes.errors import ActionFailed
from aip_hermes.ids import ActionId, CapabilityId, IdentityError
from aip_hermes.runtime import policy
from aip_hermes.runtime.failures import (
    ApprovalUnverified,
    CapabilityUnknown,
    HandlerBroken,
    InputInvalid,
    MemberRefused,
    ModeUnsupported,
    TransactionUnsupported,
)
from aip_hermes.runtime.fence import fence_of
from aip_hermes.runtime.submission import Submission

__all__ = ["Checks", "handler_broken"]

log = structlog.get_logger(__name__)

MODES: Final = frozenset({"sync", "streaming", "async"})
"""Modes that this runtime runs, whatever a capability supports."""


class Checks:
    """The checks against what is published."""

    def __init__(self, *, catalog: Catalog, connectors: Mapping[str, Connector]) -> None:
        """connectors: capability id → the connector that offers it."""
        self._catalog = catalog
        self._connectors = connectors

    async def identities(self, submission: Submission) -> Submission:
        """Ids that the store can hold and a record can name."""
        try:
            for kind, value in ((ActionId, submission.action.id), (CapabilityId, submission.action.capability_id)):
                kind(value).encode()
        except (IdentityError, UnicodeEncodeError) as exc:
            problem = str(exc) if isinstance(exc, IdentityError) else "an identifier is not valid Unicode"
            raise MemberRefused(problem, details={"member": "id"}) from exc
        return submission

    async def members_we_act_on(self, submission: Submission) -> Submission:
        """Nothing is accepted and then ignored (design D8)."""
        action = submission.action
        for member in ("callback", "federation"):
            if getattr(action, member) is not None:
                raise MemberRefused(f"`{member}` is not supported by this runtime", details={"member": member})
        if action.transaction is not None and action.transaction.mode != "execute":
            raise TransactionUnsupported(
                f"transaction mode `{action.transaction.mode}` is not supported; only `execute` is",
                details={"mode": action.transaction.mode},
            )
        if action.approval is not None:
            raise ApprovalUnverified(
                "an approval is attached by the runtime after a decision, never by the caller",
                details={"approval_id": action.approval.approval_id},
            )
        return submission

    async def capability(self, submission: Submission) -> Submission:
        capability_id = submission.action.capability_id
        tenant_id = submission.actor.tenant_id
        published = self._catalog.find(CapabilityId(capability_id), tenant_id)
        if published is None:
            near = self._catalog.near_misses(capability_id, tenant_id)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise CapabilityUnknown(
                f"there is no capability {capability_id}{hint}",
                details={"capability_id": capability_id, **({"did_you_mean": near} if near else {})},
            )
        policy.check_invocation(capability_id, submission.invoke)
        return submission.with_changes(published=published, connector=self._connectors[capability_id])

    async def input_schema(self, submission: Submission) -> Submission:
        assert submission.published is not None  # noqa: S101 - the capability check comes first
        violations = submission.published.input_violations(submission.action.input)
        if violations or not isinstance(submission.action.input, Mapping):
            raise InputInvalid(
                "the input does not match the capability's schema",
                details={
                    "capability_id": submission.action.capability_id,
                    "violations": violations or ["(root): is not an object"],
                },
            )
        return submission

    async def key(self, submission: Submission) -> Submission:
        return submission.with_changes(fence=fence_of(submission))

    async def mode(self, submission: Submission) -> Submission:
        mode = submission.action.mode or "sync"
        if mode not in submission.handler.operation.modes or mode not in MODES:
            raise ModeUnsupported(
                f"mode `{mode}` is not supported",
                details={"capability_id": submission.action.capability_id, "mode": mode},
            )
        return submission

    async def handler_check(self, submission: Submission) -> Submission:
        try:
            submission.handler.check(submission.call())
        except ActionFailed:
            raise
        except Exception as exc:
            raise handler_broken(submission, exc) from exc
        return submission

    async def caller_policy(self, submission: Submission) -> Submission:
        policy.check_kind(submission.principal)
        policy.check_delegation(submission.action.delegation_chain, submission.principal)
        return submission


def handler_broken(submission: Submission, exc: Exception) -> HandlerBroken:
    """Return what is said of a handler that raised something undeclared before anything was sent."""
    log.error("action.handler_broken", action_id=submission.action.id, error_type=type(exc).__name__, exc_info=exc)
    return HandlerBroken("the connector failed in a way it does not declare; nothing was sent")
