"""Takes the sessions of a verification away, where the policy lets a delete be approved, and says what is left."""

from __future__ import annotations

from aip_hermes.client.checklist.case import Case, marked
from aip_hermes.client.checklist.document import Cleaned
from aip_hermes.client.checklist.ending import DECISION_S
from aip_hermes.client.failures import ClientFailure
from aip_hermes.ids import HermesSessionId

__all__ = ["cleaned"]

_REVIEW = "A session of a verification that is over."


async def cleaned(case: Case, *, keep: bool) -> tuple[Cleaned, ...]:
    """Delete what was made, children first. keep: leave it. Never raises for what could not be taken away."""
    await _withdraw(case)
    return tuple([await _gone(case, session_id, keep=keep) for session_id in case.sessions])


async def _withdraw(case: Case) -> None:
    """Cancel a delete that nobody decided, so that no reviewer is asked about a verification that is over."""
    if case.delete is None:
        return
    try:
        progress = await case.requester.status(case.delete.action_id)
        if not progress.terminal:
            await case.requester.cancel(case.delete.action_id, reason="the verification is over")
    except ClientFailure:
        return  # It expires; what is left is said below.


async def _gone(case: Case, session_id: HermesSessionId, *, keep: bool) -> Cleaned:
    if session_id not in case.may_exist:
        return Cleaned(session_id=session_id, outcome="never_made")
    try:
        made = await case.reads.find(session_id) is not None
        if not made:
            deleted = case.delete is not None and case.delete.session_id == session_id
            return Cleaned(session_id=session_id, outcome="deleted" if deleted else "never_made")
        if keep or case.reviewer is None:
            return Cleaned(session_id=session_id, outcome="left", reason="kept" if keep else "no-reviewer")
        await _delete(case, session_id)
    except Exception as failure:
        # Whatever it is, the other sessions are taken away, and this one is named.
        code = failure.code if isinstance(failure, ClientFailure) else type(failure).__name__
        return Cleaned(session_id=session_id, outcome="left", reason=marked(code))
    return Cleaned(session_id=session_id, outcome="deleted")


async def _delete(case: Case, session_id: HermesSessionId) -> None:
    assert case.reviewer is not None  # noqa: S101 - asked before
    handle = await case.life.find(session_id)
    if handle is None:
        return
    # A step of its own: the one of point 12 may have been withdrawn.
    request = await case.life.request_delete(handle, step=f"clean:{session_id}")
    if request.approval_id is not None:
        await case.reviewer.decide(request.approval_id, decision="approved", reason=_REVIEW)
    decided = await case.life.await_decision(request, timeout_s=DECISION_S)
    await case.life.confirm_deleted(decided)
