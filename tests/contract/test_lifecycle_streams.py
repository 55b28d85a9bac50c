"""Turns whose reply is told as it comes: verified as every turn, whatever became of the words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aip_hermes.client import SqliteIdentityStore
from aip_hermes.client.lifecycle import (
    EffectsLook,
    EffectsNotConfirmed,
    NotApplied,
    OpenSession,
    PartlyApplied,
    SessionClosed,
    SessionLifecycle,
    StepChanged,
)
from tests.contract.test_lifecycle_moved import NEXT, rotate
from tests.support.client_site import sid
from tests.support.embedded_endpoint import FailingModel, HaltingModel, RecordingModel
from tests.support.lifecycle_site import Fate, LifecycleSite, LosingTransport, lifecycle_site

S = OpenSession(id=sid("s"))
CREATED = "POST /api/sessions"
STREAMED = "POST /api/sessions/s/chat/stream"


class Heard:
    """What was told."""

    def __init__(self) -> None:
        self.text = ""

    async def __call__(self, text: str) -> None:
        self.text += text


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[LifecycleSite]:
    async with lifecycle_site(tmp_path, model=RecordingModel()) as running:
        yield running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "ids" / "identities.db") as opened:
        yield opened


@pytest.mark.requirement("lifecycle:streams")
async def test_a_streamed_turn_is_told_verified_and_told_no_second_time(
    site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    heard, again = Heard(), Heard()
    async with site.client(store=store) as client:
        life = site.lifecycle(client)
        session = await life.create(sid("s"))
        turn = await life.chat_stream(session, "hello", step="first", on_text=heard)
        assert (turn.reply, turn.proof, turn.adopted, heard.text) == ("Reply 1", "messages", False, "Reply 1")
        repeated = await life.chat_stream(session, "hello", step="first", on_text=again)
        assert (repeated.reply, repeated.action_id, again.text) == ("Reply 1", turn.action_id, "")
        with pytest.raises(StepChanged):
            await life.chat(session, "hello", step="first")
        assert site.relay.changes == [CREATED, STREAMED]
        closed = await life.close(session, reason="over")
        with pytest.raises(SessionClosed):
            await life.chat_stream(OpenSession(id=closed.id), "more", step="second", on_text=again)


@pytest.mark.requirement("lifecycle:streams", "lifecycle:lost-answer")
@pytest.mark.parametrize("where", ["client", "endpoint"])
async def test_a_stream_that_is_lost_is_found_by_reads(
    site: LifecycleSite, store: SqliteIdentityStore, where: str
) -> None:
    way = LosingTransport()
    fates: list[Fate] = way.fates if where == "client" else site.relay.fates
    async with site.client(store=store, transport=way) as client:
        life = site.lifecycle(client)
        session = await life.create(sid("s"))
        fates.append("lost")
        turn = await life.chat_stream(session, "hello", step="first", on_text=Heard())
        assert (turn.reply, turn.proof) == ("Reply 1", "messages")
        assert (fates, site.relay.changes) == ([], [CREATED, STREAMED])


@pytest.mark.requirement("lifecycle:streams", "lifecycle:lost-answer", "lifecycle:person-decides")
async def test_a_stream_that_never_began_is_sent_anew_only_by_a_decision(
    site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    async with site.client(store=store) as client:
        life = site.lifecycle(client)
        session = await life.create(sid("s"))
        site.relay.fates = ["cut"]
        with pytest.raises(NotApplied):
            await life.chat_stream(session, "hello", step="first", on_text=Heard())
        await life.decide("first", outcome="again", by="human:a", reason="still wanted")
        assert (await life.chat_stream(session, "hello", step="first")).reply == "Reply 1"
        assert site.relay.changes == [CREATED, STREAMED]


@pytest.mark.requirement("lifecycle:streams", "lifecycle:adopted")
@pytest.mark.parametrize("fate", [None, "lost"])
async def test_a_compression_during_a_stream_is_adopted(
    site: LifecycleSite, store: SqliteIdentityStore, fate: Fate | None
) -> None:
    async with site.client(store=store) as client:
        life = site.lifecycle(client)
        session = await life.create(sid("s"))
        site.relay.meanwhile = lambda: rotate(site, "s", NEXT)
        site.relay.fates = [fate] if fate else []
        turn = await life.chat_stream(session, "hello", step="first", on_text=Heard())
        assert (turn.session.id, turn.adopted, turn.reply) == (NEXT, True, "Reply 1")


@pytest.mark.requirement("lifecycle:streams", "lifecycle:resumed")
async def test_another_process_takes_a_running_stream_over_and_tells_it_from_the_first_word(tmp_path: Path) -> None:
    model, first, second = HaltingModel(), Heard(), Heard()
    async with (
        asyncio.timeout(60),
        lifecycle_site(tmp_path, model=model, quiet_s=30) as site,
        SqliteIdentityStore(tmp_path / "ids.db") as store,
    ):
        async with site.client(store=store) as client:
            await site.lifecycle(client).create(sid("s"))
            turn = site.lifecycle(client).chat_stream(S, "hello", step="first", on_text=first)
            dying = asyncio.create_task(turn)
            await model.asked.wait()
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)
        async with site.client(store=store) as client:
            told = asyncio.Event()

            async def hear(text: str) -> None:
                await second(text)
                told.set()

            taken = asyncio.create_task(site.lifecycle(client).chat_stream(S, "hello", step="first", on_text=hear))
            # The relay of this site hands a stream on when it is whole.
            model.gate.set()
            assert (await taken).reply == "Half done."
            await told.wait()
        assert second.text == "Half done."
        assert "Half done.".startswith(first.text)
        assert site.relay.changes == [CREATED, STREAMED]


@pytest.mark.requirement("lifecycle:streams")
async def test_what_the_program_does_with_the_words_may_fail_and_the_turn_stands(
    site: LifecycleSite, store: SqliteIdentityStore
) -> None:
    async def broken(_text: str) -> None:
        raise RuntimeError("the screen is gone")

    async with site.client(store=store) as client:
        life = site.lifecycle(client)
        session = await life.create(sid("s"))
        with pytest.raises(RuntimeError, match="the screen is gone"):
            await life.chat_stream(session, "hello", step="first", on_text=broken)
        assert [view.state for view in await life.steps() if view.step == "first"] == ["done"]
        assert (await life.chat_stream(session, "hello", step="first", on_text=broken)).reply == "Reply 1"
        assert site.relay.changes == [CREATED, STREAMED]


@pytest.mark.requirement("lifecycle:streams", "lifecycle:effects")
async def test_a_stream_without_a_reply_and_one_without_its_effects_are_not_done(tmp_path: Path) -> None:
    model = FailingModel()

    async def unseen(look: EffectsLook) -> bool:
        assert look.turn == "stored"
        return False

    async with (
        lifecycle_site(tmp_path, model=model) as site,
        SqliteIdentityStore(tmp_path / "ids.db") as store,
        site.client(store=store) as client,
    ):
        life: SessionLifecycle = site.lifecycle(client)
        session = await life.create(sid("s"))
        with pytest.raises(PartlyApplied):
            await life.chat_stream(session, "hello", step="first", on_text=Heard())
        model.failing = False
        with pytest.raises(EffectsNotConfirmed):
            await life.chat_stream(session, "again", step="second", on_text=Heard(), confirm_effects=unseen)
        assert [view.state for view in await life.steps() if view.step in ("first", "second")] == ["planned"] * 2
