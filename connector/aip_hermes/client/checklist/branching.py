"""Points 9 to 11: a fork that was read on both sides, sessions that stay apart, and an end after which no turn runs."""

from __future__ import annotations

from typing import Final

from aip_hermes.client.checklist.case import Case, NotAsWanted, Point
from aip_hermes.client.hermes_objects import Session
from aip_hermes.client.lifecycle.failures import SessionClosed

__all__ = ["FORK_CHILD_RESOLVES", "apart", "closed", "forked"]

FORK_CHILD_RESOLVES: Final = "fork-child-resolves"

_REASON: Final = "verified"


async def forked(case: Case, point: Point) -> None:
    """Fork into a child that we name; the lifecycle read both sides then."""
    point.did("SessionLifecycle.fork: one fork, then source, child, the child's messages and the list")
    case.may_exist.add(case.child_id)
    made = await case.life.fork(case.open_source, case.child_id, title=f"{case.title}, fork")
    source, child = await case.row(point, made.source.id), await case.row(point, case.child_id)
    case.source, case.child = made.source, made.child
    point.saw(
        child_id=child.id,
        parent_id=child.parent_session_id,
        source_ended=source.ended_at is not None,
        source_messages=source.message_count,
        child_messages=child.message_count,
        source_branched=source.end_reason == "branched",
    )
    point.saw_hash(source_row=source.raw, child_row=child.raw)
    point.check("the child has the intended id, and the source as its parent", child.parent_session_id == source.id)
    point.check("the source ended as branched", source.end_reason == "branched")
    point.check("every message was copied", (child.message_count or 0) >= (source.message_count or 0) > 0)
    point.check("parent and child share no session key", not made.shares_session_key)


async def apart(case: Case, point: Point) -> None:
    """Run a turn of the child; the source does not grow, whatever the endpoint answers for its messages."""
    assert case.source is not None  # noqa: S101 - the table says which point comes first
    before = await case.row(point, case.source.id)
    point.did("SessionLifecycle.chat: one turn of the child, then its active messages")
    told = await case.life.chat(case.open_child, f"{case.question} (fork)", step="turn-of-the-fork")
    case.child = told.session
    after, child = await case.row(point, case.source.id), await case.row(point, told.session.id)
    point.saw(
        action_id=told.action_id,
        proof=told.proof,
        source_messages_before=before.message_count,
        source_messages_after=after.message_count,
        child_messages=child.message_count,
    )
    point.check("the source did not grow by the child's turn", after.message_count == before.message_count)
    point.check("the child did", (child.message_count or 0) > (before.message_count or 0))
    point.did(f"read the active messages of {case.source.id}")
    active = await case.reads.messages(case.source.id)
    point.check("the source can still be read", active is not None)
    assert active is not None  # noqa: S101 - checked above
    point.saw(answered_for=active.whose, answered_because=active.reason)
    if not active.own:
        point.quirks.append(FORK_CHILD_RESOLVES)
    point.check("what is answered for another session is not taken for the source's", active.effective == before.id)


async def closed(case: Case, point: Point) -> None:
    """Close the child, try another reason, try a turn: the first reason stays, and no turn is sent."""
    child = case.open_child
    point.did("SessionLifecycle.close: one change, then the exact row")
    case.child = await case.life.close(child, reason=_REASON)
    row = await case.row(point, child.id)
    point.saw(ended_at=None if row.ended_at is None else int(row.ended_at * 1000), reason_kept=_kept(row))
    point.check("the row ended with the reason that was given", _kept(row))
    second = {"session_id": str(child.id), "body": {"end_reason": "verified_again"}}
    result = await case.call(point, "session_patch", second)
    row = await case.row(point, child.id)
    point.saw(second_change=result.status, first_reason_stays=_kept(row))
    point.check("the first reason wins over a second one", _kept(row))
    point.did("SessionLifecycle.chat: a turn after the end, which the policy refuses before anything is sent")
    try:
        await case.life.chat(child, "Not to be sent.", step="turn-after-the-end")
    except SessionClosed as refused:
        point.saw(turn_refused=refused.code)
    else:
        raise NotAsWanted("no turn follows an end")
    after = await case.row(point, child.id)
    point.check("no turn follows an end", after.message_count == row.message_count)


def _kept(row: Session) -> bool:
    return row.end_reason == _REASON
