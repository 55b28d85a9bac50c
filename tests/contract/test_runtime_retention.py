"""How long somebody's text stays in the store, and what a pruning leaves."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.contract.handler import Answer, Call, Chunk, Publish, State
from aip_hermes.database import Database
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import MessageContext, Runtime
from aip_hermes.runtime.keeper import LOOK_S
from aip_hermes.runtime.retention import Pruned, prune
from aip_hermes.runtime.store import APPLICATION_ID, MIGRATIONS
from tests.support.runtime_connector import ScriptedRejected
from tests.support.runtime_site import Crash, Site, action, ask, caller, decision, requester, reviewer

MARK = "zq-private-words-zq"
DAY_MS = 86_400_000


async def speak(call: Call) -> Answer:
    return Answer(output={"said": MARK, "session": call.input.get("session_id")}, text=MARK)


async def count(_: Call) -> Answer:
    return Answer(output={"n": 1})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.connector.send = speak
    return made


def holds_mark(site: Site) -> list[str]:
    """Return the names of the store's files in which the marked words can be read."""
    return [path.name for path in site.folder.iterdir() if path.is_file() and MARK.encode() in path.read_bytes()]


async def refusal(runtime: Runtime, action_id: str, *, include_chunks: bool = False) -> str:
    asked = runtime.events(action_id, requester(), include_chunks=True) if include_chunks else None
    with pytest.raises(RequestRefused) as refused:
        await (asked or runtime.result(action_id, requester()))
    return refused.value.code


def erased_of(output: object) -> dict[str, str]:
    assert isinstance(output, dict)
    found: dict[str, str] = output["_aip"]["erased"]
    return found


@pytest.mark.requirement("records:text:not-kept")
async def test_no_word_of_an_input_outlives_its_action(site: Site) -> None:
    site.connector.send = count
    async with site.open() as runtime:
        for mode in ("session_chat", "session_patch", "session_fork"):
            given = action(mode, input={"session_id": "s1", "message": MARK, "body": {"title": MARK, "id": "c1"}})
            await site.submit(runtime, given)
        _, request = await ask(site, runtime, input={"session_id": "s1", "note": MARK})
        await runtime.decide(decision(request), reviewer())
    for table in ("actions", "events", "audit", "receipts", "approvals", "idempotency_keys", "chunks"):
        rows = await site.rows(f"SELECT * FROM {table}")  # noqa: S608 - a name of the list above
        assert MARK not in repr(rows), table


@pytest.mark.requirement("records:text:expires")
async def test_a_transcript_goes_after_a_day_and_what_is_left_says_so(site: Site) -> None:
    given = action("session_chat", idempotency_key="K")
    async with site.open() as runtime:
        first = await site.submit(runtime, given)
        site.clock.advance(DAY_MS - 1)
        assert (await runtime.result(given.id, requester())).output == first.output
        site.clock.advance(1)
        assert await refusal(runtime, given.id) == "action.gone"
        status = await runtime.status(given.id, requester(), include_result=True)
        replayed = await site.submit(runtime, action("session_chat", idempotency_key="K"))
        repeated = await site.submit(runtime, given)
        assert len(site.connector.sends) == 1
    assert status.state == "completed"
    assert status.result is not None
    told = {
        "at": wire.rfc3339(site.clock.now_ms()),
        "reason": "expired",
        "output_sha256": wire.sha256_hex(first.output),
    }
    for result in (status.result, replayed, repeated):
        assert result.status == "completed"
        assert erased_of(result.output) == told
        assert MARK not in repr(result)
    assert holds_mark(site) == []


@pytest.mark.requirement("records:text:expires")
async def test_a_replay_comes_too_late_for_the_text_where_nobody_asked_before(site: Site) -> None:
    given = action("session_chat", idempotency_key="K")
    async with site.open() as runtime:
        await site.submit(runtime, given)
    site.clock.advance(DAY_MS)
    async with site.open() as runtime:
        replayed = await site.submit(runtime, action("session_chat", idempotency_key="K"))
    assert erased_of(replayed.output)["reason"] == "expired"
    assert len(site.connector.sends) == 1


@pytest.mark.requirement("records:text:expires")
async def test_text_goes_where_nobody_asks_and_what_is_no_transcript_stays(site: Site) -> None:
    talk, made = action("session_chat"), action("session_create", idempotency_key="K")
    async with asyncio.timeout(30), site.open() as runtime:
        await site.submit(runtime, talk)
        await site.submit(runtime, made)
        await site.clock.until_asleep(LOOK_S)
        site.clock.advance(DAY_MS)
        await site.clock.until_asleep(LOOK_S)
        rows = {row["action_id"]: row["result"] for row in await site.rows("SELECT action_id, result FROM actions")}
    assert MARK not in rows[talk.id]
    assert MARK in rows[made.id]


