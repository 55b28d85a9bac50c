"""What a call does when store, server or network fail: what leaves, what is kept, what the caller is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import (
    AipClient,
    CallRecord,
    CallState,
    ClientFailure,
    IdentityStoreFailed,
    NoAnswer,
    SqliteIdentityStore,
)
from aip_hermes.contract import Published
from aip_hermes.ids import ActionId, CapabilityId, HermesSessionId, HermesSessionKey, IdempotencyKey
from tests.support import client_answers as answers
from tests.support.client_site import cap, sid
from tests.support.client_stub_server import Answer, Request, StubServer, running_stub
from tests.support.contract_offers import endpoint_offers
from tests.support.server_site import FixedClock

CATALOGUE = {offer.capability_id: Published.of(offer).wire() for offer in endpoint_offers("primary")}

Posted = Callable[[Request], Answer]


def catalogue(request: Request) -> Answer:
    """Answer a read of the catalogue by one capability's id."""
    _, _, query = request.target.partition("?")
    wanted = dict(pair.split("=") for pair in query.split("&"))["capability_id"].replace("%3A", ":")
    found = [CATALOGUE[CapabilityId(wanted)]] if wanted in CATALOGUE else []
    return Answer(body={"catalog_revision": 1, "capabilities": found, "next_cursor": None, "total": len(found)})


@asynccontextmanager
async def stub(
    posted: Posted, *, read: Posted | None = None, **options: Any
) -> AsyncIterator[tuple[AipClient, StubServer]]:
    """Serve the catalogue; messages are answered by `posted`, further reads by `read`."""

    def answer(request: Request) -> Answer:
        if request.method == "POST":
            return posted(request)
        return catalogue(request) if request.path.endswith("/capabilities") else (read or answers.read_routes)(request)

    with running_stub(answer) as server:
        async with AipClient(base_url=server.url, clock=FixedClock(), **options) as client:
            yield client, server


def done(request: Request) -> Answer:
    return answers.reply_with(answers.completed({"ok": True}), request)


class Kept:
    """A store in memory that keeps the order of what happens. refuse: methods that fail."""

    def __init__(self, *refuse: str) -> None:
        self.refuse = refuse
        self.log: list[str] = []
        self.records: dict[str, CallRecord] = {}

    async def begin(self, record: CallRecord) -> CallRecord:
        self._do("begin")
        return self.records.setdefault(record.action_id, record)

    async def keep_answer(self, action_id: ActionId, *, state: CallState, result: Mapping[str, Any]) -> None:
        self._do(f"keep_answer {state}")

    async def call(self, action_id: ActionId) -> CallRecord | None:
        return self.records.get(action_id)

    async def open_calls(self, **_: object) -> list[CallRecord]:
        return list(self.records.values())

    async def calls(self, *, group: str) -> list[CallRecord]:
        return []

    async def remember(self, *, group: str, name: str, value: Any) -> None:
        self._do("remember")

    async def remember_first(self, *, group: str, name: str, value: Any) -> Any:
        self._do("remember_first")
        return value

    async def recall(self, *, group: str) -> dict[str, Any]:
        return {}

    def _do(self, what: str) -> None:
        if what.split()[0] in self.refuse:
            raise IdentityStoreFailed("the disk is full")
        self.log.append(what)


@pytest.mark.requirement("app:identities:kept-first")
async def test_the_identities_are_kept_before_the_first_byte_leaves() -> None:
    kept = Kept()

    def posted(request: Request) -> Answer:
        kept.log.append("arrived")
        return done(request)

    async with stub(posted, store=kept) as (aip, _):
        result = await aip.call(cap("session_create"), {"body": {"id": "s1"}})
    assert kept.log == ["begin", "arrived", "keep_answer settled"]
    assert result.recorded


