"""Point 14: what became of an action is asked by its original Action ID, and nothing is sent again.

A fork with a title that is taken fails for certain at the endpoint, but only reads tell how far it came: release 0.19.0
sets the title last (design D11, D16).
"""

from __future__ import annotations

from typing import Any, Final

from aip_hermes.client.checklist.case import Case, Point
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ActionId

__all__ = ["FORK_NOT_ATOMIC", "recovered"]

FORK_NOT_ATOMIC: Final = "fork-not-atomic"

_STAYS: Final = "partially_applied"
_RESULT: Final = "aip.action.result"


async def recovered(case: Case, point: Point) -> None:
    """Query a turn by its Action ID alone; fork into a taken title, reconcile, hold the verdict against the rows."""
    assert case.turn is not None  # noqa: S101 - the table says which point comes first
    point.did(f"read status and result of {case.turn.action_id}, the turn of point 6")
    progress = await case.requester.status(case.turn.action_id)
    result = await case.requester.result(case.turn.action_id)
    point.saw(turn_state=progress.state, turn_status=result.status)
    done = await case.took_effect(point, result)
    point.check("the original Action is found by its id, ended", progress.terminal and done)
    taken = (await case.row(point, case.source_id)).title
    point.did("SessionLifecycle.create: a session to fork")
    case.may_exist |= {case.other_id, case.half_id}
    other = await case.life.create(case.other_id, title=f"{case.title}, other")
    fork = {"session_id": str(other.id), "body": {"id": str(case.half_id), "title": taken}}
    failed = await case.call(point, "session_fork", fork)
    point.saw(fork_action_id=failed.action_id, fork_outcome=failed.outcome)
    point.saw(fork_code=None if failed.error is None else failed.error.code)
    point.check("a fork into a taken title does not say that it completed", failed.outcome != "completed")
    point.did(f"had the server reconcile {failed.action_id}, twice: it only reads")
    first, verdict = [await case.requester.reconcile(failed.action_id) for _ in range(2)]
    point.saw(verdict=verdict.verdict, verdict_reason=verdict.reason, looks=verdict.number)
    point.saw(retry_after_ms=verdict.retry_after_ms)
    point.saw_hash(verdict_evidence=list(verdict.evidence))
    source, child = await case.row(point, other.id), await case.reads.find(case.half_id)
    point.did(f"read the row {case.half_id}")
    half = child is not None or source.ended_at is not None
    point.saw(source_ended=source.ended_at is not None, child_exists=child is not None)
    if half:
        point.quirks.append(FORK_NOT_ATOMIC)
    point.check("what was proven is not taken back", not first.proven or first.verdict == verdict.verdict)
    fitting = (_STAYS, "applied") if half else ("not_applied",)
    point.check("the verdict is what the rows show, or waits for proof", verdict.verdict in (*fitting, "indeterminate"))
    point.check("it names the safe next step", bool(verdict.next_step))
    for name, action_id in (("turn", case.turn.action_id), ("fork", failed.action_id)):
        point.did(f"read the events of {action_id}")
        results = [event for event in await _events(case, action_id) if event.get("kind") == _RESULT]
        point.saw(**{f"{name}_results": len(results)})
        point.check(f"the {name} was carried out in one attempt", _attempts(results) == [1])


async def _events(case: Case, action_id: ActionId) -> list[JsonObject]:
    found: list[JsonObject] = []
    cursor: str | None = None
    while True:
        page = await case.requester.events(action_id, cursor=cursor)
        found += page.events
        if page.terminal or page.cursor in (None, cursor):
            return found
        cursor = page.cursor


def _attempts(results: list[JsonObject]) -> list[Any]:
    told = [event.get("data") for event in results]
    return [data.get("attempt") if isinstance(data, dict) else None for data in told]
