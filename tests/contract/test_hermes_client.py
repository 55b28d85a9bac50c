"""The client of one endpoint: the session routes of an embedded endpoint, and what answers of a stub prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from aip_hermes.client import ClientFailure, HermesRefused, SessionListing
from aip_hermes.ids import HermesSessionId, HermesSessionKey
from tests.support.client_site import sid
from tests.support.client_stub_server import Answer, Request
from tests.support.hermes_clients import SESSION, embedded, stub


@pytest.mark.requirement("endpoint:routes")
async def test_every_session_route_has_its_method(tmp_path: Path) -> None:
    async with embedded(tmp_path) as (hermes, model):
        assert (await hermes.health())["status"] == "ok"
        made = await hermes.create(session_id=sid("s1"), title="One", model="a-model", system_prompt="Be brief.")
        assert (made.id, made.title, made.model, made.has_system_prompt) == ("s1", "One", "a-model", True)
        assert (made.message_count, made.ended_at, made.parent_session_id) == (0, None, None)
        turn = await hermes.chat("first", session_id=sid("s1"), session_key=HermesSessionKey("memory"))
        assert (turn.requested, turn.session_id, turn.content) == ("s1", "s1", "Reply 1")
        assert turn.usage["total_tokens"] == 13
        transcript = await hermes.messages(session_id=sid("s1"))
        assert [(m.role, m.content) for m in transcript.messages] == [("user", "first"), ("assistant", "Reply 1")]
        assert (transcript.session_id, transcript.requested) == ("s1", "s1")
        child = await hermes.fork(session_id=sid("s1"), new_session_id=sid("f1"), title="Branch")
        assert (child.id, child.parent_session_id, child.title) == ("f1", "s1", "Branch")
        assert (await hermes.get(session_id=sid("s1"))).end_reason == "branched"
        renamed = await hermes.patch(session_id=sid("f1"), title="Renamed", end_reason="done")
        assert (renamed.title, renamed.end_reason) == ("Renamed", "done")
        assert (await hermes.patch(session_id=sid("f1"), title=None)).title is None
        assert (await hermes.patch(session_id=sid("f1"), end_reason="later")).end_reason == "done"
        page = await hermes.list_sessions(limit=1)
        assert (len(page.sessions), page.limit, page.offset, page.has_more) == (1, 1, 0, True)
        assert page.sessions[0].last_active is not None
        gone = await hermes.delete(session_id=sid("f1"))
        assert (gone.session_id, gone.deleted) == ("f1", True)
        assert await hermes.find(session_id=sid("f1")) is None
        with pytest.raises(HermesRefused) as caught:
            await hermes.get(session_id=sid("f1"))
        assert (caught.value.hermes_code, caught.value.http_status) == ("session_not_found", 404)
        assert caught.value.details["session_id"] == "f1"
        assert len(model.requests) == 1


@pytest.mark.requirement("endpoint:routes")
@pytest.mark.parametrize(
    "session_id",
    [
        "20260406_164014_74b2d1",
        "Case:7;v=2",
        "a.b-c_d~e",
        "12345",
        "x" * 256,
        "a b",
        "a/b",
        "a?b#c%41&d+e",
        "é中🜁",
        "tab\tid",
    ],
)
async def test_an_id_travels_exactly(session_id: str) -> None:
    def answer(request: Request) -> Answer:
        return Answer(body={"session": {**SESSION, "id": unquote(request.target.rpartition("/")[2])}})

    async with stub(answer) as (hermes, server):
        assert (await hermes.get(session_id=sid(session_id))).id == session_id
        assert "?" not in server.requests[0].target


@pytest.mark.requirement("endpoint:routes")
@pytest.mark.parametrize("session_id", [".", "..", "a\nb", "nul\0", "\ud800"])
async def test_an_id_that_no_path_can_carry_is_not_sent(session_id: str) -> None:
    async with stub(Answer()) as (hermes, server):
        with pytest.raises(ValueError, match="path"):
            await hermes.delete(session_id=HermesSessionId(session_id))
        assert server.requests == []


@pytest.mark.requirement("endpoint:new-ids")
@pytest.mark.parametrize("new_id", ["a/b", "..", "a\\b", "C:x", "x" * 257, " ", "bell\x07"])
async def test_a_bad_new_id_is_not_sent(new_id: str) -> None:
    async with stub(Answer()) as (hermes, server):
        with pytest.raises(ValueError, match="session id"):
            await hermes.create(session_id=HermesSessionId(new_id))
        with pytest.raises(ValueError, match="session id"):
            await hermes.fork(session_id=sid("s1"), new_session_id=HermesSessionId(new_id))
        assert server.requests == []


@pytest.mark.requirement("endpoint:routes")
async def test_requests_carry_what_their_routes_read() -> None:
    def answer(request: Request) -> Answer:
        return Answer(body={"session": SESSION, "message": {"content": "x"}})

    async with stub(answer) as (hermes, server):
        await hermes.create(session_id=sid("s1"))
        await hermes.fork(session_id=sid("s1"), new_session_id=sid("f1"))
        await hermes.patch(session_id=sid("s1"), title=None)
        await hermes.chat(
            [{"type": "text", "text": "hi"}],
            session_id=sid("s1"),
            system_message="Brief.",
            session_key=HermesSessionKey("memory of ada"),
        )
    create, fork, patch, chat = server.requests
    assert (create.json, fork.json, patch.json) == ({"id": "s1"}, {"id": "f1"}, {"title": None})
    assert chat.json == {"message": [{"type": "text", "text": "hi"}], "system_message": "Brief."}
    assert chat.headers["x-hermes-session-key"] == "memory of ada"
    assert ["x-hermes-session-key" in request.headers for request in (create, fork, patch)] == [False] * 3
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer stub-key"}


@pytest.mark.requirement("endpoint:unknown-members")
async def test_members_of_a_newer_release_are_kept() -> None:
    row = {**SESSION, "pinned": True, "_lineage_root_id": "root"}
    message = {"id": 1, "role": "user", "content": "x", "emoji": "🜁"}

    def answer(request: Request) -> Answer:
        if request.path.endswith("/messages"):
            return Answer(body={"data": [message], "session_id": "s1", "page": 1})
        return Answer(body={"session": row, "etag": "e"})

    async with stub(answer) as (hermes, _):
        session = await hermes.get(session_id=sid("s1"))
        assert (session.extra, session.lineage_root_id, session.raw) == ({"pinned": True}, "root", row)
        transcript = await hermes.messages(session_id=sid("s1"))
        assert (transcript.messages[0].extra, transcript.raw["page"]) == ({"emoji": "🜁"}, 1)


@pytest.mark.requirement("endpoint:envelope")
@pytest.mark.parametrize(
    ("method", "body", "member"),
    [
        ("list_sessions", {"sessions": [SESSION]}, "data"),
        ("list_sessions", {"items": []}, "data"),
        ("list_all", {"sessions": [SESSION]}, "data"),
        ("list_sessions", {"data": {"s1": SESSION}}, "data"),
        ("list_sessions", {"data": [{"title": "no id"}]}, "id"),
        ("list_sessions", {"data": [{**SESSION, "message_count": "2"}]}, "message_count"),
        ("list_sessions", {"data": [{**SESSION, "started_at": True}]}, "started_at"),
        ("messages", {"messages": []}, "data"),
        ("messages", {"data": [{"id": "1", "role": "user"}]}, "id"),
        ("get", SESSION, "session"),
    ],
)
async def test_another_envelope_is_a_failure_that_names_the_member(method: str, body: Any, member: str) -> None:
    async with stub(Answer(body=body)) as (hermes, _):
        addressed = {"session_id": sid("s1")} if method in ("messages", "get") else {}
        with pytest.raises(ClientFailure) as caught:
            await getattr(hermes, method)(**addressed)
    assert (caught.value.code, caught.value.uncertain) == ("client.undecodable", False)
    assert f"`{member}`" in caught.value.message


class Listing:
    """A list of ids that a test moves while it is read. before: called before the page of that number."""

    def __init__(self, ids: list[str], **before: Any) -> None:
        self.ids = ids
        self.before = before
        self.pages = 0

    def __call__(self, request: Request) -> Answer:
        self.pages += 1
        self.before.get(f"page_{self.pages}", lambda: None)()
        query = dict(pair.split("=") for pair in request.target.partition("?")[2].split("&"))
        limit, offset = int(query["limit"]), int(query["offset"])
        data = [{**SESSION, "id": each} for each in self.ids[offset : offset + limit]]
        return Answer(body={"data": data, "limit": limit, "offset": offset, "has_more": len(data) == limit})


async def listed(listing: Listing) -> SessionListing:
    async with stub(listing) as (hermes, _):
        return await hermes.list_all(page_size=3)


@pytest.mark.requirement("endpoint:list-all")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 6, 7, 12])
async def test_a_quiet_list_is_read_whole(count: int) -> None:
    ids = [f"s{number}" for number in range(count)]
    found = await listed(Listing(ids))
    assert ([session.id for session in found.sessions], found.changed) == (ids, False)


@pytest.mark.requirement("endpoint:list-all")
@pytest.mark.parametrize("page", ["page_2", "page_3"])
@pytest.mark.parametrize("move", ["last-to-front", "deleted-before", "new-in-front", "deleted-and-new"])
async def test_a_list_that_moves_is_said_to_have_changed(page: str, move: str) -> None:
    ids = [f"s{number}" for number in range(8)]
    listing = Listing(ids)

    def happen() -> None:
        if move.startswith("deleted"):
            ids.pop(0)
        if move == "last-to-front":
            ids.insert(0, ids.pop())
        if move in ("new-in-front", "deleted-and-new"):
            ids.insert(0, "new")

    listing.before = {page: happen}
    found = await listed(listing)
    seen = [session.id for session in found.sessions]
    assert found.changed
    assert len(seen) == len(set(seen))
    assert found.pages == listing.pages < 8
    if move != "deleted-before":
        assert set(seen) >= set(ids)


@pytest.mark.requirement("endpoint:list-all")
async def test_a_row_that_vanishes_from_the_middle_is_noticed() -> None:
    """Neither the first page nor any id tells: the rows behind it have moved up, and one was passed over."""
    ids = [f"s{number}" for number in range(8)]
    found = await listed(Listing(ids, page_3=lambda: ids.remove("s3")))
    assert found.changed


@pytest.mark.requirement("endpoint:list-all")
async def test_an_endpoint_that_pages_otherwise_is_refused_or_ends() -> None:
    rows = [{**SESSION, "id": f"s{number}"} for number in range(3)]
    async with stub(Answer(body={"data": rows, "limit": 3, "offset": 0, "has_more": True})) as (hermes, server):
        with pytest.raises(ClientFailure, match="offset"):
            await hermes.list_all(page_size=3)
        assert len(server.requests) == 2
    async with stub(Answer(body={"data": rows, "has_more": True})) as (hermes, server):
        found = await hermes.list_all(page_size=3)
        assert (len(found.sessions), found.changed) == (3, True)
        assert len(server.requests) == 3


@pytest.mark.requirement("endpoint:list-all")
async def test_a_turn_between_two_pages_is_seen_at_a_real_endpoint(tmp_path: Path) -> None:
    async with embedded(tmp_path) as (hermes, _):
        for number in range(6):
            await hermes.create(session_id=sid(f"s{number}"))
        found = await hermes.list_all(page_size=3)
        assert ({session.id for session in found.sessions}, found.changed) == ({f"s{n}" for n in range(6)}, False)
        read, pages = hermes.list_sessions, 0

        async def with_a_turn(**query: Any) -> Any:
            nonlocal pages
            pages += 1
            if pages == 2:
                await hermes.chat("hi", session_id=found.sessions[-1].id)
            return await read(**query)

        hermes.list_sessions = with_a_turn  # type: ignore[method-assign]
        again = await hermes.list_all(page_size=3)
        assert ({session.id for session in again.sessions}, again.changed) == ({f"s{n}" for n in range(6)}, True)
