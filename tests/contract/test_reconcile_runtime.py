"""What the runtime does with a verdict: whom it answers, what it keeps, tells, opens and leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.client import outcome_of
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.contract.reconciliation import Evidence, Uncertain, Verdict
from aip_hermes.database import Database
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import ActionId
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.reconciliation import EVENT_KIND
from aip_hermes.runtime.retention import prune
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS, from_json
from aip_hermes.server.metrics import PrometheusMeter
from tests.support.runtime_connector import ScriptedConnector, ScriptedOutcomeUnknown, ScriptedRejected
from tests.support.runtime_site import Crash, CrashAt, Site, action, caller

OWNER = caller(scopes=frozenset({"action:read", "action:write"}))
READ = Evidence(read="session", ids={"session_id": "s1"}, at_ms=1_893_456_000_000, found="found", facts={"rows": 1})


def _verdict(outcome: Any = "applied", **members: Any) -> Verdict:
    members = {"reason": "row_found", "explanation": "it is there", "evidence": (READ,), **members}
    return Verdict(outcome=outcome, **members)


class _Script:
    """Plays the connector's look: verdicts in turn, the last one again and again."""

    def __init__(self, *verdicts: Verdict | Exception) -> None:
        self._verdicts = list(verdicts)

    async def __call__(self, action: Uncertain) -> Verdict:
        verdict = self._verdicts.pop(0) if len(self._verdicts) > 1 else self._verdicts[0]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


async def _lost(call: Call) -> Answer:
    raise ScriptedOutcomeUnknown("the answer was lost", uncertain=True, details={"uncertain_outcome": True})


async def _rejected(call: Call) -> Answer:
    raise ScriptedRejected("refused")


def _site(tmp_path: Path, *verdicts: Verdict | Exception, **members: Any) -> Site:
    return Site(tmp_path, connector=ScriptedConnector(send=_lost, verdict=_Script(*verdicts)), **members)


async def _uncertain(site: Site, runtime: Runtime, operation: str = "session_chat", **members: Any) -> ActionId:
    given = action(operation, **members)
    result = await site.submit(runtime, given, OWNER)
    assert outcome_of(result.wire()) == "uncertain"
    return ActionId(given.id)


async def _events(runtime: Runtime, action_id: ActionId) -> list[dict[str, Any]]:
    page = await runtime.events(action_id, OWNER, kinds=[EVENT_KIND])
    return [event.wire() for event in page.events]


