"""What happens to the store while a connector looks what became of an action: verdict and event stay one story."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.client import outcome_of
from aip_hermes.contract.handler import Answer, Call
from aip_hermes.contract.reconciliation import Uncertain, Verdict
from aip_hermes.database import Database
from aip_hermes.ids import ActionId
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.erasure import erase_about, name_subjects
from aip_hermes.runtime.reconciliation import EVENT_KIND
from aip_hermes.runtime.retention import prune
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS, from_json
from tests.support.runtime_connector import ScriptedConnector, ScriptedOutcomeUnknown
from tests.support.runtime_site import Crash, CrashAt, Site, action, caller

OWNER = caller(scopes=frozenset({"action:read", "action:write"}))
SUBJECT = "primary:s1"

Meanwhile = Callable[[], Awaitable[object]]


class Looking:
    """A connector's look, during which something happens, each time."""

    def __init__(self) -> None:
        self.meanwhile: Meanwhile | None = None

    async def __call__(self, action: Uncertain) -> Verdict:
        if self.meanwhile is not None:
            await self.meanwhile()
        return Verdict(outcome="applied", reason="row_found", explanation="it is there", erases=frozenset())


async def _lost(call: Call) -> Answer:
    raise ScriptedOutcomeUnknown("the answer was lost", uncertain=True, details={"uncertain_outcome": True})


async def _uncertain(site: Site, runtime: Runtime) -> ActionId:
    given = action("session_chat")
    result = await site.submit(runtime, given, OWNER)
    assert isinstance(result, wire.ActionResult)
    assert outcome_of(result.wire()) == "uncertain"
    return ActionId(given.id)


async def _told(site: Site) -> list[dict[str, Any]]:
    rows = await site.rows("SELECT event FROM events WHERE kind = :kind ORDER BY seq", kind=EVENT_KIND)
    return [from_json(row["event"])["data"] for row in rows]


async def _kept(site: Site) -> list[dict[str, Any]]:
    return [from_json(row["verdict"]) for row in await site.rows("SELECT verdict FROM verdicts")]


@pytest.mark.requirement("reconcile:interrupted")
async def test_who_dies_between_a_verdict_and_its_event_kept_neither(tmp_path: Path) -> None:
    crash = CrashAt()
    site = Site(tmp_path, connector=ScriptedConnector(send=_lost, verdict=Looking()), faults=crash)
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        crash.point = "after_look"
        with pytest.raises(Crash):
            await runtime.reconciliations.reconcile(action_id, OWNER)
    assert (await _kept(site), await _told(site)) == ([], [])
    async with site.open() as runtime:
        verdict = await runtime.reconciliations.reconcile(action_id, OWNER)
        assert await runtime.reconciliations.latest(action_id, OWNER) == verdict
    assert (verdict["verdict"], verdict["number"]) == ("applied", 1)
    assert await _kept(site) == await _told(site) == [verdict]


@pytest.mark.requirement("reconcile:interrupted", "records:prune:verdicts")
@pytest.mark.parametrize("looked_before", [False, True])
async def test_a_prune_during_a_look_leaves_one_story(tmp_path: Path, looked_before: bool) -> None:
    looking = Looking()
    site = Site(tmp_path, connector=ScriptedConnector(send=_lost, verdict=looking))

    async def pruned() -> None:
        site.clock.advance(1_000)
        async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as store:
            await prune(store, older_than_ms=500, clock=site.clock)

    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)
        if looked_before:
            await runtime.reconciliations.reconcile(action_id, OWNER)
            await site.submit(runtime, action("session_chat", input={"session_id": "s2", "message": "hi"}), OWNER)
        looking.meanwhile = pruned
        verdict = await runtime.reconciliations.reconcile(action_id, OWNER)
        assert await runtime.reconciliations.latest(action_id, OWNER) == verdict
        assert (await runtime.result(action_id, OWNER)).status == "failed"
    assert verdict["number"] == 1
    assert await _kept(site) == [verdict]
    assert (await _told(site))[-1] == verdict


@pytest.mark.requirement("reconcile:interrupted", "reconcile:delete:erases")
async def test_an_erasure_during_a_look_is_not_undone_by_its_verdict(tmp_path: Path) -> None:
    looking = Looking()
    site = Site(tmp_path, connector=ScriptedConnector(send=_lost, verdict=looking))
    async with site.open() as runtime:
        action_id = await _uncertain(site, runtime)

        async def erased() -> None:
            async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as store:

                def once(connection: Any) -> int:
                    name_subjects(connection, {SUBJECT}, tenant=str(OWNER.tenant_id), action_id=action_id)
                    return erase_about(connection, {SUBJECT}, now=site.clock.now_ms())

                assert await store.write(once) == 1

        looking.meanwhile = erased
        verdict = await runtime.reconciliations.reconcile(action_id, OWNER)
        again = await runtime.reconciliations.latest(action_id, OWNER)
        assert (verdict["verdict"], again) == ("applied", verdict)
    [row] = await site.rows("SELECT result FROM actions WHERE action_id = :action_id", action_id=action_id)
    assert "output" not in from_json(row["result"])
    assert await site.rows("SELECT subject FROM text_subjects") == []
    assert await _kept(site) == await _told(site) == [verdict]
