"""The rules about session rows, as a table: what was there before, what is there now, and what that proves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from aip_hermes.contract.next_steps import PHASE_OF_RULE, STEPS
from aip_hermes.contract.operation import ReconcileRule
from aip_hermes.hermes.reconcile.reconciler import RULES
from tests.support.hermes_stub import row_of
from tests.support.reconcile_rules import INTENT_S, LATER, SOON, ReadOnlyEndpoint, after

SINCE = INTENT_S + 0.5
CLOSED = {"ended_at": 1796071999.0, "end_reason": "case_closed"}
BRANCHED = {"ended_at": 1796071999.0, "end_reason": "branched"}
CREATE: Mapping[str, Any] = {"body": {"id": "new-1", "title": "New one"}}
FORK: Mapping[str, Any] = {"session_id": "s1", "body": {"id": "f1", "title": "Fork one"}}


def _child(**members: Any) -> dict[str, Any]:
    return row_of(
        "f1",
        **{"parent_session_id": "s1", "started_at": SINCE, "title": "Fork one", "message_count": 2, **members},
    )


@pytest.mark.requirement("reconcile:rules:rows", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("row", "seconds", "outcome", "reason"),
    [
        (row_of("new-1", started_at=SINCE), SOON, "applied", "row_found"),
        (row_of("new-1", started_at=INTENT_S - 4.9), SOON, "applied", "row_found"),  # within the clocks' slack
        (row_of("new-1", started_at=INTENT_S - 5.1), LATER, "indeterminate", "another_row"),
        (row_of("new-1", started_at=SINCE, source="unknown"), LATER, "indeterminate", "another_row"),
        (row_of("new-1", started_at=SINCE, title="Changed since"), SOON, "applied", "row_found"),
        (None, SOON, "indeterminate", "may_be_under_way"),
        (None, 59.999, "indeterminate", "may_be_under_way"),
        (None, 60.0, "not_applied", "no_row"),
    ],
)
async def test_a_create_by_its_row(row: dict[str, Any] | None, seconds: float, outcome: str, reason: str) -> None:
    verdict = await after("session_create", ReadOnlyEndpoint([row] if row else []), values=CREATE, seconds=seconds)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert (verdict.retry_after_ms is None) == (reason != "may_be_under_way")


@pytest.mark.requirement("reconcile:rules:rows")
async def test_a_create_without_an_id_is_found_by_its_title_only() -> None:
    rows = ReadOnlyEndpoint([row_of("api_1", title="New one", started_at=SINCE), row_of("api_2", started_at=SINCE)])
    found = await after("session_create", rows, values={"body": {"title": "New one"}})
    nameless = await after("session_create", rows, values={"body": {}})
    assert (found.outcome, nameless.outcome, nameless.reason) == ("applied", "indeterminate", "no_identity")


@pytest.mark.requirement("reconcile:rules:rows", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("before", "wanted", "now", "seconds", "outcome", "reason"),
    [
        ({"title": "A"}, {"title": "B"}, {"title": "B"}, SOON, "applied", "values_found"),
        ({"title": "A"}, {"title": None}, {"title": None}, SOON, "applied", "values_found"),
        ({"title": "A"}, {"title": "B"}, {"title": "A"}, SOON, "indeterminate", "may_be_under_way"),
        ({"title": "A"}, {"title": "B"}, {"title": "A"}, LATER, "not_applied", "values_as_before"),
        ({"title": "A"}, {"title": "B"}, {"title": "C"}, LATER, "indeterminate", "changed_by_others"),
        ({"title": "B"}, {"title": "B"}, {"title": "B"}, LATER, "indeterminate", "no_difference"),
        ({}, {"end_reason": "case_closed"}, CLOSED, SOON, "applied", "values_found"),
        ({}, {"end_reason": "case_closed"}, BRANCHED, LATER, "not_applied", "values_as_before"),
        (BRANCHED, {"end_reason": "case_closed"}, BRANCHED, LATER, "not_applied", "values_as_before"),
        ({}, {"title": "B", "end_reason": "case_closed"}, {"title": "B", **CLOSED}, SOON, "applied", "values_found"),
        ({}, {"title": "B", "end_reason": "case_closed"}, {"title": "B"}, SOON, "indeterminate", "may_be_under_way"),
        (
            {},
            {"title": "B", "end_reason": "case_closed"},
            {"title": "B"},
            LATER,
            "partially_applied",
            "some_values_found",
        ),
        ({}, {"title": "B"}, {"title": "B", "started_at": 1.0}, LATER, "indeterminate", "another_row"),
        ({}, {"title": "B"}, None, LATER, "indeterminate", "row_gone"),
    ],
)
async def test_a_patch_by_the_row_before_and_now(
    before: Mapping[str, Any],
    wanted: Mapping[str, Any],
    now: Mapping[str, Any] | None,
    seconds: float,
    outcome: str,
    reason: str,
) -> None:
    verdict = await after(
        "session_patch",
        ReadOnlyEndpoint([] if now is None else [row_of("s1", **now)]),
        values={"session_id": "s1", **wanted},
        before=row_of("s1", **before),
        seconds=seconds,
    )
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.requirement("reconcile:rules:rows", "reconcile:reads-only", "reconcile:delete:another-row")
@pytest.mark.parametrize(
    ("now", "seconds", "outcome", "reason"),
    [
        (None, SOON, "applied", "row_gone"),
        ({}, SOON, "indeterminate", "may_be_under_way"),
        ({}, LATER, "not_applied", "row_found"),
        ({"started_at": SINCE}, LATER, "indeterminate", "another_row"),
        ({"started_at": SINCE, "source": "unknown"}, LATER, "indeterminate", "another_row"),
    ],
)
async def test_a_delete_by_what_is_under_the_id(
    now: Mapping[str, Any] | None, seconds: float, outcome: str, reason: str
) -> None:
    endpoint = ReadOnlyEndpoint([] if now is None else [row_of("s1", **now)])
    verdict = await after("session_delete", endpoint, seconds=seconds)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    assert verdict.erases == (frozenset({"hermes_agent:primary:s1"}) if outcome == "applied" else frozenset())


REFUSED = {"provider": {"status": 400, "code": "invalid_title"}}


@pytest.mark.requirement("reconcile:rules:rows", "reconcile:reads-only", "reconcile:fork:halves")
@pytest.mark.parametrize(
    ("source", "child", "seconds", "details", "outcome", "reason"),
    [
        (BRANCHED, _child(), SOON, {}, "applied", "child_found"),
        (BRANCHED, _child(message_count=5), SOON, {}, "applied", "child_found"),
        (BRANCHED, _child(title=None), SOON, {}, "indeterminate", "may_be_under_way"),
        (BRANCHED, _child(title=None), LATER, {}, "partially_applied", "half_done"),
        (BRANCHED, _child(title=None), SOON, REFUSED, "partially_applied", "half_done"),
        (BRANCHED, _child(message_count=1), LATER, {}, "partially_applied", "half_done"),
        (BRANCHED, None, SOON, {}, "indeterminate", "may_be_under_way"),
        (BRANCHED, None, LATER, {}, "partially_applied", "source_ended"),
        ({}, None, LATER, {}, "not_applied", "no_child"),
        ({}, None, SOON, REFUSED, "not_applied", "no_child"),
        (CLOSED, None, LATER, {}, "not_applied", "no_child"),
        (BRANCHED, _child(parent_session_id="s2"), LATER, {}, "indeterminate", "another_row"),
        (BRANCHED, _child(started_at=INTENT_S - 60), LATER, {}, "indeterminate", "another_row"),
        ({"started_at": 1.0}, _child(), LATER, {}, "indeterminate", "another_row"),
        (None, _child(parent_session_id=None), LATER, {}, "indeterminate", "source_gone"),
    ],
)
async def test_a_fork_by_both_sides(
    source: Mapping[str, Any] | None,
    child: Mapping[str, Any] | None,
    seconds: float,
    details: Mapping[str, Any],
    outcome: str,
    reason: str,
) -> None:
    rows = [row for row in (None if source is None else row_of("s1", **source), child) if row is not None]
    verdict = await after("session_fork", ReadOnlyEndpoint(rows), values=FORK, seconds=seconds, details=details)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.requirement("reconcile:fork:halves", "reconcile:reads-only")
@pytest.mark.parametrize("body", [{"id": "f1", "title": "Fork one"}, {"title": "Fork one"}])
async def test_a_fork_that_lands_between_two_reads_is_no_half_one(body: Mapping[str, Any]) -> None:
    endpoint = ReadOnlyEndpoint([row_of("s1", message_count=2)])

    def lands() -> None:
        endpoint.rows |= {"s1": row_of("s1", message_count=2, **BRANCHED), "f1": _child()}

    endpoint.then["/api/sessions/s1"] = lands
    verdict = await after("session_fork", endpoint, values={"session_id": "s1", "body": dict(body)})
    assert (verdict.outcome, verdict.reason) == ("applied", "child_found")


@pytest.mark.requirement("reconcile:rules:rows", "reconcile:fork:halves")
@pytest.mark.parametrize(
    ("values", "children", "outcome", "reason"),
    [
        ({"title": "Fork one"}, [_child()], "applied", "child_found"),
        ({"title": "Fork one"}, [_child(title="Other")], "indeterminate", "child_not_named"),
        ({}, [_child()], "indeterminate", "child_not_named"),
        ({}, [], "partially_applied", "source_ended"),
    ],
)
async def test_a_fork_whose_child_was_not_named_is_told_by_its_title_only(
    values: Mapping[str, Any], children: list[dict[str, Any]], outcome: str, reason: str
) -> None:
    rows = ReadOnlyEndpoint([row_of("s1", **BRANCHED), *children])
    verdict = await after("session_fork", rows, values={"session_id": "s1", "body": dict(values)})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


GONE_BY_PROXY = httpx.Response(404, content=b"<html>not here</html>", headers={"content-type": "text/html"})
UNAUTHORIZED = httpx.Response(401, json={"error": {"message": "no", "code": "invalid_api_key"}})


@pytest.mark.requirement("reconcile:unread:says-why", "reconcile:reads-only")
@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        (httpx.ConnectError("refused"), ("reason", "unreachable")),
        (httpx.ReadTimeout("slow"), ("reason", "timeout")),
        (GONE_BY_PROXY, ("http_status", 404)),
        (UNAUTHORIZED, ("http_status", 401)),
        (httpx.Response(200, content=b"[]"), ("http_status", 200)),
    ],
)
@pytest.mark.parametrize(
    "operation", ["session_create", "session_patch", "session_delete", "session_fork", "session_chat"]
)
async def test_what_can_not_be_read_proves_nothing_and_says_why(
    operation: str, answer: httpx.Response | Exception, fact: tuple[str, object]
) -> None:
    place = "/api/sessions/new-1" if operation == "session_create" else "/api/sessions/s1"
    verdict = await after(operation, ReadOnlyEndpoint([], broken={place: answer}))
    assert (verdict.outcome, verdict.reason) == ("indeterminate", "endpoint_not_read")
    assert verdict.retry_after_ms == 5_000
    assert verdict.evidence[0].found == "not_read"
    assert verdict.evidence[0].facts[fact[0]] == fact[1]
    assert "127.0.0.1" not in verdict.explanation


@pytest.mark.requirement("reconcile:unread:says-why", "reconcile:reads-only")
async def test_an_endpoint_of_another_tenant_is_not_read() -> None:
    now = ReadOnlyEndpoint([row_of("new-1", started_at=SINCE)])
    verdict = await after("session_create", now, tenant_id="tenant-b")
    assert (verdict.outcome, verdict.reason, now.asked) == ("indeterminate", "endpoint_of_another_tenant", [])


@pytest.mark.requirement("reconcile:unread:says-why")
async def test_without_what_was_wanted_nothing_is_compared() -> None:
    now = ReadOnlyEndpoint([row_of("s1")])
    verdict = await after("session_patch", now, facts={})
    assert (verdict.outcome, verdict.reason, now.asked) == ("indeterminate", "nothing_kept", [])


@pytest.mark.requirement("reconcile:next-step:one-table")
def test_there_is_a_rule_and_a_sentence_for_everything_that_can_be_said() -> None:
    names = set(ReconcileRule.__args__)  # type: ignore[attr-defined]
    assert set(RULES) == set(PHASE_OF_RULE) == names
    for phase in set(PHASE_OF_RULE.values()):
        for situation in ("applied", "not_applied", "partially_applied", "waiting", "undecided"):
            sentence = STEPS[phase, situation]
            assert sentence.endswith(".")
            assert sentence.count(". ") <= 1
