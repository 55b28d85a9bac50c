"""Calls of an application against the real server and an embedded endpoint: results, resuming, waiting."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aip_hermes.client import (
    AipClient,
    CallFailed,
    IdentityClash,
    PeerError,
    ResumeRefused,
    SqliteIdentityStore,
)
from aip_hermes.ids import ActionId, ApprovalId, HermesSessionKey, IdempotencyKey
from aip_hermes.ports import SystemClock
from tests.support.client_site import ClientSite, cap, client_site, sid
from tests.support.embedded_endpoint import GatedModel


@pytest.fixture
async def model() -> GatedModel:
    made = GatedModel()
    made.gate.set()
    return made


@pytest.fixture
async def site(tmp_path: Path, model: GatedModel) -> AsyncIterator[ClientSite]:
    async with client_site(tmp_path, model=model) as running:
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "ids" / "identities.db") as opened:
        yield opened


@pytest.fixture
async def aip(site: ClientSite, store: SqliteIdentityStore) -> AsyncIterator[AipClient]:
    async with site.client(store=store) as client:
        yield client


async def created(aip: AipClient, session_id: str = "s1") -> None:
    result = await aip.call(cap("session_create"), {"body": {"title": session_id}}, new_session_id=sid(session_id))
    assert result.completed()["session"]["id"] == session_id


@pytest.mark.requirement("app:result:typed", "app:identities:kept-first")
async def test_a_completed_call_is_kept_with_all_its_identities(aip: AipClient, store: SqliteIdentityStore) -> None:
    await created(aip)
    chosen = ActionId("act_chosen"), IdempotencyKey("key-chosen"), HermesSessionKey("memory-of-ada")
    result = await aip.call(
        cap("session_chat"),
        {"message": "What is verified?"},
        action_id=chosen[0],
        idempotency_key=chosen[1],
        session_id=sid("s1"),
        session_key=chosen[2],
        group="case-1",
        step="first",
    )
    assert (result.outcome, result.recorded, result.action_id) == ("completed", True, chosen[0])
    assert result.session is not None
    assert (result.session.requested, result.session.effective, result.session.reason) == ("s1", "s1", "none")
    record = await store.call(chosen[0])
    assert record is not None
    assert record.identities == result.identities
    kept = (record.endpoint, record.session_id, record.session_key, record.idempotency_key, record.server)
    assert kept == ("primary", "s1", chosen[2], chosen[1], aip.origin)
    assert (record.state, record.attempts, record.group, record.step) == ("settled", 1, "case-1", "first")
    assert record.result is not None
    assert (record.result["outcome"], record.result["output"]["message"]) == (
        "completed",
        {"role": "assistant", "content": {"redacted": True}},
    )
    assert list(await store.calls(group="case-1")) == [record]
    assert await aip.open_calls() == []


@pytest.mark.requirement("app:identities:no-text")
async def test_the_file_holds_no_text_and_belongs_to_its_owner(
    aip: AipClient, store: SqliteIdentityStore, site: ClientSite
) -> None:
    await created(aip)
    await aip.call(cap("session_chat"), {"message": "a-secret-question"}, session_id=sid("s1"))
    await aip.call(cap("session_patch"), {"title": "another"}, session_id=sid("s1"))
    await store.aclose()
    token = (site.folder / "tokens" / "requester").read_bytes().strip()
    for file in store.path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0
        content = file.read_bytes()
        assert [text for text in (b"a-secret-question", b"Reply 1", token) if text in content] == []


@pytest.mark.requirement("app:result:typed")
async def test_a_failed_action_is_a_result_and_completed_raises_it(aip: AipClient) -> None:
    result = await aip.call(cap("session_patch"), {"title": "x"}, session_id=sid("nobody"))
    assert (result.outcome, result.recorded) == ("connector_failed", True)
    assert result.error is not None
    assert (result.error.uncertain, result.error.details["provider"]["code"]) == (False, "session_not_found")
    with pytest.raises(CallFailed) as caught:
        result.completed()
    failed = caught.value
    assert (failed.code, failed.category, failed.uncertain) == (result.error.code, result.error.category, False)
    assert failed.identities == result.identities
    assert failed.next_step == result.next_step != ""


@pytest.mark.requirement("app:result:typed", "app:identities:never-mixed")
async def test_a_replay_says_whose_answer_it_is(aip: AipClient) -> None:
    key = IdempotencyKey("once")
    first = await aip.call(cap("session_create"), {"body": {"id": "s1"}}, idempotency_key=key)
    again = await aip.call(cap("session_create"), {"body": {"id": "s2"}}, idempotency_key=key)
    assert first.replay is None
    assert again.replay is not None
    assert (again.replay.original_action_id, again.replay.input_differs) == (first.action_id, True)
    assert again.completed()["session"]["id"] == "s1"


@pytest.mark.requirement("app:identities:never-mixed")
async def test_an_action_id_stands_for_one_call(
    aip: AipClient, site: ClientSite, store: SqliteIdentityStore, model: GatedModel
) -> None:
    await created(aip)
    action_id = ActionId("act_one")
    first = await aip.call(cap("session_chat"), {"message": "one"}, action_id=action_id, session_id=sid("s1"))
    with pytest.raises(IdentityClash) as caught:
        await aip.call(cap("session_chat"), {"message": "two"}, action_id=action_id, session_id=sid("s1"))
    assert caught.value.uncertain is False
    assert caught.value.identities is not None
    assert caught.value.identities.action_id == action_id
    # The same call again, its key not named either, is the same submission: the server answers what it knows.
    again = await aip.call(cap("session_chat"), {"message": "one"}, action_id=action_id, session_id=sid("s1"))
    assert again.completed()["message"] == first.completed()["message"]
    assert len(model.requests) == 1
    record = await store.call(action_id)
    assert record is not None
    assert (record.attempts, record.state) == (2, "settled")


@pytest.mark.requirement("app:reads:typed")
async def test_the_reads_are_typed(aip: AipClient) -> None:
    me = await aip.me()
    assert (me.principal_id, me.kind, me.tenant_id) == ("agent:local:requester", "agent", "local")
    assert "action:write" in me.scopes
    page = await aip.capabilities(text="session_", limit=3)
    assert len(page.capabilities) == 3
    assert page.next_cursor is not None
    assert page.capabilities[0].capability.contract is not None
    assert (page.capabilities[0].contract_digest or "").startswith("sha256:")
    contract = await aip.contract(cap("session_delete"))
    assert contract is not None
    assert contract.idempotency.requirement == "required"
    assert await aip.contract(cap("no_such_operation")) is None
    await created(aip)
    result = await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"))
    progress = await aip.status(result.action_id)
    assert (progress.state, progress.terminal, progress.action_id) == ("completed", True, result.action_id)
    assert (await aip.result(result.action_id)).completed() == result.completed()
    events = await aip.events(result.action_id)
    assert events.terminal is True
    assert [event["kind"] for event in events.events] == ["aip.action.result"]
    frames = [frame async for frame in aip.stream(result.action_id)]
    assert frames[-1].kind == "terminal"
    never = await aip.status(ActionId("act_never"))
    assert (never.state, never.terminal) == ("unknown", False)


@pytest.mark.requirement("app:wait:decision", "app:reads:typed", "app:resume:asks")
async def test_a_delete_waits_for_its_reviewer(aip: AipClient, site: ClientSite, store: SqliteIdentityStore) -> None:
    await created(aip)
    asked = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
    assert (asked.outcome, asked.status) == ("pending", "pending_approval")
    assert isinstance(asked.approval_id, ApprovalId)
    [record] = await aip.open_calls()
    resumed = await aip.resume(record)
    assert (resumed.state, resumed.approval_id, resumed.result) == ("pending", asked.approval_id, None)
    with pytest.raises(TimeoutError):
        await aip.wait(asked.action_id, timeout_s=0)
    async with site.client("reviewer") as reviewer:
        [approval] = (await reviewer.approvals(status="pending")).approvals
        assert (approval.approval_id, approval.action_id) == (asked.approval_id, asked.action_id)
        assert approval.requester_id == "agent:local:requester"
        waiting = asyncio.create_task(aip.wait(asked.action_id, timeout_s=30))
        await reviewer.decide(approval.approval_id, decision="approved", reason="the case is closed")
    ended = await waiting
    assert ended.completed()["deleted"] is True
    assert ended.recorded
    assert await aip.open_calls() == []
    kept = await store.call(asked.action_id)
    assert kept is not None
    assert kept.state == "settled"


@pytest.mark.requirement("app:resume:asks")
async def test_a_running_call_is_resumed_without_a_second_one(
    aip: AipClient, model: GatedModel, store: SqliteIdentityStore
) -> None:
    await created(aip)
    model.gate.clear()
    calling = asyncio.create_task(aip.call(cap("session_chat"), {"message": "slow"}, session_id=sid("s1")))
    await model.asked.wait()
    [record] = await aip.open_calls(endpoint=None)
    assert record.state == "open"
    assert (await aip.resume(record)).state == "running"
    assert (await aip.resume(record, input={"message": "slow"})).state == "running"
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    model.gate.set()
    await aip.wait(record.action_id, timeout_s=30)
    resumed = await aip.resume(record)
    assert (resumed.state, resumed.record.state) == ("settled", "settled")
    assert resumed.result is not None
    assert resumed.result.completed()["message"]["content"] == "Reply 1"
    assert len(model.requests) == 1


@pytest.mark.requirement("app:resume:same-submission", "app:resume:asks")
async def test_what_was_never_received_is_sent_only_as_the_same_submission(
    aip: AipClient, site: ClientSite, store: SqliteIdentityStore
) -> None:
    class Stop(Exception):
        """Stands for a process that ends here."""

    class StopAt:
        async def reach(self, point: str) -> None:
            if point == "client_identities_kept":
                raise Stop

    async with site.client(store=store, faults=StopAt()) as stopping:
        with pytest.raises(Stop):
            await stopping.call(cap("session_create"), {"body": {"title": "T"}}, new_session_id=sid("late"))
    [record] = await aip.open_calls()
    assert (record.new_session_id, record.state) == ("late", "open")
    resumed = await aip.resume(record)
    assert (resumed.state, resumed.result) == ("never_received", None)
    assert str(record.action_id) in resumed.next_step
    with pytest.raises(IdentityClash):
        await aip.resume(record, input={"body": {"title": "other"}})
    assert (await site.endpoint.client.get("/api/sessions/late")).status_code == 404
    first = await aip.resume(record, input={"body": {"title": "T"}})
    assert (first.state, first.record.state, first.record.attempts) == ("settled", "settled", 2)
    assert first.result is not None
    assert first.result.completed()["session"]["id"] == "late"
    assert (await aip.resume(record, input={"body": {"title": "T"}})).state == "settled"


@pytest.mark.requirement("app:resume:same-submission")
@pytest.mark.parametrize(("age_h", "refused"), [(23, False), (24, True)])
async def test_an_old_call_is_never_sent_again(site: ClientSite, tmp_path: Path, age_h: int, refused: bool) -> None:
    """The server forgets a key after 24 hours: the same submission would run as a new one."""

    class Earlier(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() - age_h * 3_600_000

    async with SqliteIdentityStore(tmp_path / "old.db", clock=Earlier()) as old, site.client(store=old) as aip:

        class StopAt:
            async def reach(self, point: str) -> None:
                raise InterruptedError

        async with site.client(store=old, faults=StopAt()) as stopping:
            with pytest.raises(InterruptedError):
                await stopping.call(cap("session_create"), {"body": {"id": "old"}})
        [record] = await aip.open_calls()
        if refused:
            with pytest.raises(ResumeRefused) as caught:
                await aip.resume(record, input={"body": {"id": "old"}})
            assert caught.value.next_step != ""
        else:
            assert (await aip.resume(record, input={"body": {"id": "old"}})).state == "settled"


@pytest.mark.requirement("app:resume:asks")
async def test_a_record_of_another_server_is_not_asked_here(aip: AipClient, site: ClientSite) -> None:
    await created(aip)
    async with AipClient(base_url="http://127.0.0.1:9", store=aip.store) as other:
        await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
        [record] = await aip.open_calls()
        assert await other.open_calls() == []
        with pytest.raises(ValueError, match=r"127\.0\.0\.1:9"):
            await other.resume(record)


@pytest.mark.requirement("app:identities:always-said")
async def test_without_a_store_a_refusal_names_the_call_all_the_same(site: ClientSite) -> None:
    async with site.client() as aip:
        with pytest.raises(PeerError) as caught:
            await aip.call(cap("no_such_operation"), {}, session_id=sid("s1"))
        identities = caught.value.identities
        assert identities is not None
        assert identities.action_id.startswith("act_")
        assert (identities.idempotency_key or "").startswith("key_")
        assert (identities.session_id, identities.endpoint) == ("s1", "primary")
        assert await aip.open_calls() == []


@pytest.mark.requirement("app:identities:no-text")
async def test_a_folder_for_the_file_is_made_for_its_owner(tmp_path: Path) -> None:
    async with SqliteIdentityStore(tmp_path / "new" / "identities.db") as fresh:
        assert await fresh.open_calls() == []
        await fresh.remember(group="case-1", name="effective", value={"session_id": "s2"})
        await fresh.remember(group="case-1", name="effective", value={"session_id": "s3"})
        assert await fresh.recall(group="case-1") == {"effective": {"session_id": "s3"}}
        assert await fresh.remember_first(group="case-1", name="effective", value="later") == {"session_id": "s3"}
        assert await fresh.recall(group="case-2") == {}
    assert os.stat(tmp_path / "new").st_mode & 0o077 == 0