@pytest.mark.requirement("app:identities:no-store-no-send")
@pytest.mark.parametrize("place", ["foreign", "in-the-way", "read-only"])
async def test_a_file_that_takes_nothing_down_stops_the_call(place: str, tmp_path: Path) -> None:
    paths = {
        "foreign": tmp_path / "foreign.db",
        "in-the-way": tmp_path / "foreign.db" / "identities.db",
        "read-only": Path("/proc/identities.db"),
    }
    (tmp_path / "foreign.db").write_bytes(b"no database of ours\n" * 100)
    async with SqliteIdentityStore(paths[place]) as store, stub(done, store=store) as (aip, server):
        with pytest.raises(IdentityStoreFailed) as caught:
            await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"))
        assert server.posts == []
    failed = caught.value
    assert (failed.code, failed.uncertain, failed.retryable) == ("client.identity_store", False, False)
    assert str(paths[place]) in failed.message
    assert failed.next_step != ""
    assert failed.identities is not None
    assert failed.identities.session_id == "s1"
    assert (tmp_path / "foreign.db").read_bytes() == b"no database of ours\n" * 100


@pytest.mark.requirement("app:identities:no-store-no-send")
async def test_a_safe_read_needs_no_store() -> None:
    async with stub(done, store=Kept("begin")) as (aip, server):
        assert (await aip.call(cap("sessions_list"), {"limit": 5})).completed() == {"ok": True}
        assert len(server.posts) == 1


@pytest.mark.requirement("app:answer:survives-store")
async def test_an_answer_that_can_not_be_kept_is_returned(tmp_path: Path) -> None:
    kept = Kept("keep_answer")
    async with stub(done, store=kept) as (aip, _):
        result = await aip.call(cap("session_create"), {"body": {"id": "s1"}})
        assert (result.completed(), result.recorded) == ({"ok": True}, False)
        assert [record.action_id for record in await aip.open_calls()] == [result.action_id]


@pytest.mark.requirement("app:call:reads-repeated-only", "app:failure:next-step", "app:identities:always-said")
@pytest.mark.parametrize(
    ("answer", "code", "uncertain"),
    [
        (Answer(fate="cut"), "client.no_answer", True),
        (Answer(fate="torn"), "client.no_answer", True),
        (Answer(status=502, body=b"<html>"), "client.http_failed", True),
        (Answer(body=b"no json"), "client.undecodable", True),
        (Answer(status=404, body=b"no such page"), "client.http_failed", False),
        (answers.refused("action.input_schema_invalid", "permanent", 400), "action.input_schema_invalid", False),
        (answers.refused("server.busy", "temporary", 503, retry_after_ms=10), "server.busy", False),
    ],
)
@pytest.mark.parametrize("with_store", [True, False])
async def test_a_consequential_call_leaves_once(
    answer: Answer, code: str, uncertain: bool, with_store: bool, tmp_path: Path
) -> None:
    async with (
        SqliteIdentityStore(tmp_path / "ids.db") as store,
        stub(lambda _: answer, store=store if with_store else None) as (aip, server),
    ):
        with pytest.raises(ClientFailure) as caught:
            await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"))
        assert len(server.posts) == 1
        failed = caught.value
        assert (failed.code, failed.uncertain) == (code, uncertain)
        identities = failed.identities
        assert identities is not None
        sent = server.posts[0].json["body"]["action"]
        assert (sent["id"], sent["idempotency_key"]) == (identities.action_id, identities.idempotency_key)
        assert not uncertain or identities.action_id in failed.next_step
        if with_store:
            # A certain failure settles the call; a lost answer leaves it to be looked up.
            assert [record.state for record in await aip.open_calls()] == (["open"] if uncertain else [])
            record = await store.call(identities.action_id)
            assert record is not None
            assert record.result is not None
            assert record.result["error"]["code"] == code


@pytest.mark.requirement("app:call:reads-repeated-only")
@pytest.mark.parametrize(
    ("first", "sends"),
    [
        (Answer(fate="cut"), 3),
        (Answer(status=503, body=b"away"), 3),
        (answers.refused("server.busy", "temporary", 503, retryable=True, retry_after_ms=10), 3),
        (answers.refused("server.busy", "temporary", 503, retryable=True, retry_after_ms=60_000), 1),
        (answers.refused("auth.not_authorized", "auth", 403), 1),
        (Answer(body=b"no json"), 1),
    ],
)
async def test_a_safe_read_is_tried_again_as_the_same_action(first: Answer, sends: int) -> None:
    def posted(request: Request) -> Answer:
        return done(request) if len(server.posts) == 3 else first

    async with stub(posted) as (aip, server):
        if sends == 3:
            assert (await aip.call(cap("session_get"), {}, session_id=sid("s1"))).completed() == {"ok": True}
        else:
            with pytest.raises(ClientFailure) as caught:
                await aip.call(cap("session_get"), {}, session_id=sid("s1"))
            assert caught.value.uncertain is False
        assert len(server.posts) == sends
        assert len({request.json["body"]["action"]["id"] for request in server.posts}) == 1
        assert len({request.json["message_id"] for request in server.posts}) == sends


