"""What a file of identities keeps, of which calls, and for how long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from aip_hermes.client import CallRecord, ClientFailure, IdentityClash, IdentityStoreFailed, SqliteIdentityStore
from aip_hermes.client.calling import named, with_identities
from aip_hermes.client.identities import endpoint_of
from aip_hermes.ids import ActionId, CapabilityId, HermesSessionId, HermesSessionKey, IdempotencyKey
from tests.support.client_site import ClientSite, cap, client_site, sid
from tests.support.server_site import FixedClock

RECORD = CallRecord(
    action_id=ActionId("act_1"),
    server="http://127.0.0.1:8080",
    capability_id=cap("session_chat"),
    endpoint=endpoint_of(cap("session_chat")),
    idempotency_key=IdempotencyKey("key-1"),
    session_id=HermesSessionId("tab\tid"),
    new_session_id=HermesSessionId("a/b"),
    session_key=HermesSessionKey("memory"),
    content_hash="0" * 64,
    group="case",
    step="first",
)


@pytest.fixture
async def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FixedClock) -> AsyncIterator[SqliteIdentityStore]:
    async with SqliteIdentityStore(tmp_path / "ids.db", clock=clock) as opened:
        yield opened


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[ClientSite]:
    async with client_site(tmp_path) as running:
        await running.endpoint.create("s1")
        yield running


@pytest.mark.requirement("app:identities:kept-first")
async def test_what_is_kept_comes_back_as_it_was(store: SqliteIdentityStore, clock: FixedClock) -> None:
    kept = await store.begin(RECORD)
    now = clock.now_ms()
    assert kept == replace(RECORD, begun_at=now, sent_at=now, updated_at=now)
    assert type(kept.session_id) is HermesSessionId
    async with SqliteIdentityStore(store.path) as another:
        assert await another.call(RECORD.action_id) == kept
        assert await another.open_calls(server=RECORD.server, group="case") == [kept]
        assert await another.open_calls(server="http://elsewhere") == []
        assert await another.open_calls(group="other") == []
        assert await another.call(ActionId("act_2")) is None


@pytest.mark.requirement("app:identities:never-mixed")
@pytest.mark.parametrize("other", [{"content_hash": "1" * 64}, {"server": "http://127.0.0.1:1"}])
async def test_another_call_under_an_action_id_is_refused_and_changes_nothing(
    other: dict[str, str], store: SqliteIdentityStore
) -> None:
    kept = await store.begin(RECORD)
    with pytest.raises(IdentityClash) as caught:
        await store.begin(replace(RECORD, **other))  # type: ignore[arg-type]
    assert caught.value.details["action_id"] == "act_1"
    assert await store.call(RECORD.action_id) == kept


@pytest.mark.requirement("app:identities:kept-first")
@pytest.mark.parametrize(
    ("outcome", "state", "again"),
    [
        ("completed", "settled", "settled"),
        ("connector_failed", "settled", "open"),
        ("uncertain", "uncertain", "open"),
        ("pending", "pending", "open"),
    ],
)
async def test_a_call_that_is_sent_again_is_open_unless_it_completed(
    outcome: str, state: str, again: str, store: SqliteIdentityStore
) -> None:
    await store.begin(RECORD)
    await store.keep_answer(RECORD.action_id, state=state, result={"outcome": outcome})  # type: ignore[arg-type]
    resent = await store.begin(RECORD)
    assert (resent.state, resent.attempts, resent.result) == (again, 2, {"outcome": outcome})


@pytest.mark.requirement("app:identities:kept-first")
async def test_only_calls_with_a_known_end_are_forgotten(store: SqliteIdentityStore, clock: FixedClock) -> None:
    for number, state in enumerate(("settled", "open", "pending", "uncertain", "settled")):
        action_id = ActionId(f"act_{number}")
        if number == 4:
            clock.ms += 1000
        await store.begin(replace(RECORD, action_id=action_id))
        await store.keep_answer(action_id, state=state, result={"outcome": state})  # type: ignore[arg-type]
    assert await store.forget(settled_before_ms=clock.now_ms()) == 1
    assert [record.action_id for record in await store.calls(group="case")] == ["act_1", "act_2", "act_3", "act_4"]


@pytest.mark.requirement("app:identities:no-store-no-send")
async def test_a_closed_store_and_a_text_without_bytes_are_refused(store: SqliteIdentityStore) -> None:
    with pytest.raises(IdentityStoreFailed):
        await store.begin(replace(RECORD, session_id=HermesSessionId("\ud800")))
    await store.aclose()
    with pytest.raises(IdentityStoreFailed):
        await store.begin(RECORD)


@pytest.mark.requirement("app:identities:always-said")
@pytest.mark.parametrize(
    ("input", "session", "new", "key"),
    [
        ({"session_id": "s1", "session_key": "k"}, "s1", None, "k"),
        ({"body": {"session_id": "s1", "id": "n"}}, "s1", "n", None),
        ({"id": "tab\tid"}, None, "tab\tid", None),
        ({"session_id": "", "id": 7, "session_key": " "}, None, None, None),
        ({"session_id": "\ud800"}, None, None, None),
        ("a text", None, None, None),
        (None, None, None, None),
    ],
)
def test_identities_are_read_from_the_input(
    input: object, session: str | None, new: str | None, key: str | None
) -> None:
    found = named(input, action_id=ActionId("act_1"), capability_id=cap("session_fork"), idempotency_key=None)
    assert (found.session_id, found.new_session_id, found.session_key) == (session, new, key)
    other = CapabilityId("cap:other:thing:do")
    assert named(input, action_id=ActionId("act_1"), capability_id=other, idempotency_key=None).new_session_id is None


@pytest.mark.requirement("app:identities:never-mixed")
def test_an_input_of_the_callers_is_never_changed() -> None:
    body: dict[str, object] = {}
    given = {"body": body}
    made = with_identities(given, session_id=sid("s1"), new_session_id=sid("n1"), session_key=None)
    assert (given, body) == ({"body": {}}, {})
    assert made == {"session_id": "s1", "body": {"id": "n1"}}


@pytest.mark.requirement("app:identities:kept-first", "app:answer:survives-store")
async def test_a_repeat_that_fails_takes_no_answer_away(site: ClientSite, store: SqliteIdentityStore) -> None:
    async with site.client(store=store, read_tries=1) as aip:
        first = await aip.call(cap("session_create"), {"body": {"id": "s2"}})
        site.front.cut = "before_sending"
        with pytest.raises(ClientFailure):
            await aip.call(cap("session_create"), {"body": {"id": "s2"}}, action_id=first.action_id)
    record = await store.call(first.action_id)
    assert record is not None
    assert record.result is not None
    assert (record.state, record.attempts, record.result["outcome"]) == ("settled", 2, "completed")
    assert record.result["last_failure"]["code"] == "client.no_answer"


@pytest.mark.requirement("app:wait:decision", "app:reads:typed")
async def test_an_asynchronous_call_is_waited_for_and_can_be_cancelled(
    site: ClientSite, store: SqliteIdentityStore
) -> None:
    async with site.client(store=store) as aip:
        taken = await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"), mode="async")
        assert (taken.outcome, taken.error) == ("pending", None)
        ended = await aip.wait(taken.action_id, timeout_s=60)
        assert ended.completed()["session_id"] == "s1"
        asked = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
        cancelled = await aip.cancel(asked.action_id, reason="not wanted any more")
        assert (cancelled.outcome, cancelled.recorded) == ("cancelled", True)
        assert await aip.open_calls() == []


@pytest.mark.requirement("app:failure:next-step")
async def test_a_decision_whose_answer_is_lost_can_be_found(site: ClientSite) -> None:
    async with site.client() as aip, site.client("reviewer") as reviewer:
        asked = await aip.call(cap("session_delete"), {}, session_id=sid("s1"))
        assert asked.approval_id is not None
        await reviewer.me()
        site.front.cut = "mid_headers"
        with pytest.raises(ClientFailure) as caught:
            await reviewer.decide(asked.approval_id, decision="denied", reason="keep it")
        failed = caught.value
        assert failed.uncertain
        assert failed.details["decision_id"].startswith("decision_")
        assert asked.approval_id in failed.next_step
        assert [each.status for each in (await reviewer.approvals(status="denied")).approvals] == ["denied"]
        assert (await aip.wait(asked.action_id, timeout_s=60)).outcome == "failed"


@pytest.mark.requirement("app:identities:owner-alone")
@pytest.mark.parametrize("there", [False, True])
async def test_a_file_of_identities_belongs_to_its_owner_alone(there: bool, tmp_path: Path) -> None:
    if there:
        (tmp_path / "ids.db").touch(mode=0o644)
    async with SqliteIdentityStore(tmp_path / "ids.db") as store:
        await store.begin(RECORD)
        assert _rights(tmp_path) == {"ids.db": "600", "ids.db-shm": "600", "ids.db-wal": "600"}


def _rights(folder: Path) -> dict[str, str]:
    return {each.name: f"{each.stat().st_mode & 0o777:o}" for each in folder.iterdir()}