async def say_two(publish: Publish) -> Answer:
    for word in range(2):
        await publish(Chunk(kind="data", data={"delta": MARK, "n": word}, text=MARK))
    return Answer(output={"text": MARK})


@pytest.mark.requirement("records:text:delete-erases")
async def test_a_delete_erases_what_is_stored_about_its_session_and_nothing_else(site: Site) -> None:
    site.connector.streaming = frozenset({"session_chat"})
    site.connector.stream = say_two
    gone, stays = (
        action("session_chat", mode="streaming", input={"session_id": session, "message": "hi"})
        for session in ("s1", "s2")
    )
    async with site.open() as runtime:
        for given in (gone, stays):
            await site.submit(runtime, given)
        site.connector.stream = None
        _, request = await ask(site, runtime)
        site.faults.point = "after_settle"
        with contextlib.suppress(Crash):
            await runtime.decide(decision(request), reviewer())
    async with site.open() as runtime:
        assert await refusal(runtime, gone.id) == "action.gone"
        assert await refusal(runtime, gone.id, include_chunks=True) == "action.gone"
        assert (await runtime.events(gone.id, requester())).terminal
        kept = await runtime.events(stays.id, requester(), include_chunks=True)
        assert [chunk.sequence for chunk in kept.chunks] == [0, 1]
        assert (await runtime.result(stays.id, requester())).output == {"text": MARK}
        with pytest.raises(RequestRefused) as refused:
            await runtime.result(gone.id, requester())
    details = refused.value.details
    assert details is not None
    assert details["erased"]["reason"] == "deleted"
    assert await site.rows("SELECT 1 FROM text_subjects WHERE subject = 'scripted:s1'") == []


@pytest.mark.requirement("records:text:delete-erases", "records:text:expires")
async def test_a_row_with_its_title_outlives_the_transcripts_and_goes_with_its_session(site: Site) -> None:
    named = action("session_patch", idempotency_key="P", input={"session_id": "s1", "title": "Case one"})
    async with site.open() as runtime:
        told = await site.submit(runtime, named)
        site.clock.advance(30 * DAY_MS)
        assert (await runtime.result(named.id, requester())).output == told.output
        _, request = await ask(site, runtime)
        await runtime.decide(decision(request), reviewer())
        assert await refusal(runtime, named.id) == "action.gone"


@pytest.mark.requirement("records:text:delete-erases")
@pytest.mark.parametrize("verdict", ["denied", "approved"])
async def test_a_delete_that_does_not_complete_erases_nothing(site: Site, verdict: str) -> None:
    talk = action("session_chat")
    async with site.open() as runtime:
        first = await site.submit(runtime, talk)
        _, request = await ask(site, runtime)
        site.connector.failures["send"] = ScriptedRejected("no")
        await runtime.decide(decision(request, decision=verdict), reviewer())
        assert await runtime.result(talk.id, requester()) == first


@pytest.mark.requirement("records:text:delete-erases", "records:text:expires")
@pytest.mark.parametrize("by", ["delete", "time"])
async def test_chunks_of_a_stream_that_a_crash_cut_off_go_too(site: Site, by: str) -> None:
    site.connector.streaming = frozenset({"session_chat"})
    site.connector.stream = say_two
    site.connector.hold_s = 0
    cut = action("session_chat", mode="streaming")
    site.faults.point = "after_answer"
    async with site.open() as runtime:
        with contextlib.suppress(Crash):
            await site.submit(runtime, cut)
    site.connector.stream, site.connector.send = None, count
    site.clock.advance(1)
    async with site.open() as runtime:
        assert len((await runtime.events(cut.id, requester(), include_chunks=True)).chunks) == 2
        if by == "delete":
            _, request = await ask(site, runtime)
            await runtime.decide(decision(request), reviewer())
        else:
            site.clock.advance(DAY_MS)
        assert await refusal(runtime, cut.id, include_chunks=True) == "action.gone"
        result = await runtime.result(cut.id, requester())
    assert result.status == "failed"
    assert await site.rows("SELECT 1 FROM chunks") == []
    assert holds_mark(site) == []


async def pruned(site: Site, *, age_ms: int, dry_run: bool = False) -> Pruned:
    async with Database(site.path, migrations=MIGRATIONS, application_id=APPLICATION_ID) as database:
        return await prune(database, older_than_ms=age_ms, clock=site.clock, dry_run=dry_run)


async def everything(site: Site) -> str:
    tables = ("actions", "chunks", "events", "idempotency_keys", "receipts", "audit", "approvals", "event_log_starts")
    return repr([await site.rows(f"SELECT * FROM {table}") for table in tables])  # noqa: S608 - names from above