@pytest.mark.requirement("app:call:reads-repeated-only")
async def test_what_no_catalogue_shows_is_taken_for_consequential() -> None:
    kept = Kept()
    unknown = CapabilityId("cap:other:thing:do")
    async with stub(lambda _: Answer(fate="cut"), store=kept) as (aip, server):
        with pytest.raises(NoAnswer):
            await aip.call(unknown, {"id": "x"})
        assert (len(server.posts), kept.log[0]) == (1, "begin")
    [record] = kept.records.values()
    assert (record.endpoint, record.new_session_id) == (None, None)


@pytest.mark.requirement("app:call:time")
async def test_an_answer_is_given_up_after_the_callers_time_and_is_uncertain() -> None:
    async with stub(lambda _: Answer(fate="never"), call_timeout_s=0.2) as (aip, server):
        with pytest.raises(NoAnswer) as caught:
            await aip.call(cap("session_create"), {"body": {"id": "s1"}})
        assert caught.value.uncertain is True
        with pytest.raises(NoAnswer):
            await aip.call(cap("session_create"), {"body": {"id": "s2"}}, timeout_s=0.1)
        assert len(server.posts) == 2


@pytest.mark.requirement("app:call:time")
async def test_without_a_time_of_the_caller_the_capability_says_how_long() -> None:
    async with stub(done) as (aip, _):
        await aip.call(cap("session_create"), {"body": {"id": "s1"}})
        contract = await aip.contract(cap("session_create"))
        assert contract is not None
        assert contract.sla is not None
        published_ms = (contract.sla.timeout_ms or 0) + (contract.sla.max_queue_delay_ms or 0)
        assert aip._answer_within(cap("session_create")) == published_ms / 1000 + 30 > 60


@pytest.mark.requirement("app:identities:never-mixed")
@pytest.mark.parametrize(
    ("input", "given"),
    [
        ({"session_id": "s2"}, {"session_id": sid("s1")}),
        ({"session_key": "k2"}, {"session_key": HermesSessionKey("k1")}),
        ({"body": {"id": "s2"}}, {"new_session_id": sid("s1")}),
        ({"id": "s2"}, {"new_session_id": sid("s1")}),
        ("a text", {"session_id": sid("s1")}),
        ([1], {"new_session_id": sid("s1")}),
    ],
)
async def test_an_identity_that_contradicts_the_input_is_refused(input: Any, given: dict[str, Any]) -> None:
    async with stub(done) as (aip, server):
        with pytest.raises(ValueError, match=r"input"):
            await aip.call(cap("session_fork"), input, **given)
        assert server.requests == []


@pytest.mark.requirement("app:identities:never-mixed")
async def test_identities_stand_in_their_places_of_the_input() -> None:
    kept = Kept()
    async with stub(done, store=kept) as (aip, server):
        await aip.call(
            cap("session_fork"),
            {"body": {"title": "T"}},
            session_id=sid("s1"),
            new_session_id=sid("f1"),
            session_key=HermesSessionKey("memory"),
            idempotency_key=IdempotencyKey("k"),
        )
        [sent] = [request.json["body"]["action"] for request in server.posts]
    assert sent["input"] == {
        "session_id": "s1",
        "session_key": "memory",
        "body": {"title": "T", "id": "f1"},
    }
    assert sent["idempotency_key"] == "k"
    [record] = kept.records.values()
    assert (record.session_id, record.new_session_id, record.session_key) == ("s1", "f1", "memory")
    assert isinstance(record.new_session_id, HermesSessionId)
    assert "memory" not in repr(record)
    assert "memory" not in repr(record.identities)


