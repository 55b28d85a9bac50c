"""What the clients were told, what the runtime kept and what the provider saw must be one story.

accepted = settled + definite uncertain, and the provider's log agrees one to one: a completed change was asked for
once, an uncertain one at most once, a certain failure and a read never, and nothing that nobody submitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Verdict", "judge"]

_Line = Mapping[str, Any]
_SETTLED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """accepted, completed, failed, uncertain: actions. sent: requests that change something, by the provider's log.
    unsent: uncertain ones that never left. wrong: a sentence each."""

    accepted: int
    completed: int
    failed: int
    uncertain: int
    sent: int
    unsent: int
    wrong: Sequence[str]


def judge(*, journal: Iterable[_Line], records: Iterable[_Line], log: Iterable[_Line], wanted: int) -> Verdict:
    """journal: how each action ended, by its client. records: rows of the store. log: the provider's."""
    told = {line["action_id"]: line for line in journal}
    kept = {row["action_id"]: row for row in records}
    marks, seen, orphans = {line["mark"] for line in told.values()}, Counter[str](), 0
    for line in log:
        found = marks.intersection((*line["target"].split("/"), *line["marks"]))
        seen.update(found)
        orphans += len(found) != 1
    wrong = [f"{action_id} was answered and is not kept" for action_id in told.keys() - kept.keys()]
    wrong += [f"{action_id} is kept and was never answered" for action_id in kept.keys() - told.keys()]
    if len(told) != wanted:
        wrong.append(f"{wanted} were submitted, {len(told)} have an end")
    if orphans:
        wrong.append(f"{orphans} requests at the provider belong to no action")
    for action_id in sorted(told.keys() & kept.keys()):
        wrong += _disagreements(told[action_id], kept[action_id], seen[told[action_id]["mark"]])
    counts = Counter(_end(line) for line in told.values())
    return Verdict(
        accepted=len(kept),
        completed=counts["completed"],
        failed=counts["failed"],
        uncertain=counts["uncertain"],
        sent=seen.total(),
        unsent=sum(_end(line) == "uncertain" and not seen[line["mark"]] for line in told.values()),
        wrong=wrong,
    )


def _end(line: _Line) -> str:
    return "uncertain" if line["uncertain"] else "completed" if line["status"] == "completed" else "failed"


def _disagreements(line: _Line, row: _Line, sends: int) -> list[str]:
    """Compare one action's three stories."""
    name, wrong = f"{line['action_id']} ({line['kind']})", []
    if row["settled_at"] is None or row["state"] not in _SETTLED:
        wrong.append(f"{name} is kept as {row['state']}, which is no end")
    if (row["state"], bool(row["uncertain"])) != (line["status"], line["uncertain"]):
        wrong.append(f"{name} is kept as {row['state']}, its client was told {line['status']}")
    allowed = {"completed": {1}, "uncertain": {0, 1}, "failed": {0}}[_end(line)] if line["kind"] != "read" else {0}
    if sends not in allowed:
        wrong.append(f"{name} ended {_end(line)}, and the provider saw {sends} requests")
    return wrong
