"""Each step of a lifecycle with its answer lost after the effect, or its connection cut before it, on both ways."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import SqliteIdentityStore
from aip_hermes.client.lifecycle import (
    ClosedSession,
    DecisionPending,
    DeleteConfirmed,
    EffectsLook,
    EffectsNotConfirmed,
    LifecyclePolicy,
    NotApplied,
    OpenSession,
    SessionLifecycle,
    Undecided,
    UnknownYet,
    WrongTransition,
)
from aip_hermes.ports import SystemClock
from tests.support.client_site import sid
from tests.support.embedded_endpoint import RecordingModel
from tests.support.lifecycle_site import Fate, LifecycleSite, LosingTransport, approve, lifecycle_site
from tests.support.lifecycle_walk import changes_of, left_by, walk

Step = Callable[[SessionLifecycle, LifecycleSite], Awaitable[Any]]

S = OpenSession(id=sid("s"))


async def create(life: SessionLifecycle, site: LifecycleSite) -> None:
    assert await life.create(sid("new"), title="New") == OpenSession(id=sid("new"))
    assert (await site.endpoint.session("new"))["title"] == "New"


async def chat(life: SessionLifecycle, site: LifecycleSite) -> None:
    turn = await life.chat(S, "hello", step="turn")
    assert (turn.reply, turn.proof) == ("Reply 2", "messages")
    assert (await site.rows())["s"] == 4


async def rename(life: SessionLifecycle, site: LifecycleSite) -> None:
    await life.rename(S, "Renamed", step="rename")
    assert (await site.endpoint.session("s"))["title"] == "Renamed"


async def fork(life: SessionLifecycle, site: LifecycleSite) -> None:
    forked = await life.fork(S, sid("child"), title="Child")
    assert (forked.source.reason, forked.child.id) == ("branched", "child")
    assert (await site.rows()) == {"s": 2, "child": 2}


async def close(life: SessionLifecycle, site: LifecycleSite) -> None:
    assert await life.close(S, reason="done") == ClosedSession(id=sid("s"), reason="done")
    assert (await site.endpoint.session("s"))["end_reason"] == "done"


async def delete(life: SessionLifecycle, site: LifecycleSite) -> None:
    request = await life.request_delete(S)
    await approve(site)
    confirmed = await life.confirm_deleted(await life.await_decision(request, timeout_s=30))
    assert confirmed == DeleteConfirmed(session_id=sid("s"), orphaned=(), gone=())
    assert await site.rows() == {}


STEPS: tuple[Step, ...] = (create, chat, rename, fork, close, delete)
NAMES: dict[Step, str] = {
    create: "create:new",
    chat: "turn",
    rename: "rename",
    fork: "fork:child",
    close: "close:s",
    delete: "delete:s",
}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[LifecycleSite]:
    async with lifecycle_site(tmp_path, model=RecordingModel()) as running:
        await running.endpoint.create("s", title="S")
        await running.endpoint.chat("s", "before")
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "ids" / "identities.db") as opened:
        yield opened


@pytest.mark.requirement("lifecycle:lost-answer")
@pytest.mark.parametrize("fate", ["lost", "cut"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_between_client_and_server_a_step_is_carried_out_once(
    site: LifecycleSite, store: SqliteIdentityStore, step: Step, fate: Fate
) -> None:
    way = LosingTransport()
    way.fates = [fate]
    async with site.client(store=store, transport=way) as client:
        await step(site.lifecycle(client), site)
        assert way.fates == []
        assert len(site.relay.changes) == 1
        [view] = await site.lifecycle(client).steps()
        assert (view.state, view.attempt) == ("done", 1)
        assert await client.open_calls() == []


@pytest.mark.requirement("lifecycle:lost-answer")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_an_effect_whose_answer_the_endpoint_could_not_give_is_found_by_reads(
    site: LifecycleSite, store: SqliteIdentityStore, step: Step
) -> None:
    site.relay.fates = ["lost"]
    async with site.client(store=store) as client:
        await step(site.lifecycle(client), site)
        assert len(site.relay.changes) == 1
        [view] = await site.lifecycle(client).steps()
        assert (view.state, view.attempt) == ("done", 1)


@pytest.mark.requirement("lifecycle:lost-answer", "lifecycle:person-decides")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_what_never_reached_the_endpoint_is_sent_anew_only_by_a_decision(
    site: LifecycleSite, store: SqliteIdentityStore, step: Step
) -> None:
    site.relay.fates = ["cut"]
    async with site.client(store=store) as client:
        for _ in range(2):
            with pytest.raises(NotApplied) as refused:
                await step(site.lifecycle(client), site)
            assert (refused.value.step, refused.value.uncertain) == (NAMES[step], False)
            assert "decide(" in refused.value.next_step
        assert site.relay.changes == []
        life = site.lifecycle(client)
        view = await life.decide(NAMES[step], outcome="again", by="human:a", reason="still wanted")
        assert (view.state, view.attempt) == ("planned", 2)
        assert view.action_id != refused.value.action_id
        await step(site.lifecycle(client), site)
        assert len(site.relay.changes) == 1


class Stopped(Exception):
    """Stands for a process that ends here."""


class StopOnce:
    """Ends the program at every point of every step, the first time that it comes there."""

    def __init__(self) -> None:
        self.step = ""
        self.seen: set[tuple[str, str]] = set()

    def on_step(self, step: str) -> None:
        self.step = step

    async def reach(self, point: str) -> None:
        if (self.step, point) not in self.seen:
            self.seen.add((self.step, point))
            raise Stopped


@pytest.mark.requirement("lifecycle:resumed")
async def test_a_walk_that_ends_at_every_point_of_every_step_is_finished_by_others(
    tmp_path: Path, store: SqliteIdentityStore
) -> None:
    stops, runs = StopOnce(), 0
    async with lifecycle_site(tmp_path, model=RecordingModel()) as site:
        while True:
            runs += 1
            async with site.client(store=store, faults=stops) as client:
                life = SessionLifecycle(client, name="walk", faults=stops)
                try:
                    await walk(life, "w", on_step=stops.on_step)
                    break
                except Stopped:
                    await approve(site)
        assert site.relay.changes == changes_of("w")
        assert await site.rows() == left_by("w")
    # Six points of each of seven steps, and those of a deletion, which is decided in between.
    assert runs == len(stops.seen) + 1
    assert len(stops.seen) > 40


@pytest.mark.requirement("lifecycle:shared")
async def test_two_processes_on_one_lifecycle_make_each_change_once(tmp_path: Path) -> None:
    """Each has its own client and its own connection to one file of identities."""

    async def runs(site: LifecycleSite) -> None:
        async with SqliteIdentityStore(tmp_path / "ids.db") as store, site.client(store=store) as client:
            life = SessionLifecycle(client, name="walk")
            with contextlib.suppress(DecisionPending):
                await walk(life, "w")
                return
            await approve(site)
            await walk(life, "w")

    async with lifecycle_site(tmp_path, model=RecordingModel(), quiet_s=5) as site, asyncio.timeout(120):
        await asyncio.gather(*(runs(site) for _ in range(3)))
        assert site.relay.changes == changes_of("w")
        assert await site.rows() == left_by("w")


@pytest.mark.requirement("lifecycle:person-decides")
async def test_what_is_on_its_way_again_is_no_longer_decidable(site: LifecycleSite, store: SqliteIdentityStore) -> None:
    async with site.client(store=store) as client:
        life = site.lifecycle(client, policy=LifecyclePolicy(wait_s=0.01))
        site.relay.fates = ["cut"]
        with pytest.raises(UnknownYet) as unknown:
            await life.rename(S, "Renamed", step="rename")
        assert (unknown.value.uncertain, unknown.value.retryable) == (True, True)
        for outcome in ("again", "applied"):
            with pytest.raises(WrongTransition):
                await life.decide("rename", outcome=outcome, by="human:a", reason="impatient")
        with pytest.raises(NotApplied):
            await site.lifecycle(client).rename(S, "Renamed", step="rename")
        await life.decide("rename", outcome="again", by="human:a", reason="proven not to be there")
        await life.rename(S, "Renamed", step="rename")
        assert len(site.relay.changes) == 1


@pytest.mark.requirement("lifecycle:lost-answer", "lifecycle:person-decides")
async def test_what_the_server_may_have_forgotten_is_not_sent_again(site: LifecycleSite, tmp_path: Path) -> None:
    """A key is remembered for a day; after that the same submission could run a second time."""

    class Yesterday(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() - 25 * 3_600_000

    class StopAt:
        async def reach(self, point: str) -> None:
            if point == "client_identities_kept":
                raise Stopped

    async with SqliteIdentityStore(tmp_path / "old.db", clock=Yesterday()) as store:
        async with site.client(store=store, faults=StopAt()) as client:
            with pytest.raises(Stopped):
                await site.lifecycle(client).rename(S, "Renamed", step="rename")
        async with site.client(store=store) as client:
            for _ in range(2):
                with pytest.raises(Undecided) as undecided:
                    await site.lifecycle(client).rename(S, "Renamed", step="rename")
            assert (undecided.value.uncertain, site.relay.changes) == (True, [])
            await site.lifecycle(client).decide("rename", outcome="again", by="human:a", reason="the title is the old")
            await site.lifecycle(client).rename(S, "Renamed", step="rename")
            assert len(site.relay.changes) == 1


@pytest.mark.requirement("lifecycle:effects")
async def test_a_lost_turn_is_proven_away_only_together_with_the_application(
    site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    asked: list[tuple[str, str]] = []

    async def look(question: EffectsLook) -> bool:
        asked.append((question.step, question.turn))
        return len(asked) > 1

    async with site.client(store=store) as client:
        site.relay.fates = ["cut"]
        with pytest.raises(EffectsNotConfirmed) as unsure:
            await site.lifecycle(client).chat(S, "Send the mail", step="mail", confirm_effects=look)
        assert unsure.value.uncertain
        with pytest.raises(NotApplied):
            await site.lifecycle(client).chat(S, "Send the mail", step="mail", confirm_effects=look)
        assert asked == [("mail", "absent")] * 2
        assert site.relay.changes == []