@pytest.mark.requirement("app:result:typed", "app:resume:asks")
async def test_a_repeat_of_what_still_runs_is_pending() -> None:
    running = answers.failed(
        "idempotency.in_progress", retryable=True, details={"owner_action_id": "act_owner"}, category="temporary"
    )
    kept = Kept()
    async with stub(lambda request: answers.reply_with(running, request), store=kept) as (aip, _):
        result = await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"))
    assert (result.outcome, kept.log[-1]) == ("pending", "keep_answer pending")
    assert "act_owner" in result.next_step


@pytest.mark.requirement("app:result:typed")
async def test_an_uncertain_result_is_kept_as_such(tmp_path: Path) -> None:
    lost = answers.failed("connector.hermes_agent.transport_failed", uncertain=True)
    async with (
        SqliteIdentityStore(tmp_path / "ids.db") as store,
        stub(lambda request: answers.reply_with(lost, request), store=store) as (aip, _),
    ):
        result = await aip.call(cap("session_chat"), {"message": "hi"}, session_id=sid("s1"))
        assert (result.outcome, result.error and result.error.uncertain) == ("uncertain", True)
        [record] = await aip.open_calls()
    assert (record.action_id, record.state) == (result.action_id, "uncertain")


@pytest.mark.requirement("app:reads:named-member")
@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("me", {"principal": {"id": "human:a", "kind": "human"}}, "scopes"),
        ("me", {"principal": {"kind": "human"}, "scopes": []}, "id"),
        ("capabilities", {"capabilities": [{"name": "x"}]}, "capability"),
        ("approvals", {"approval_list": {"items": []}}, "approvals"),
        ("approvals", {"approval_list": {"approvals": [{"status": "pending"}]}}, "request"),
        ("events", {"action_events": {"action_id": "act_1", "items": []}}, "events"),
        ("status", {"action_status": {"action_id": "act_1"}}, "state"),
        ("result", {"action_result": {"action_id": "act_1"}}, "status"),
    ],
)
async def test_a_missing_member_is_named(path: str, body: Any, member: str) -> None:
    with running_stub(lambda _: Answer(body=body)) as server:
        async with AipClient(base_url=server.url, clock=FixedClock()) as aip:
            reads: dict[str, Callable[[], Any]] = {
                "me": aip.me,
                "capabilities": aip.capabilities,
                "approvals": aip.approvals,
                "events": lambda: aip.events(ActionId("act_1")),
                "status": lambda: aip.status(ActionId("act_1")),
                "result": lambda: aip.result(ActionId("act_1")),
            }
            with pytest.raises(ClientFailure) as caught:
                await reads[path]()
    assert (caught.value.code, caught.value.uncertain) == ("client.undecodable", False)
    assert f"`{member}`" in caught.value.message


@pytest.mark.requirement("app:reads:typed")
async def test_what_is_not_known_stays_in_raw() -> None:
    body = {"principal": {"id": "human:a:b", "kind": "human"}, "tenant_id": None, "scopes": ["x"], "newer": 1}
    with running_stub(lambda _: Answer(body=body)) as server:
        async with AipClient(base_url=server.url) as aip:
            me = await aip.me()
    assert (me.raw["newer"], me.tenant_id) == (1, None)


@pytest.mark.requirement("app:wait:decision")
async def test_waiting_does_not_hurry_a_server_that_does_not_wait() -> None:
    looks = 0

    def read(request: Request) -> Answer:
        nonlocal looks
        if request.path.endswith("/result"):
            return Answer(body=answers.completed({"ok": True}))
        looks += 1
        state = "completed" if looks == 5 else "running"
        status = {"action_id": "act_1", "state": state, "updated_at": "2030-01-01T00:00:00Z"}
        return Answer(body={"action_status": status})

    async with stub(done, read=read) as (aip, _):
        started = aip._clock.now_ms()
        async with asyncio.timeout(30):
            assert (await aip.wait(ActionId("act_1"), timeout_s=60)).completed() == {"ok": True}
        assert aip._clock.now_ms() - started >= 400
