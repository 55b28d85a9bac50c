"""Answers that are lost: between the client and its server, and between the server and the endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import ClientFailure, PeerError, SqliteIdentityStore, Undecodable
from aip_hermes.client.verdicts import reconciliation_of
from aip_hermes.ids import ActionId
from tests.support.client_site import ClientSite, cap, client_site, sid
from tests.support.cutting_relay import CUTS, Cut

CALLS: dict[str, dict[str, Any]] = {
    "session_create": {"body": {"id": "new", "title": "New"}},
    "session_patch": {"session_id": "s1", "title": "Renamed"},
    "session_fork": {"session_id": "s1", "body": {"id": "f1"}},
    "session_chat": {"session_id": "s1", "message": "What is verified?"},
}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[ClientSite]:
    async with client_site(tmp_path) as running:
        await running.endpoint.create("s1", title="First")
        yield running


@pytest.mark.requirement("app:resume:asks", "app:resume:same-submission", "app:failure:next-step")
@pytest.mark.parametrize(
    ("operation", "cut"),
    [
        *(("session_chat", cut) for cut in CUTS),
        *((operation, "mid_body") for operation in CALLS),
        ("session_create", "before_sending"),
    ],
)
async def test_an_answer_lost_on_the_way_to_the_client_is_found_and_nothing_runs_twice(
    operation: str, cut: Cut, site: ClientSite
) -> None:
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        await aip.me()
        site.front.cut = cut
        if cut == "after_last_byte":
            result = await aip.call(cap(operation), CALLS[operation])
        else:
            with pytest.raises(ClientFailure) as caught:
                await aip.call(cap(operation), CALLS[operation])
            assert caught.value.uncertain
            assert caught.value.identities is not None
            assert caught.value.identities.action_id in caught.value.next_step
            [record] = await aip.open_calls()
            resumed = await aip.resume(record)
            assert resumed.state == ("never_received" if cut == "before_sending" else "settled")
            resumed = await aip.resume(record, input=CALLS[operation])
            assert resumed.result is not None
            result = resumed.result
        assert result.outcome == "completed"
        assert await aip.open_calls() == []
        assert len(site.back.mutations) == 1
        assert len({path for _, path in site.front.mutations}) == 1


@pytest.mark.requirement("app:reconcile:kept", "app:result:typed")
@pytest.mark.parametrize(("cut", "verdict"), [("before_sending", "indeterminate"), ("mid_headers", "applied")])
@pytest.mark.parametrize("operation", CALLS)
async def test_a_verdict_about_an_uncertain_call_is_typed_and_kept(
    operation: str, cut: Cut, verdict: str, site: ClientSite
) -> None:
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        site.back.cut = cut
        result = await aip.call(cap(operation), CALLS[operation])
        assert result.outcome == "uncertain"
        [record] = await aip.open_calls()
        assert (await aip.resume(record)).state == "uncertain"
        with pytest.raises(PeerError) as caught:
            await aip.reconciliation(result.action_id)
        assert caught.value.code == "reconciliation.not_found"
        sent = list(site.back.mutations)
        found = await aip.reconcile(result.action_id)
        assert (found.verdict, found.proven, found.action_id) == (verdict, verdict == "applied", result.action_id)
        assert found.next_step != ""
        assert (found.retry_after_ms is not None) is not found.proven
        assert found.evidence != ()
        assert (await aip.reconciliation(result.action_id)).raw == found.raw
        assert site.back.mutations == sent
        kept = await store.call(result.action_id)
        assert kept is not None
        assert kept.state == ("settled" if found.proven else "uncertain")
        assert kept.result is not None
        assert kept.result["reconciliation"]["verdict"] == verdict
        # Asking the server for the action again takes no verdict back.
        resumed = await aip.resume(kept)
        assert (resumed.state, resumed.record.state) == (kept.state, kept.state)
        assert (resumed.reconciliation or {})["verdict"] == verdict
        assert resumed.next_step == found.next_step


@pytest.mark.requirement("app:reconcile:kept")
async def test_a_call_that_has_not_ended_is_not_taken_for_uncertain(site: ClientSite) -> None:
    async with SqliteIdentityStore(site.folder / "ids.db") as store, site.client(store=store) as aip:
        asked = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
        found = await aip.reconcile(asked.action_id)
        assert (found.settled, found.proven) == (False, False)
        [record] = await aip.open_calls()
        assert record.state == "pending"
        with pytest.raises(PeerError) as caught:
            await aip.reconcile(ActionId("act_never"))
        assert caught.value.identities is not None
        assert caught.value.identities.action_id == "act_never"


@pytest.mark.requirement("app:reads:named-member")
@pytest.mark.parametrize("member", ["verdict", "reason", "next_step", "evidence", "action_id"])
def test_a_verdict_without_a_member_is_none(member: str) -> None:
    whole = {"action_id": "act_1", "verdict": "applied", "reason": "r", "next_step": "n", "evidence": []}
    assert reconciliation_of({"reconciliation": whole}).proven
    with pytest.raises(Undecodable, match=member):
        reconciliation_of({"reconciliation": {name: value for name, value in whole.items() if name != member}})
    with pytest.raises(Undecodable, match="verdict"):
        reconciliation_of({"reconciliation": {**whole, "verdict": "perhaps"}})
