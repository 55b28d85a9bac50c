"""The lifecycle against the real server and an embedded endpoint: what it verifies, refuses, answers when repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aip_hermes.client import AipClient, SqliteIdentityStore
from aip_hermes.client.lifecycle import (
    CapabilityMissing,
    DecisionDenied,
    DecisionPending,
    DeleteConfirmed,
    EffectsLook,
    EffectsNotConfirmed,
    LifecyclePolicy,
    NoSuchSession,
    OpenSession,
    SessionClosed,
    SessionLifecycle,
    SharedSessionKey,
    StepChanged,
    StepFailed,
    WrongTransition,
)
from aip_hermes.client.lifecycle.journal import Journal
from aip_hermes.ids import EndpointId, HermesSessionKey, PrincipalId
from tests.support.client_site import sid
from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import LifecycleSite, approve, lifecycle_site


@pytest.fixture
async def model() -> RecordingModel:
    return RecordingModel()


@pytest.fixture
async def site(tmp_path: Path, model: RecordingModel) -> AsyncIterator[LifecycleSite]:
    async with lifecycle_site(tmp_path, model=model) as running:
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "ids" / "identities.db") as opened:
        yield opened


@pytest.fixture
async def aip(site: LifecycleSite, store: SqliteIdentityStore) -> AsyncIterator[AipClient]:
    async with site.client(store=store) as client:
        yield client


async def walk(life: SessionLifecycle, site: LifecycleSite) -> DeleteConfirmed:
    session = await life.create(sid("a"), title="Case A")
    first = await life.chat(session, "What is verified?", step="first")
    assert (first.reply, first.proof, first.adopted) == ("Reply 1", "messages", False)
    await life.rename(first.session, "Case A, asked", step="asked")
    forked = await life.fork(first.session, sid("b"), title="Case B")
    second = await life.chat(forked.child, "And now?", step="second")
    closed = await life.close(second.session, reason="case_closed")
    assert (forked.source.reason, closed.reason) == ("branched", "case_closed")
    request = await life.request_delete(forked.source)
    await approve(site)
    return await life.confirm_deleted(await life.await_decision(request, timeout_s=30))


@pytest.mark.requirement("lifecycle:verified", "lifecycle:repeatable")
async def test_a_walk_leaves_what_it_says_and_a_second_one_sends_nothing(
    aip: AipClient, site: LifecycleSite, model: RecordingModel
) -> None:
    confirmed = await walk(site.lifecycle(aip), site)
    assert (confirmed.session_id, confirmed.orphaned, confirmed.gone) == ("a", ("b",), ())
    assert await site.rows() == {"b": 4}
    row = await site.endpoint.session("b")
    assert (row["title"], row["end_reason"], row["parent_session_id"]) == ("Case B", "case_closed", None)
    changes = list(site.relay.changes)
    assert len(changes) == 7
    life = site.lifecycle(aip)
    session = await life.create(sid("a"), title="Case A")
    first = await life.chat(session, "What is verified?", step="first")
    assert first.reply is None  # the session is gone by now, and with it what was said
    await life.rename(first.session, "Case A, asked", step="asked")
    forked = await life.fork(first.session, sid("b"), title="Case B")
    assert (await life.chat(forked.child, "And now?", step="second")).reply == "Reply 2"
    await life.close(forked.child, reason="case_closed")
    decided = await life.await_decision(await life.request_delete(forked.source), timeout_s=0)
    assert await life.confirm_deleted(decided) == confirmed
    assert site.relay.changes == changes
    assert len(model.requests) == 2
    assert {(step.state, step.attempt) for step in await life.steps()} == {("done", 1)}


@pytest.mark.requirement("lifecycle:listing")
async def test_a_session_is_found_on_a_later_page_of_the_list(aip: AipClient, site: LifecycleSite) -> None:
    life = site.lifecycle(aip)
    old = await life.create(sid("old"))
    for number in range(8):
        await site.endpoint.create(f"other-{number}")
        await site.endpoint.chat(f"other-{number}")
    footing = await life._footing()
    listed = await footing.reads.listed(old.id, children=False)
    assert listed.entry is not None
    assert (listed.seen, listed.pages) == (9, 4)
    gone = await footing.reads.listed(sid("nobody"), children=False)
    assert (gone.entry, gone.seen) == (None, 9)


@pytest.mark.requirement("lifecycle:closed")
async def test_no_turn_follows_a_close_unless_the_policy_says_so(
    aip: AipClient, site: LifecycleSite, model: RecordingModel
) -> None:
    life = site.lifecycle(aip)
    session = await life.create(sid("s"))
    closed = await life.close(session, reason="done")
    with pytest.raises(SessionClosed) as refused:
        life.allow_turns(closed)
    assert refused.value.session_id == "s"
    # A handle from before the close does not help.
    with pytest.raises(SessionClosed):
        await life.chat(session, "still there?", step="late")
    with pytest.raises(WrongTransition):
        await life.close(session, reason="other", step="again")
    assert model.requests == []
    lenient = site.lifecycle(aip, policy=LifecyclePolicy(turns_after_close="allow"))
    turn = await lenient.chat(lenient.allow_turns(closed), "still there?", step="late")
    assert turn.reply == "Reply 1"


@pytest.mark.requirement("lifecycle:session-key")
async def test_a_shared_session_key_is_warned_of(aip: AipClient, site: LifecycleSite, model: RecordingModel) -> None:
    life, key = site.lifecycle(aip), HermesSessionKey("memory-of-ada")
    session = await life.create(sid("s"), session_key=key)
    with pytest.warns(SharedSessionKey) as warned:
        forked = await life.fork(session, sid("child"), session_key=key)
    assert warned[0].filename == __file__
    assert forked.shares_session_key
    assert (await life.fork(forked.source, sid("other"))).shares_session_key is False
    found = await life.find(sid("child"))
    assert isinstance(found, OpenSession)
    assert found.session_key == key


@pytest.mark.requirement("lifecycle:effects")
async def test_a_turn_is_done_only_when_the_application_saw_its_effects(
    aip: AipClient, site: LifecycleSite, model: RecordingModel
) -> None:
    life = site.lifecycle(aip)
    session = await life.create(sid("s"))
    asked: list[EffectsLook] = []

    async def look(question: EffectsLook) -> bool:
        asked.append(question)
        return len(asked) > 1

    with pytest.raises(EffectsNotConfirmed):
        await life.chat(session, "Send the mail", step="mail", confirm_effects=look)
    turn = await life.chat(session, "Send the mail", step="mail", confirm_effects=look)
    await life.chat(session, "Send the mail", step="mail", confirm_effects=look)
    assert turn.reply == "Reply 1"
    assert [(each.step, each.session_id, each.turn) for each in asked] == [("mail", "s", "stored")] * 2
    assert len(model.requests) == 1


@pytest.mark.requirement("lifecycle:transitions")
async def test_what_is_not_possible_is_refused_before_anything_is_sent(aip: AipClient, site: LifecycleSite) -> None:
    life = site.lifecycle(aip)
    session = await life.create(sid("s"), title="T")
    with pytest.raises(StepChanged):
        await life.create(sid("s"), title="other")
    with pytest.raises(NoSuchSession):
        await life.chat(OpenSession(id=sid("nobody")), "hello", step="nobody")
    with pytest.raises(NoSuchSession):
        await life.messages(OpenSession(id=sid("nobody")))
    with pytest.raises(WrongTransition):
        await life.decide("create:s", outcome="again", by="human:a", reason="no")
    with pytest.raises(WrongTransition):
        await life.decide("unknown", outcome="applied", by="human:a", reason="no")
    changes = list(site.relay.changes)
    assert changes == ["POST /api/sessions"]
    # A title in use is refused with certainty; a person may then decide to try again.
    await site.endpoint.create("other", title="taken")
    with pytest.raises(StepFailed) as failed:
        await life.rename(session, "taken", step="rename")
    assert failed.value.details["provider"]["code"] == "invalid_title"
    with pytest.raises(StepFailed):
        await life.rename(session, "taken", step="rename")
    assert len(site.relay.changes) == 2
    await site.endpoint.client.patch("/api/sessions/other", json={"title": None})
    view = await life.decide("rename", outcome="again", by="human:a", reason="the title is free now")
    assert (view.state, view.attempt) == ("planned", 2)
    await life.rename(session, "taken", step="rename")
    assert (await site.endpoint.session("s"))["title"] == "taken"


@pytest.mark.requirement("lifecycle:decision")
async def test_a_deletion_waits_for_its_reviewer_and_a_denied_one_stays_denied(
    aip: AipClient, site: LifecycleSite
) -> None:
    life = site.lifecycle(aip)
    request = await life.request_delete(await life.create(sid("s")))
    with pytest.raises(DecisionPending) as pending:
        await life.await_decision(request, timeout_s=0)
    assert pending.value.approval_id == request.approval_id
    async with site.client("reviewer") as reviewer:
        assert request.approval_id is not None
        waiting = asyncio.create_task(life.await_decision(request, timeout_s=30))
        await reviewer.decide(request.approval_id, decision="denied", reason="keep it")
    for _ in range(2):
        with pytest.raises(DecisionDenied):
            await waiting
        waiting = asyncio.create_task(life.await_decision(request, timeout_s=30))
    with pytest.raises(DecisionDenied):
        await waiting
    assert await site.rows() == {"s": 0}


@pytest.mark.requirement("lifecycle:where-it-began")
async def test_a_lifecycle_goes_on_only_where_and_as_whom_it_was_begun(
    aip: AipClient, site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    await site.lifecycle(aip).create(sid("s"))
    elsewhere = site.url.replace("127.0.0.1", "localhost")
    token = site.folder / "tokens" / "requester"
    async with AipClient(base_url=elsewhere, token_file=token, store=store) as other:
        with pytest.raises(WrongTransition):
            await site.lifecycle(other).create(sid("s"))
    me = (await aip.me()).principal_id
    journal = Journal(store, endpoint=EndpointId("primary"), principal_id=PrincipalId("agent:other"), name="case-1")
    assert me != "agent:other"
    with pytest.raises(WrongTransition):
        await journal.begin(server=aip.origin)
    assert len(site.relay.changes) == 1


@pytest.mark.requirement("lifecycle:discover")
async def test_what_an_endpoint_does_not_offer_is_named_before_the_first_step(
    aip: AipClient, site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    found = await site.lifecycle(aip).discover()
    assert (found.endpoint, found.principal_id, found.delete_needs_approval) == (
        "primary",
        (await aip.me()).principal_id,
        True,
    )
    assert all(digest is not None and digest.startswith("sha256:") for digest in found.digests.values())
    life = SessionLifecycle(aip, name="elsewhere", endpoint=EndpointId("elsewhere"))
    with pytest.raises(CapabilityMissing) as missing:
        await life.create(sid("s"))
    assert "session_create" in missing.value.details["missing"]
    async with site.client("reviewer", store=store) as reviewer:
        with pytest.raises(CapabilityMissing):
            await site.lifecycle(reviewer, name="mine").create(sid("s"))
    async with site.client() as forgetful:
        with pytest.raises(ValueError, match="store"):
            SessionLifecycle(forgetful, name="x")
    assert site.relay.changes == []
