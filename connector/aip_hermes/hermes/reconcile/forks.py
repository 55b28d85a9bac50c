"""The rule about forks: source and child. A fork of 0.19.0 ends the source, inserts the child, copies, and titles last.

Source: design §5, D16; Hermes API §3.8.
"""

from __future__ import annotations

from typing import Final

from aip_hermes.contract.reconciliation import Verdict
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.listings import started_since
from aip_hermes.hermes.session_rows import SessionRow
from aip_hermes.hermes.wording import shown

__all__ = ["session_fork"]

_BRANCHED: Final = "branched"


async def session_fork(case: Case) -> Verdict:
    """Compare both sides with what was read before."""
    source_id, child_id = case.identity("session_id") or "", case.identity("new_session_id")
    source = await case.reading.row(source_id)
    if source is None:
        return case.undecided("source_gone", f"source {shown(source_id)} is gone, and its children lost their parent")
    if not case.same_row(source):
        return case.undecided("another_row", f"source {shown(source_id)} is another row than the one that was forked")
    if child_id is None:
        return await _unnamed(case, source)
    child = await case.reading.row(child_id)
    if child is None:
        return await _without_child(case, source, f"the endpoint has no child {shown(child_id)}")
    if child.parent_session_id != source_id or (child.started_at or 0) < case.timing.since_s:
        return case.undecided(
            "another_row", f"session {shown(child_id)} is no child of {shown(source_id)} that was made since"
        )
    if case.shared("new_session_id"):
        return _several(case, child)
    return await _with_child(case, source, child)


def _several(case: Case, child: SessionRow) -> Verdict:
    return case.undecided(
        "several_may_be_it", f"child {shown(child.id)} exists, and another action asked for such a one about then"
    )


async def _with_child(case: Case, source: SessionRow, child: SessionRow) -> Verdict:
    if not source.ended:
        # Two reads are no snapshot: the fork may have been carried out between them.
        again = await case.reading.row(source.id)
        source = again if again is not None and case.same_row(again) else source
    missing = []
    if not source.ended:
        missing.append("the source is not ended")
    copied = case.before.get("message_count")
    if isinstance(copied, int) and (child.message_count is None or child.message_count < copied):
        missing.append(f"the child has {child.message_count} of {copied} messages")
    if not _titled(case, child):
        missing.append("the child lacks its title")
    if missing:
        return case.after_quiet(
            "partially_applied", "half_done", f"child {shown(child.id)} exists, and {' and '.join(missing)}"
        )
    return case.proven(
        "applied", "child_found", f"child {shown(child.id)} exists with the messages of {shown(source.id)}"
    )


def _titled(case: Case, child: SessionRow) -> bool:
    """Whether the last step happened: the wanted title, or any where Hermes chooses one."""
    if "title_sha256" not in case.wanted:
        return child.title_sha256 is not None
    asked = case.wanted["title_sha256"]
    return asked is None or child.title_sha256 == asked


async def _without_child(case: Case, source: SessionRow, said: str) -> Verdict:
    was_ended = case.before.get("ended_at") is not None or case.before.get("end_reason") is not None
    if not was_ended and source.end_reason == _BRANCHED:
        others = [row.id for row in await started_since(case) if row.parent_session_id == source.id]
        if others:
            return case.undecided(
                "ended_by_another", f"{said}; another fork, into {shown(others[0])}, may have ended the source"
            )
        return case.after_quiet("partially_applied", "source_ended", f"{said}, and the source was ended as branched")
    return case.after_quiet("not_applied", "no_child", f"{said}, and the source is as before")


async def _unnamed(case: Case, source: SessionRow) -> Verdict:
    """The endpoint chose the child's id: only a title that was asked for tells this child from another one."""
    children = [row for row in await started_since(case) if row.parent_session_id == source.id]
    for child in children:
        case.reading.note("session", {"session_id": child.id}, child.facts())
    asked = case.wanted.get("title_sha256")
    titled = [child for child in children if asked is not None and child.title_sha256 == asked]
    if titled and case.shared("title_sha256"):
        return _several(case, titled[0])
    if len(titled) == 1:
        return await _with_child(case, source, titled[0])
    if children:
        return case.undecided(
            "child_not_named",
            f"{len(children)} children of {shown(source.id)} were made since, and no id was asked for that tells which"
            " one is this action's",
        )
    return await _without_child(case, source, f"no child of {shown(source.id)} was made since")