@pytest.mark.requirement("records:prune:spares", "records:log:pruned")
async def test_pruning_removes_what_is_old_and_spares_what_still_answers(site: Site) -> None:
    site.connector.operations = (*site.connector.operations, "session_messages")
    old_read, old_turn = action("session_messages"), action("session_chat")
    keyed = action("session_chat", idempotency_key="for-ever")
    log_reader = caller("agent:example:requester", scopes=frozenset({"*"}))
    async with site.open() as runtime:
        for given in (old_read, old_turn, keyed):
            await site.submit(runtime, given)
        early = (await runtime.records.events(log_reader, limit=1)).next_cursor
        deleted, request = await ask(site, runtime)
        await runtime.decide(decision(request), reviewer())
        site.clock.advance(10 * DAY_MS)
        waiting, _ = await ask(site, runtime, idempotency_key="E", input={"session_id": "s9"})
        recent = action("session_chat")
        await site.submit(runtime, recent)
        before = (await runtime.records.events(log_reader)).next_cursor
    state = await everything(site)
    counted = await pruned(site, age_ms=5 * DAY_MS, dry_run=True)
    assert await everything(site) == state
    assert await pruned(site, age_ms=5 * DAY_MS) == Pruned(rows=counted.rows, dry_run=False)
    assert counted.rows["actions"] == 1
    assert counted.rows["results"] >= 1
    sent = len(site.connector.sends)
    async with site.open() as runtime:
        assert (await runtime.status(old_read.id, requester())).state == "unknown"
        assert await refusal(runtime, old_turn.id) == "action.gone"
        assert erased_of((await site.submit(runtime, old_turn)).output)["reason"] in ("pruned", "deleted", "expired")
        assert (await runtime.status(keyed.id, requester())).state == "completed"
        assert (await runtime.status(waiting.id, requester())).state == "pending_approval"
        assert (await runtime.result(recent.id, requester())).status == "completed"
        assert len(site.connector.sends) == sent
        chain = await runtime.records.receipts(log_reader, chain_id=f"approval:{request.id}")
        assert wire.chain_holds(chain)
        audited = {row["action_id"] for row in await site.rows("SELECT action_id FROM audit")}
        assert {old_read.id, old_turn.id, deleted.id} <= audited
        with pytest.raises(RequestRefused) as refused:
            await runtime.records.events(log_reader, cursor=early)
        assert refused.value.code == "stream.cursor_expired"
        await site.submit(runtime, action("session_chat"))
        more = await runtime.records.events(log_reader, cursor=before)
        assert [event.kind for event in more.events] == ["aip.action.result"]


@pytest.mark.requirement("records:prune:spares", "records:log:pruned")
async def test_pruning_everything_keeps_the_end_of_the_log(site: Site) -> None:
    log_reader = caller("agent:example:requester", scopes=frozenset({"*"}))
    async with site.open() as runtime:
        await site.submit(runtime, action("session_chat"))
        end = (await runtime.records.events(log_reader)).next_cursor
    site.clock.advance(1)
    await pruned(site, age_ms=0)
    async with site.open() as runtime:
        assert (await runtime.records.events(log_reader, cursor=end)).next_cursor == end
        answered = await runtime.submit(action("session_chat"), requester(), MessageContext())
        assert isinstance(answered, wire.ActionResult)
        page = await runtime.records.events(log_reader, cursor=end)
    assert [event.action_id for event in page.events] == [answered.action_id]


@pytest.mark.requirement("records:prune:connector-state")
async def test_what_a_connector_kept_about_a_call_goes_when_that_has_ended_long_ago(site: Site) -> None:
    async def bind(call: Call, state: State) -> Answer:
        await state.compare_and_set(f"run:{call.action_id}", expected=None, value={})
        return Answer(output={})

    site.connector.keeping = bind
    ended, cut = action("session_chat"), action("session_chat")
    async with site.open() as runtime:
        await site.submit(runtime, ended)
        site.clock.advance(10 * DAY_MS)
        site.faults.point = "after_answer"
        with pytest.raises(Crash):
            await site.submit(runtime, cut)
    site.clock.advance(10 * DAY_MS)
    for dry_run in (True, False):
        assert (await pruned(site, age_ms=5 * DAY_MS, dry_run=dry_run)).rows["connector_state"] == 1
    assert await site.rows("SELECT state_key FROM connector_state") == [{"state_key": f"run:{cut.id}"}]
    async with site.open():
        pass
    assert (await pruned(site, age_ms=5 * DAY_MS)).rows["connector_state"] == 1


@pytest.mark.requirement("records:prune:spares")
async def test_an_age_is_no_negative_number(site: Site) -> None:
    with pytest.raises(ValueError, match="age"):
        await pruned(site, age_ms=-1)