@pytest.mark.requirement("reconcile:verdict:event")
async def test_a_verdict_is_an_event_and_can_be_read_again(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict("indeterminate", retry_after_ms=7), _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        first = await runtime.reconciliations.reconcile(action_id, OWNER)
        second = await runtime.reconciliations.reconcile(action_id, OWNER)
        assert (first["verdict"], first["number"], first["retry_after_ms"]) == ("indeterminate", 1, 7)
        assert (second["verdict"], second["number"]) == ("applied", 2)
        assert second["evidence"] == [
            {
                "read": "session",
                "ids": {"session_id": "s1"},
                "read_at": "2030-01-01T00:00:00Z",
                "found": "found",
                "facts": {"rows": 1},
            }
        ]
        assert second["next_step"].endswith(".")
        assert await runtime.reconciliations.latest(action_id, OWNER) == second
        events = await _events(runtime, action_id)
    assert [event["data"] for event in events] == [first, second]
    assert {event["actor"]["id"] for event in events} == {OWNER.principal.id}
    async with site.open() as runtime:
        assert await runtime.reconciliations.latest(action_id, OWNER) == second


@pytest.mark.requirement("records:prune:verdicts")
@pytest.mark.parametrize("newest", [True, False])
async def test_a_verdict_is_pruned_with_its_events_and_a_new_one_is_told(tmp_path: Path, newest: bool) -> None:
    """newest: its event is the last of the log, which stays, and so does what bears its number."""
    site = _site(tmp_path, _verdict("not_applied"), _verdict("applied"))
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        await runtime.reconciliations.reconcile(action_id, OWNER)
        if not newest:
            await _uncertain(site, runtime, input={"session_id": "s2", "message": "hi"})
    site.clock.advance(1_000)
    async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as store:
        counted = await prune(store, older_than_ms=500, clock=site.clock, dry_run=True)
        assert (await prune(store, older_than_ms=500, clock=site.clock)).rows == counted.rows
    assert counted.rows["verdicts"] == (0 if newest else 1)
    async with site.open() as runtime:
        if not newest:
            with pytest.raises(RequestRefused) as refused:
                await runtime.reconciliations.latest(action_id, OWNER)
            assert refused.value.code == "reconciliation.not_found"
        again = await runtime.reconciliations.reconcile(action_id, OWNER)
    (told,) = await site.rows("SELECT event FROM events WHERE kind = :kind ORDER BY seq DESC LIMIT 1", kind=EVENT_KIND)
    assert from_json(told["event"])["data"] == again
    assert again["number"] == (2 if newest else 1)


@pytest.mark.requirement("reconcile:verdict:event")
async def test_a_verdict_is_counted_after_its_commit(tmp_path: Path) -> None:
    meter = PrometheusMeter(["session_chat"])
    site = _site(tmp_path, _verdict("partially_applied"), meter=meter)
    async with site.open() as runtime:
        await runtime.reconciliations.reconcile(await _uncertain(site, runtime), OWNER)
        told = meter.text("tenant-a", await runtime.load("tenant-a")).decode()
    assert 'aip_reconciliations_total{operation="session_chat",verdict="partially_applied"} 1.0' in told


@pytest.mark.requirement("reconcile:verdict:event")
async def test_the_connector_is_given_what_was_kept_with_the_intent(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        site.clock.advance(1_000)
        await runtime.reconciliations.reconcile(action_id, OWNER)
    [given] = site.connector.reconciled
    assert (given.action_id, given.tenant_id, given.facts) == (action_id, "tenant-a", {"rows": 1})
    assert given.settled_at_ms == given.intent_at_ms == site.clock.now_ms() - 1_000


@pytest.mark.requirement("reconcile:certain:nothing-read")
@pytest.mark.parametrize(("sends", "verdict"), [(None, "applied"), (_rejected, "not_applied")])
async def test_a_certain_action_is_answered_with_its_outcome(sends: Any, verdict: str, tmp_path: Path) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(**({} if sends is None else {"send": sends})))
    async with site.open() as runtime:
        given = action("session_chat")
        await site.submit(runtime, given, OWNER)
        for answer in (runtime.reconciliations.reconcile, runtime.reconciliations.latest):
            told = await answer(ActionId(given.id), OWNER)
            assert (told["verdict"], told["reason"], told["evidence"]) == (verdict, "certain", [])
        assert await _events(runtime, ActionId(given.id)) == []
    assert site.connector.reconciled == []


@pytest.mark.requirement("reconcile:certain:nothing-read")
async def test_an_action_that_waits_is_not_looked_into(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        given = action("session_delete", idempotency_key="D")
        assert (await site.submit(runtime, given, OWNER)).status == "pending_approval"
        told = await runtime.reconciliations.reconcile(ActionId(given.id), OWNER)
    assert (told["verdict"], told["reason"]) == ("indeterminate", "not_settled")
    assert site.connector.reconciled == []


@pytest.mark.requirement("reconcile:access")
@pytest.mark.parametrize(
    ("who", "code"),
    [
        (caller(scopes=frozenset({"action:read"})), "auth.not_authorized"),
        (caller("agent:example:other", scopes=frozenset({"action:write"})), "auth.not_authorized"),
        (caller(tenant="tenant-b", scopes=frozenset({"*"})), "action.not_found"),
        (caller("agent:example:other", scopes=frozenset({"action:write:any"})), None),
        (caller("agent:example:other", scopes=frozenset({"*"})), None),
    ],
)
async def test_who_may_reconcile(who: Any, code: str | None, tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        if code is None:
            assert (await runtime.reconciliations.reconcile(action_id, who))["verdict"] == "applied"
            return
        with pytest.raises(RequestRefused) as refused:
            await runtime.reconciliations.reconcile(action_id, who)
    assert refused.value.code == code
    assert site.connector.reconciled == []


@pytest.mark.requirement("reconcile:access")
async def test_what_nobody_looked_into_is_not_found(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.reconciliations.latest(action_id, OWNER)
    assert refused.value.code == "reconciliation.not_found"


@pytest.mark.requirement("reconcile:lock:released")
@pytest.mark.parametrize(
    ("verdict", "opened"),
    [
        (_verdict("applied", opens="scripted:s1"), True),
        (_verdict("not_applied", opens="scripted:s1"), True),
        (_verdict("applied"), False),
        (_verdict("applied", opens="scripted:another"), False),
        (_verdict("indeterminate", opens="scripted:s1"), False),
    ],
)
async def test_a_session_opens_where_the_turn_is_proven_over(verdict: Verdict, opened: bool, tmp_path: Path) -> None:
    site = _site(tmp_path, verdict)
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        told = await runtime.reconciliations.reconcile(action_id, OWNER)
        assert told.get("session_opened", False) is opened
        site.connector.send = _answered
        fork = await site.submit(runtime, action("session_fork", idempotency_key="F"), OWNER)
    assert fork.status == ("completed" if opened else "failed")


async def _answered(call: Call) -> Answer:
    return Answer(output={"ok": True})


@pytest.mark.requirement("reconcile:lock:released")
async def test_a_later_lost_turn_keeps_the_session_closed(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict("applied", opens="scripted:s1"))
    async with site.open() as runtime:
        first = await _uncertain(site, runtime)
        site.clock.advance(1_000)
        await _uncertain(site, runtime)
        assert (await runtime.reconciliations.reconcile(first, OWNER))["session_opened"] is False
        site.connector.send = _answered
        fork = await site.submit(runtime, action("session_fork", idempotency_key="F"), OWNER)
    assert fork.status == "failed"


@pytest.mark.requirement("reconcile:verdict:stands")
@pytest.mark.parametrize(
    ("first", "then", "stands"),
    [
        ("applied", "not_applied", "applied"),
        ("applied", "indeterminate", "applied"),
        ("partially_applied", "not_applied", "partially_applied"),
        ("partially_applied", "applied", "applied"),
        ("not_applied", "indeterminate", "not_applied"),
        ("not_applied", "applied", "applied"),
        ("indeterminate", "not_applied", "not_applied"),
    ],
)
async def test_what_stands_after_another_look(first: str, then: str, stands: str, tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict(first), _verdict(then, reason="second"))
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        await runtime.reconciliations.reconcile(action_id, OWNER)
        told = await runtime.reconciliations.reconcile(action_id, OWNER)
        assert (told["verdict"], told["number"]) == (stands, 2)
        assert ("this_look" in told) == (stands != then)
        assert len(await _events(runtime, action_id)) == 2


@pytest.mark.requirement("reconcile:unread:says-why")
@pytest.mark.parametrize("broken", [RuntimeError("a fault"), ValueError("another")])
async def test_a_connector_that_fails_proves_nothing(broken: Exception, tmp_path: Path) -> None:
    site = _site(tmp_path, broken)
    async with site.open() as runtime:
        told = await runtime.reconciliations.reconcile(await _uncertain(site, runtime), OWNER)
    assert (told["verdict"], told["reason"]) == ("indeterminate", "connector_broken")


@pytest.mark.requirement("reconcile:unread:says-why")
async def test_a_withdrawn_capability_can_not_be_looked_into(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
    site.connector.operations = ("session_get",)
    async with site.open() as runtime:
        told = await runtime.reconciliations.reconcile(action_id, OWNER)
    assert (told["verdict"], told["reason"]) == ("indeterminate", "capability_withdrawn")


@pytest.mark.requirement("reconcile:delete:erases", "reconcile:result-stands")
async def test_a_proven_delete_erases_text_and_leaves_every_result(tmp_path: Path) -> None:
    site = Site(tmp_path, connector=ScriptedConnector(send=_answered))
    async with site.open() as runtime:
        turn = action("session_chat")
        await site.submit(runtime, turn, OWNER)
        site.connector.send = _lost
        site.connector.verdict = _Script(_verdict("applied", erases=frozenset({"scripted:s1"})))
        lost = await _uncertain(site, runtime, "session_patch", idempotency_key="P")
        before = await runtime.result(lost, OWNER)
        told = await runtime.reconciliations.reconcile(lost, OWNER)
        assert told["erased_actions"] == 1
        assert await runtime.result(lost, OWNER) == before
        with pytest.raises(RequestRefused) as gone:
            await runtime.result(ActionId(turn.id), OWNER)
    assert gone.value.code == "action.gone"


@pytest.mark.requirement("reconcile:verdict:event")
async def test_every_event_of_a_verdict_is_a_valid_one(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict())
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        await runtime.reconciliations.reconcile(action_id, OWNER)
        [event] = await _events(runtime, action_id)
    assert wire.schema_violations("event", event) == []


@pytest.mark.requirement("reconcile:verdict:event")
async def test_what_a_killed_server_left_uncertain_is_looked_into_with_what_it_had_written_down(tmp_path: Path) -> None:
    site = _site(tmp_path, _verdict("not_applied"), faults=CrashAt("after_intent"))
    given = action("session_chat")
    with pytest.raises(Crash):
        async with site.open() as runtime:
            await site.submit(runtime, given, OWNER)
    async with site.open() as runtime:
        told = await runtime.reconciliations.reconcile(ActionId(given.id), OWNER)
    assert told["verdict"] == "not_applied"
    assert [each.facts for each in site.connector.reconciled] == [{"rows": 1}]
