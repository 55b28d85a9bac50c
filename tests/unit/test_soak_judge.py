"""The judge of the soak finds every way in which the three stories may differ."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soak.judge import Verdict, judge


def ended(number: int, kind: str, status: str, *, uncertain: bool = False) -> dict[str, Any]:
    return {
        "action_id": f"act_n{number}", "kind": kind, "mark": f"n{number}", "status": status, "code": None,
        "uncertain": uncertain,
    }  # fmt: skip


def kept(number: int, state: str, *, uncertain: int = 0, settled_at: int | None = 1) -> dict[str, Any]:
    return {"action_id": f"act_n{number}", "state": state, "uncertain": uncertain, "settled_at": settled_at}


def request(number: int) -> dict[str, Any]:
    return {"method": "POST", "target": f"/api/sessions/session-of-n{number}/chat", "marks": [f"n{number}"]}


JOURNAL = [
    ended(1, "create", "completed"),
    ended(2, "turn", "failed", uncertain=True),
    ended(3, "stream", "failed", uncertain=True),
    ended(4, "read", "completed"),
    ended(5, "delete", "failed"),
]
RECORDS = [
    kept(1, "completed"), kept(2, "failed", uncertain=1), kept(3, "failed", uncertain=1), kept(4, "completed"),
    kept(5, "failed"),
]  # fmt: skip
LOG = [{"method": "POST", "target": "/api/sessions", "marks": ["n1"]}, request(2)]


def judged(
    *, journal: list[dict[str, Any]] = JOURNAL, records: list[dict[str, Any]] = RECORDS, log: list[Any] = LOG
) -> Verdict:
    return judge(journal=journal, records=records, log=log, wanted=5)


@pytest.mark.requirement("soak:accounts")
def test_what_agrees_adds_up() -> None:
    verdict = judged()
    assert verdict.wrong == []
    assert (verdict.accepted, verdict.completed, verdict.failed, verdict.uncertain) == (5, 2, 1, 2)
    assert (verdict.sent, verdict.unsent) == (2, 1)


@pytest.mark.requirement("soak:accounts")
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"log": [*LOG, request(2)]}, id="uncertain-sent-twice"),
        pytest.param({"log": [*LOG, LOG[0]]}, id="completed-sent-twice"),
        pytest.param({"log": LOG[1:]}, id="completed-never-sent"),
        pytest.param({"log": [*LOG, request(4)]}, id="read-that-changes"),
        pytest.param({"log": [*LOG, request(5)]}, id="certain-failure-that-was-sent"),
        pytest.param({"log": [*LOG, request(9)]}, id="sent-for-nobody"),
        pytest.param({"records": RECORDS[1:]}, id="answered-and-lost"),
        pytest.param({"records": [*RECORDS, kept(6, "completed")]}, id="kept-and-never-answered"),
        pytest.param({"records": [kept(1, "running", settled_at=None), *RECORDS[1:]]}, id="no-end"),
        pytest.param({"records": [kept(1, "failed"), *RECORDS[1:]]}, id="another-end"),
        pytest.param({"records": [*RECORDS[:1], kept(2, "failed"), *RECORDS[2:]]}, id="uncertain-told-alone"),
        pytest.param({"journal": JOURNAL[1:]}, id="a-client-that-lost-count"),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any]) -> None:
    assert judged(**changed).wrong != []
