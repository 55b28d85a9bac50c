"""Rules about what a row's `target` addresses: a response, a run or a job that was to be deleted or changed.

What they find proves; what they miss leaves the outcome open. Source: design §5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aip_hermes.contract.handler import JsonObject
from aip_hermes.contract.reconciliation import Verdict
from aip_hermes.contract.rows import Target, load_target
from aip_hermes.hermes.preparation import snapshot_of
from aip_hermes.hermes.reconcile.case import Case
from aip_hermes.hermes.reconcile.listings import schedules_of, sent_sha256, unix_seconds
from aip_hermes.hermes.traces import name_of
from aip_hermes.hermes.wording import shown

__all__ = ["job_change", "job_due", "run_answer", "target_gone", "target_state"]

_TICK_S: Final = 60.0
"""In which the endpoint starts a job that is due (Hermes API §7)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Addressed:
    """What a case is about. said: for a sentence. now: as the endpoint answers it; None where it is no more."""

    target: Target
    ids: dict[str, str]
    said: str
    now: JsonObject | None

    def unchanged(self, before: Any) -> bool:
        """Whether everything that an approval compares is as it was."""
        names = [f"{name}_sha256" if name in self.target.hashed else name for name in self.target.compared]
        snapshot = snapshot_of(self.now or {}, target=self.target, ids=self.ids)
        return all(before.get(name) == snapshot.get(name) for name in names)


async def _read(case: Case) -> _Addressed:
    target = load_target(case.operation.target or "")
    place = target.path.partition("{")[2].partition("}")[0]
    identity = case.identity(place) or ""
    ids = {place: identity}
    return _Addressed(
        target=target,
        ids=ids,
        said=f"{place.removesuffix('_id')} {shown(identity)}",
        now=await case.reading.target(target, ids),
    )


def _elsewhere(case: Case, addressed: _Addressed) -> Verdict | None:
    """Return that what was addressed is no more, or is somebody else's; None where it is what was read before."""
    if addressed.now is None:
        return case.undecided("target_gone", f"the endpoint has no {addressed.said} any more")
    made = case.before.get("created_at")
    if made is not None and addressed.now.get("created_at") != made:
        return case.undecided("another_target", f"{addressed.said} was made at another time, so it is somebody else's")
    return None


async def target_gone(case: Case) -> Verdict:
    """Something was to be deleted."""
    addressed = await _read(case)
    if addressed.now is None:
        erases = frozenset(name_of(case.endpoint.id, identity) for identity in addressed.ids.values())
        return case.proven("applied", "target_gone", f"the endpoint has no {addressed.said}", erases=erases)
    return _elsewhere(case, addressed) or case.undecided("target_found", f"{addressed.said} is still there")


async def target_state(case: Case) -> Verdict:
    """Something was to get into a state that it was not in before."""
    addressed = await _read(case)
    if (elsewhere := _elsewhere(case, addressed)) is not None:
        return elsewhere
    now, reaches = addressed.now or {}, case.operation.reaches
    assert reaches is not None  # noqa: S101 - the file's schema asks for it with this rule
    if case.before.get(reaches.member) in reaches.values:
        return case.undecided("no_difference", f"{addressed.said} was in the wanted state before")
    if now.get(reaches.member) in reaches.values:
        return case.proven("applied", "state_found", f"{addressed.said} is in the wanted state, and was not before")
    return case.undecided("state_missing", f"{addressed.said} is not in the wanted state")


async def job_change(case: Case) -> Verdict:
    """Fields of a job were to be changed."""
    addressed = await _read(case)
    if (elsewhere := _elsewhere(case, addressed)) is not None:
        return elsewhere
    now, sent = addressed.now or {}, case.wanted.get("sent_sha256") or {}
    missing = [name for name, asked in sent.items() if asked not in _forms(now, name)]
    if addressed.unchanged(case.before):
        return case.undecided("values_as_before", f"{addressed.said} is as before")
    if missing:
        return case.undecided(
            "changed", f"{addressed.said} was changed since, and does not show as sent: {', '.join(sorted(missing))}"
        )
    return case.proven("applied", "values_found", f"{addressed.said} has what was sent, and had not before")


def _forms(job: JsonObject, name: str) -> set[str]:
    return schedules_of(job) if name == "schedule" else {sent_sha256(job.get(name))}


async def job_due(case: Case) -> Verdict:
    """A job was to be made due: its next run is then, or its last run was, about the time of the action."""
    addressed = await _read(case)
    if (elsewhere := _elsewhere(case, addressed)) is not None:
        return elsewhere
    now, until_s = addressed.now or {}, case.timing.settled_at_ms / 1000 + _TICK_S + case.timing.slack_s
    planned = unix_seconds(case.before.get("next_run_at"))
    if planned is not None and planned <= until_s:
        return case.undecided("due_by_itself", f"{addressed.said} was due about then by itself")
    for name in ("next_run_at", "last_run_at"):
        moment = unix_seconds(now.get(name))
        if moment is not None and now.get(name) != case.before.get(name) and case.timing.since_s <= moment <= until_s:
            return case.proven("applied", "run_found", f"{addressed.said} was made due, and was not due by itself")
    return case.undecided("not_found", f"no run of {addressed.said} shows that it was made due")


async def run_answer(case: Case) -> Verdict:
    """A run was to hear an answer to what it asked. Which one it heard is said by no read."""
    addressed = await _read(case)
    if (elsewhere := _elsewhere(case, addressed)) is not None:
        return elsewhere
    if addressed.unchanged(case.before):
        return case.after_quiet("not_applied", "still_waits", f"{addressed.said} waits for the same answer as before")
    return case.undecided(
        "answer_unseen", f"{addressed.said} moved on, and no read tells whose answer it heard, and which"
    )
