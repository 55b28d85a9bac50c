"""A deletion in three states: requested, decided, confirmed. Each is a type, so none can be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aip_hermes.client.aip_client import AipClient
from aip_hermes.client.lifecycle.failures import DecisionPending
from aip_hermes.client.lifecycle.footing import Footing
from aip_hermes.client.lifecycle.journal import Plan
from aip_hermes.client.lifecycle.states import (
    ClosedSession,
    DeleteConfirmed,
    DeleteDecided,
    DeleteRequested,
    OpenSession,
)
from aip_hermes.ids import ApprovalId, HermesSessionId

__all__ = ["await_decision", "confirm_deleted", "request_delete"]


async def request_delete(footing: Footing, *, session: OpenSession | ClosedSession, step: str) -> DeleteRequested:
    """Ask for a deletion; what it would orphan is read before."""

    async def before(target: HermesSessionId | None) -> Mapping[str, Any]:
        row = await footing.reads.get(target or session.id, step=step)
        children = await footing.reads.children(row.id)
        parent = row.parent_session_id
        return {"children": [str(child) for child in children], "parent": None if parent is None else str(parent)}

    plan = await footing.begin(
        step=step,
        operation="session_delete",
        wanted={"session_id": session.id},
        session_id=session.id,
        before=before,
    )
    if plan.state != "done" and not plan.found:
        carried = await footing.carry(plan, {"session_id": str(plan.session_id)}, may_wait=True)
        asked = None if carried.approval_id is None else str(carried.approval_id)
        found: dict[str, Any] = {"approval_id": asked, "decided": not carried.waits}
        plan = await footing.journal.keep(replace(plan, found=found, stuck=None))
    return _requested(plan)


async def await_decision(
    footing: Footing, client: AipClient, *, request: DeleteRequested, timeout_s: float
) -> DeleteDecided:
    """Wait until a deletion was decided and carried out. Raises: DecisionPending, DecisionDenied."""
    plan = await _plan(footing, request)
    if plan.state != "done" and not plan.found.get("decided"):
        try:
            if plan.state == "planned":
                await client.wait(plan.action_id, timeout_s=timeout_s)
        except TimeoutError:
            raise _pending(request) from None
        carried = await footing.carry(plan, {"session_id": str(plan.session_id)}, may_wait=True)
        if carried.waits:
            raise _pending(request)
        await footing.journal.keep(replace(plan, found={**plan.found, "decided": True}, stuck=None))
    return DeleteDecided(request=request)


async def confirm_deleted(footing: Footing, *, decided: DeleteDecided) -> DeleteConfirmed:
    """Read the row, its children and its parent after a deletion. Raises: NotVerified."""
    plan = await _plan(footing, decided.request)
    target = decided.request.session_id
    if plan.state != "done":
        problems: list[str] = []
        row = await footing.reads.find(target)
        if row is not None:
            back = " (a turn that was running brings it back so)" if row.source == "unknown" else ""
            problems.append(f"there is a row under its id, with source {row.source!r}{back}")
        elif (await footing.reads.listed(target, children=True)).entry is not None:
            problems.append("a list still shows it")
        parent = plan.before.get("parent")
        if parent is not None and await footing.reads.find(HermesSessionId(parent)) is None:
            problems.append(f"its parent {parent} is gone too")
        orphaned, gone = [], []
        for child in decided.request.children:
            left = await footing.reads.find(child)
            if left is None:
                gone.append(str(child))
            elif left.parent_session_id == target:
                problems.append(f"child {child} still names it as its parent")
            else:
                orphaned.append(str(child))
        if problems:
            await footing.not_verified(plan, problems)
        plan = await footing.done(plan, {**plan.found, "orphaned": orphaned, "gone": gone})
    return DeleteConfirmed(
        session_id=target,
        orphaned=tuple(map(HermesSessionId, plan.found.get("orphaned", ()))),
        gone=tuple(map(HermesSessionId, plan.found.get("gone", ()))),
    )


async def _plan(footing: Footing, request: DeleteRequested) -> Plan:
    plan = await footing.journal.plan(request.step)
    if plan is None or plan.action_id != request.action_id:
        footing.refuse(
            f"step {request.step!r} is not at {request.action_id} any more",
            next_step="run `request_delete` again and go on with what it returns",
            session_id=request.session_id,
            step=request.step,
        )
    return plan


def _requested(plan: Plan) -> DeleteRequested:
    assert plan.session_id is not None  # noqa: S101 - a deletion has a session
    approval_id = plan.found.get("approval_id")
    return DeleteRequested(
        step=plan.step,
        session_id=plan.session_id,
        action_id=plan.action_id,
        approval_id=None if approval_id is None else ApprovalId(approval_id),
        children=tuple(map(HermesSessionId, plan.before["children"])),
    )


def _pending(request: DeleteRequested) -> DecisionPending:
    pending = DecisionPending(
        f"nobody has decided {request.approval_id} yet",
        next_step=f"have {request.approval_id} decided by another principal, then await the decision again",
        step=request.step,
        action_id=request.action_id,
        session_id=request.session_id,
    )
    pending.approval_id = request.approval_id
    return pending
