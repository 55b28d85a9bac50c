"""Sessions that move under a lifecycle: compressions, forks that answer for a source, half forks, rows that return."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from aip_hermes.client import SqliteIdentityStore
from aip_hermes.client.lifecycle import (
    ClosedSession,
    LifecyclePolicy,
    NotVerified,
    OpenSession,
    PartlyApplied,
    SessionLifecycle,
    SessionSuperseded,
    WrongTransition,
)
from tests.support.client_site import sid
from tests.support.embedded_endpoint import FailingModel, RecordingModel
from tests.support.lifecycle_site import Fate, LifecycleSite, approve, lifecycle_site

NEXT = "20260406_164014_74b2d1"
LENIENT = LifecyclePolicy(turns_after_close="allow", wait_s=20)


@asynccontextmanager
async def walking(
    folder: Path,
    *,
    policy: LifecyclePolicy = LENIENT,
    quirks: tuple[str, ...] = (),
    model: RecordingModel | None = None,
) -> AsyncIterator[tuple[SessionLifecycle, LifecycleSite]]:
    """Yield a lifecycle and its site."""
    async with (
        lifecycle_site(folder, model=model or RecordingModel(), quirks=quirks) as site,
        SqliteIdentityStore(folder / "ids" / "identities.db") as store,
        site.client(store=store) as client,
    ):
        yield site.lifecycle(client, policy=policy), site


async def rotate(site: LifecycleSite, old: str, new: str) -> None:
    """Compress a session into another row, as Hermes does with `in_place: false`."""
    await site.endpoint.db.create_session(new, "api_server", parent_session_id=old)
    await site.endpoint.db.append_message(new, "assistant", "summary", finish_reason="stop")
    await site.endpoint.db.end_session(old, "compression")


@pytest.mark.requirement("lifecycle:adopted")
@pytest.mark.parametrize("fate", [None, "lost"])
async def test_a_compression_during_the_turn_is_adopted_and_old_handles_follow(
    tmp_path: Path, fate: Fate | None
) -> None:
    async with walking(tmp_path) as (life, site):
        session = await life.create(sid("s"))
        site.relay.meanwhile = lambda: rotate(site, "s", NEXT)
        site.relay.fates = [fate] if fate else []
        turn = await life.chat(session, "hello", step="first")
        assert (turn.session.id, turn.adopted, turn.reply, turn.proof) == (NEXT, True, "Reply 1", "messages")
        again = await life.chat(session, "hello", step="first")
        assert (again.session.id, again.adopted, again.reply) == (NEXT, True, "Reply 1")
        # The old handle: the session goes on where it was proven to be.
        later = await life.chat(session, "and now?", step="second")
        assert (later.session.id, later.adopted, later.reply) == (NEXT, False, "Reply 2")
        assert site.relay.changes[1:] == ["POST /api/sessions/s/chat", f"POST /api/sessions/{NEXT}/chat"]


@pytest.mark.requirement("lifecycle:adopted")
@pytest.mark.parametrize(("new", "proven"), [(NEXT, True), ("some-fork", False)])
async def test_a_session_that_others_compressed_is_adopted_only_where_that_is_proven(
    tmp_path: Path, new: str, proven: bool
) -> None:
    async with walking(tmp_path) as (life, site):
        session = await life.create(sid("s"))
        await rotate(site, "s", new)
        with pytest.raises(SessionSuperseded):
            await life.chat(session, "hello", step="first")
        read = await life.messages(session)
        assert (read.session.id, read.own, read.whose) == (new if proven else "s", proven, new)
        assert isinstance(read.session, OpenSession)
        if proven:
            assert (await life.chat(read.session, "hello", step="first")).session.id == new
        else:
            with pytest.raises(SessionSuperseded):
                await life.chat(read.session, "hello", step="first")
        assert len(site.relay.changes) == (2 if proven else 1)


@pytest.mark.requirement("lifecycle:quirks", "lifecycle:adopted")
@pytest.mark.parametrize("fate", [None, "lost"])
async def test_a_fork_that_answers_for_its_source_is_never_adopted(tmp_path: Path, fate: Fate | None) -> None:
    async with walking(tmp_path, quirks=("fork-child-resolves",)) as (life, _):
        session = await life.create(sid("s"))
        first = await life.chat(session, "hello", step="first")
        forked = await life.fork(first.session, sid("child"))
        read = await life.messages(forked.source)
        assert (read.session, read.whose, read.own) == (forked.source, "child", False)
        if fate is None:
            turn = await life.chat(life.allow_turns(forked.source), "on the source", step="second")
            assert (turn.session.id, turn.adopted, turn.reply, turn.proof) == ("s", False, "Reply 2", "row")
        assert (await life.chat(forked.child, "on the child", step="third")).session.id == "child"


@pytest.mark.requirement("lifecycle:quirks", "lifecycle:person-decides")
@pytest.mark.parametrize("outcome", ["applied", "again"])
async def test_a_half_fork_waits_for_a_person(tmp_path: Path, outcome: Literal["applied", "again"]) -> None:
    async with walking(tmp_path, quirks=("fork-not-atomic",)) as (life, site):
        session = await life.create(sid("s"))
        await site.endpoint.create("other", title="taken")
        for _ in range(2):
            with pytest.raises(PartlyApplied) as partly:
                await life.fork(session, sid("child"), title="taken")
            assert partly.value.step == "fork:child"
        assert site.relay.changes[1:] == ["POST /api/sessions/s/fork"]
        view = await life.decide("fork:child", outcome=outcome, by="human:a", reason="looked at both")
        if outcome == "applied":
            assert view.state == "done"
            forked = await life.fork(session, sid("child"), title="taken")
            assert (forked.child.id, forked.source.id) == ("child", "s")
            assert len(site.relay.changes) == 2
        else:
            assert (view.state, view.attempt) == ("planned", 2)


@pytest.mark.requirement("lifecycle:quirks", "lifecycle:person-decides")
async def test_a_question_without_a_reply_waits_for_a_person(tmp_path: Path) -> None:
    model = FailingModel()
    async with walking(tmp_path, model=model) as (life, _):
        session = await life.create(sid("s"))
        for _ in range(2):
            with pytest.raises(PartlyApplied):
                await life.chat(session, "hello", step="first")
        assert len(model.requests) == 1
        await life.decide("first", outcome="applied", by="human:a", reason="the question stands; ask on")
        turn = await life.chat(session, "hello", step="first")
        assert (turn.reply, turn.proof) == (None, "decision")
        [decided] = [step for step in await life.steps() if step.step == "first"]
        assert decided.state == "done"
        with pytest.raises(WrongTransition):
            await life.decide("first", outcome="again", by="human:a", reason="too late")


@pytest.mark.requirement("lifecycle:quirks")
async def test_a_row_that_came_back_is_no_confirmed_deletion(tmp_path: Path) -> None:
    async with walking(tmp_path) as (life, site):
        session = await life.create(sid("s"))
        request = await life.request_delete(session)
        await approve(site)
        decided = await life.await_decision(request, timeout_s=30)
        await site.endpoint.db.create_session("s", "unknown")
        with pytest.raises(NotVerified) as back:
            await life.confirm_deleted(decided)
        assert back.value.session_id == "s"
        await site.endpoint.db.delete_session("s")
        assert (await life.confirm_deleted(decided)).session_id == "s"


@pytest.mark.requirement("lifecycle:verified")
async def test_children_and_parent_are_looked_at_after_a_delete(tmp_path: Path) -> None:
    async with walking(tmp_path) as (life, site):
        root = await life.create(sid("root"))
        middle = (await life.fork(root, sid("middle"))).child
        await site.endpoint.db.create_session(
            "helper", "subagent", parent_session_id="middle", model_config={"_delegate_from": "middle"}
        )
        forked = await life.fork(middle, sid("leaf"))
        request = await life.request_delete(forked.source)
        assert request.children == ("helper", "leaf")
        await approve(site)
        confirmed = await life.confirm_deleted(await life.await_decision(request, timeout_s=30))
        assert (confirmed.orphaned, confirmed.gone) == (("leaf",), ("helper",))
        assert set(await site.rows()) == {"root", "leaf"}
        assert await life.find(sid("middle")) is None
        assert await life.find(sid("root")) == ClosedSession(id=sid("root"), reason="branched")
