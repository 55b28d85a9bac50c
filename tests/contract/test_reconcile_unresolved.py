"""Which uncertain actions still need somebody: those of which no reconciliation has found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.contract.reconciliation import OUTCOMES, Uncertain, Verdict, VerdictOutcome
from aip_hermes.ids import ActionId
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.figures import figures
from aip_hermes.runtime.records import ActionsAsked
from tests.support.runtime_connector import ScriptedConnector, ScriptedOutcomeUnknown
from tests.support.runtime_site import Site, action, caller

OWNER = caller(scopes=frozenset({"action:read", "action:write"}))


async def lost(_: Call) -> Answer:
    raise ScriptedOutcomeUnknown("the answer was lost", uncertain=True, details={"uncertain_outcome": True})


async def listed(runtime: Runtime, *, unresolved: bool = False) -> set[str]:
    page = await runtime.records.actions(OWNER, ActionsAsked(uncertain=True, unresolved=unresolved))
    assert page.total_size == len(page.actions)
    return {str(each.action_id) for each in page.actions}


@pytest.mark.requirement("reconcile:unresolved")
async def test_what_a_verdict_decides_is_no_longer_among_those_that_nobody_knows(tmp_path: Path) -> None:
    given: dict[str, VerdictOutcome] = {}

    async def look(asked: Uncertain) -> Verdict:
        return Verdict(outcome=given[asked.action_id], reason="row_found", explanation="it was looked at")

    site = Site(tmp_path, connector=ScriptedConnector(send=lost, verdict=look))
    async with site.open() as runtime:
        ended = []
        for number, outcome in enumerate((*OUTCOMES, None)):
            submitted = action(input={"body": {"id": f"s{number}"}}, idempotency_key=f"k{number}")
            await site.submit(runtime, submitted, OWNER)
            ended.append(submitted.id)
            if outcome is not None:
                given[submitted.id] = outcome
                await runtime.reconciliations.reconcile(ActionId(submitted.id), OWNER)
        undecided, unseen = ended[0], ended[-1]
        assert await listed(runtime) == set(ended)
        assert await listed(runtime, unresolved=True) == {undecided, unseen}
        given[undecided] = "applied"
        await runtime.reconciliations.reconcile(ActionId(undecided), OWNER)
        assert await listed(runtime, unresolved=True) == {unseen}
        assert await listed(runtime) == set(ended)
    async with site.store(read_only=True) as store:
        assert (await store.read(lambda connection: figures(connection, now=site.clock.now_ms()))).uncertain == 1
