"""Points 12 and 13: a deletion is asked for by one principal, decided by another, and confirmed by reads."""

from __future__ import annotations

from typing import Final

from aip_hermes.client.checklist.case import Case, DoesNotApply, NotAsWanted, Point
from aip_hermes.client.failures import PeerError

__all__ = ["DECISION_S", "delete_confirmed", "delete_requested"]

DECISION_S: Final = 120.0
"""How long a deletion that was approved may take."""

_REVIEW: Final = "A session of a verification, made for it and not needed any more."


async def delete_requested(case: Case, point: Point) -> None:
    """Ask for the child's deletion; nothing changes before another principal has decided."""
    assert case.child is not None  # noqa: S101 - the table says which point comes first
    before = await case.row(point, case.child.id)
    point.did("SessionLifecycle.request_delete: what it would orphan was read, then the delete was asked for")
    request = await case.life.request_delete(case.child)
    case.delete = request
    point.saw(action_id=request.action_id, approval_id=request.approval_id, children=len(request.children))
    point.check("it waits for an approval", request.approval_id is not None)
    assert request.approval_id is not None  # noqa: S101 - checked above
    after = await case.row(point, case.child.id)
    point.check("the row is as it was", after.raw == before.raw)
    point.did(f"tried to approve {request.approval_id} as its requester")
    try:
        await case.requester.decide(request.approval_id, decision="approved", reason="own request")
    except PeerError as refused:
        point.saw(own_approval=refused.code)
    else:
        raise NotAsWanted("a requester can't approve its own delete")
    progress = await case.requester.status(request.action_id)
    point.saw(state=progress.state)
    point.check("a requester can't approve its own delete", progress.state == "pending_approval")


async def delete_confirmed(case: Case, point: Point) -> None:
    """Have the reviewer approve; the same Action ends, the row is gone, the parent is not."""
    if case.reviewer is None:
        raise DoesNotApply("no reviewer's token was given, so nobody may approve the delete")
    request = case.delete
    assert request is not None and request.approval_id is not None  # noqa: S101, PT018 - the point before has it
    point.did(f"approved {request.approval_id} as the reviewer, who read what it binds")
    decided = await case.reviewer.decide(request.approval_id, decision="approved", reason=_REVIEW)
    point.saw(decision_id=decided.decision_id, approval_id=request.approval_id)
    point.did("SessionLifecycle.await_decision and confirm_deleted: result, row, list, children and parent")
    done = await case.life.await_decision(request, timeout_s=DECISION_S)
    confirmed = await case.life.confirm_deleted(done)
    result = await case.requester.result(request.action_id)
    point.saw(action_id=result.action_id, status=result.status)
    point.saw(orphaned=len(confirmed.orphaned), gone=len(confirmed.gone))
    point.check("the same Action is completed", await case.took_effect(point, result))
    point.check("the row is gone", await case.reads.find(request.session_id) is None)
    assert case.source is not None  # noqa: S101 - the table says which point comes first
    parent = await case.row(point, case.source.id)
    point.check("its parent is still there", parent.id == case.source.id)
