"""The session routes: bodies, status numbers and codes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aip_hermes.embedded import SessionDB
from aip_hermes.embedded.api.app import ROUTES
from aip_hermes.hermes_api import SESSION_FIELDS
from tests.support.embedded_endpoint import SESSION_ROUTES, SteppingClock, code_of, endpoint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Invalid JSON in request body"),
        (b"{", "Invalid JSON in request body"),
        (b"\xff", "Invalid JSON in request body"),
        (b"[" * 100_000, "Invalid JSON in request body"),
        (b"9" * 5000, "Invalid JSON in request body"),
        (b"[]", "Request body must be a JSON object"),
        (b'"x"', "Request body must be a JSON object"),
    ],
)
@pytest.mark.requirement("embedded:api:body")
async def test_a_body_that_is_no_object_is_400_without_a_code(tmp_path: Path, content: bytes, message: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        for method, path in SESSION_ROUTES:
            if method in ("POST", "PATCH"):
                answer = await hermes.client.request(method, path, content=content)
                assert answer.status_code == 400
                assert answer.json()["error"] == {
                    "message": message, "type": "invalid_request_error", "param": None, "code": None
                }  # fmt: skip


@pytest.mark.requirement("embedded:api:body")
async def test_a_large_body_is_refused_before_the_key(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        headers = {"Authorization": "Bearer wrong", "Content-Length": "10000001"}
        answer = await hermes.client.post("/api/sessions", headers=headers, content=b"{}")
        assert code_of(answer) == (413, "body_too_large")

        async def chunks() -> Any:
            for _ in range(101):
                yield b" " * 100_000

        answer = await hermes.client.post("/api/sessions", content=chunks())
        assert code_of(answer) == (400, None)


@pytest.mark.requirement("embedded:create:prompt", "hermes_api:session:whitelist")
async def test_create_answers_the_whole_session_object(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await hermes.client.post(
            "/api/sessions",
            json={"id": "case-1", "title": "Case one", "system_prompt": "secret prompt", "source": "x", "user_id": "y"},
        )
        body = answer.json()

        assert answer.status_code == 201
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        started_at = body["session"].pop("started_at")
        assert isinstance(started_at, float)
        assert body == {
            "object": "hermes.session",
            "session": {
                "id": "case-1", "source": "api_server", "user_id": None, "model": "hermes-agent", "title": "Case one",
                "ended_at": None, "end_reason": None, "message_count": 0, "tool_call_count": 0, "input_tokens": 0,
                "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0,
                "estimated_cost_usd": None, "actual_cost_usd": None, "api_call_count": 0, "parent_session_id": None,
                "has_system_prompt": True, "has_model_config": False,
            },
        }  # fmt: skip
        assert tuple(await hermes.session("case-1")) == SESSION_FIELDS
        assert "secret prompt" not in (await hermes.client.get("/api/sessions")).text


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ({"id": " padded "}, "padded"),
        ({"id": "", "session_id": "alias"}, "alias"),
        ({"id": "wins", "session_id": "alias"}, "wins"),
        ({"id": 42}, "42"),
        ({"id": ["x"]}, "['x']"),
        ({"id": "tab\tinside"}, "tab\tinside"),
        ({"id": "?#% 漢🙂"}, "?#% 漢🙂"),
        ({"id": "i" * 256}, "i" * 256),
    ],
)
@pytest.mark.requirement("embedded:create:ids", "embedded:api:raw-path")
async def test_created_ids_can_be_read_back(tmp_path: Path, body: dict[str, Any], stored: str) -> None:
    async with endpoint(tmp_path) as hermes:
        answer = await hermes.client.post("/api/sessions", json=body)
        assert answer.json()["session"]["id"] == stored

        path = "/api/sessions/" + "".join(f"%{byte:02X}" for byte in stored.encode())
        assert (await hermes.client.get(path)).json()["session"]["id"] == stored


@pytest.mark.parametrize("body", [{}, {"id": None}, {"id": ""}, {"id": 0}])
@pytest.mark.requirement("embedded:create:ids")
async def test_an_id_is_made_where_none_is_given(tmp_path: Path, body: dict[str, Any]) -> None:
    async with endpoint(tmp_path) as hermes:
        session_id = (await hermes.client.post("/api/sessions", json=body)).json()["session"]["id"]
        kind, seconds, random = session_id.split("_")

        assert (kind, len(random)) == ("api", 8)
        assert int(seconds) > 1_700_000_000
        assert int(random, 16) >= 0


@pytest.mark.parametrize("session_id", ["   ", "a\nb", "a\0b", "a..b", "a/b", "a\\b", "C:x", "i" * 257, "a\ud800"])
@pytest.mark.requirement("embedded:create:ids", "embedded:fork:ids")
async def test_unsafe_ids_are_refused_by_create_and_fork_alike(tmp_path: Path, session_id: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("s")
        content = json.dumps({"id": session_id})
        for path in ("/api/sessions", "/api/sessions/s/fork"):
            answer = await hermes.client.post(path, content=content)
            assert code_of(answer) == (400, "invalid_session_id")
        assert (await hermes.session("s"))["ended_at"] is None


@pytest.mark.requirement("embedded:create:titles", "hermes_api:title:cleaning")
async def test_titles_of_101_are_refused_everywhere_and_100_pass(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a", title="🙂" * 100 + "\u200b")
        refused = [
            await hermes.client.post("/api/sessions", json={"id": "b", "title": "t" * 101}),
            await hermes.client.patch("/api/sessions/a", json={"title": "t" * 101, "end_reason": "done"}),
            await hermes.client.post("/api/sessions/a/fork", json={"id": "b", "title": "t" * 101}),
            await hermes.client.post("/api/sessions/a/fork", json={"id": "b"}),
        ]

        assert [code_of(answer) for answer in refused] == [(400, "invalid_title")] * 4
        assert (await hermes.client.get("/api/sessions/b")).status_code == 404
        assert (await hermes.session("a"))["ended_at"] is None


@pytest.mark.requirement("embedded:create:titles", "embedded:store:titles")
async def test_a_title_in_use_names_its_holder_and_leaves_no_row(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a", title="T")
        answer = await hermes.client.post("/api/sessions", json={"id": "b", "title": "T"})

        assert code_of(answer) == (400, "invalid_title")
        assert answer.json()["error"]["message"] == "Title 'T' is already in use by session a"
        assert (await hermes.client.get("/api/sessions/b")).status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [({"system_prompt": {"a": 1}}, "invalid_system_prompt"), ({"system_prompt": 5}, "invalid_system_prompt")],
)
@pytest.mark.requirement("embedded:create:prompt")
async def test_a_prompt_that_is_no_text_is_refused(tmp_path: Path, body: dict[str, Any], code: str) -> None:
    async with endpoint(tmp_path) as hermes:
        assert code_of(await hermes.client.post("/api/sessions", json={"id": "s", **body})) == (400, code)


@pytest.mark.requirement("embedded:create:atomic")
async def test_of_twenty_creates_of_one_id_one_wins_and_of_one_title_too(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes, asyncio.timeout(30):
        same_id = await asyncio.gather(*(hermes.client.post("/api/sessions", json={"id": "dup"}) for _ in range(20)))
        same_title = await asyncio.gather(
            *(hermes.client.post("/api/sessions", json={"id": f"t{n}", "title": "T"}) for n in range(20))
        )

        assert Counter(answer.status_code for answer in same_id) == {201: 1, 409: 19}
        assert {code_of(a)[1] for a in same_id if a.status_code == 409} == {"session_exists"}
        assert Counter(answer.status_code for answer in same_title) == {201: 1, 400: 19}
        assert len((await hermes.client.get("/api/sessions")).json()["data"]) == 2


@pytest.mark.parametrize(
    "path", ["/api/sessions/none", "/api/sessions/CASE-1", "/api/sessions/a%2Fb", "/api/sessions/%FF"]
)
@pytest.mark.requirement("embedded:api:raw-path")
async def test_an_unknown_id_is_404_on_every_route(tmp_path: Path, path: str) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("case-1")
        for method, rest in [
            ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/fork"), ("POST", "/chat")
        ]:  # fmt: skip
            answer = await hermes.client.request(method, path + rest, content=b"no json")
            assert code_of(answer) == (404, "session_not_found")


@pytest.mark.requirement("embedded:api:raw-path")
async def test_an_id_with_an_encoded_slash_is_one_segment(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.db.create_session("a/../b", "api_server")
        await hermes.db.create_session("a%2Fb", "api_server")

        for spelled, session_id in [("a%2F..%2Fb", "a/../b"), ("a%2f..%2fb", "a/../b"), ("a%252Fb", "a%2Fb")]:
            assert (await hermes.client.get(f"/api/sessions/{spelled}")).json()["session"]["id"] == session_id
        answer = await hermes.client.get("/api/sessions/a%2F..%2Fb/messages")
        assert answer.json() == {"object": "list", "session_id": "a/../b", "data": []}


@pytest.mark.requirement("embedded:list:page")
async def test_lists_are_ordered_by_activity_and_say_when_a_page_is_full(tmp_path: Path) -> None:
    async with endpoint(tmp_path, clock=SteppingClock()) as hermes:
        for name in ("a", "b", "c"):
            await hermes.create(name)
        await hermes.chat("a", "first\nline " + "x" * 60)

        page = (await hermes.client.get("/api/sessions?limit=2")).json()
        rest = (await hermes.client.get("/api/sessions?limit=2&offset=2")).json()

        assert (page["object"], page["limit"], page["offset"], page["has_more"]) == ("list", 2, 0, True)
        assert [row["id"] for row in page["data"]] == ["a", "c"]
        assert page["data"][0]["preview"] == "first line " + "x" * 49 + "..."
        assert page["data"][1]["preview"] == ""
        assert page["data"][1]["last_active"] == page["data"][1]["started_at"]
        assert page["data"][0]["last_active"] > page["data"][1]["last_active"]
        assert set(page["data"][0]) == {*SESSION_FIELDS, "last_active", "preview"}
        assert ([row["id"] for row in rest["data"]], rest["has_more"]) == (["b"], False)


@pytest.mark.parametrize(
    ("query", "limit", "offset", "has_more"),
    [
        ("", 50, 0, False),
        ("limit=5000&offset=99999999", 200, 1_000_000, False),
        ("limit=-1&offset=-5", 50, 0, False),
        ("limit=x&offset=1.5", 50, 0, False),
        ("limit=0", 0, 0, True),
        ("limit=1&unknown=y", 1, 0, True),
        ("limit=" + "9" * 5000, 50, 0, False),
        ("limit=" + "9" * 26, 200, 0, False),
        ("limit=2&limit=3&offset=1&offset=2", 2, 1, False),
    ],
)
@pytest.mark.requirement("embedded:list:page")
async def test_page_numbers_fall_back_and_are_capped(
    tmp_path: Path, query: str, limit: int, offset: int, has_more: bool
) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a")
        page = (await hermes.client.get(f"/api/sessions?{query}")).json()

        assert (page["limit"], page["offset"], page["has_more"]) == (limit, offset, has_more)


@pytest.mark.requirement("embedded:list:page", "embedded:list:projection")
async def test_children_and_sources_are_listed_on_request(tmp_path: Path) -> None:
    async with endpoint(tmp_path, clock=SteppingClock()) as hermes:
        await hermes.create("root")
        await hermes.db.create_session("next", "cron", parent_session_id="root")
        await hermes.db.end_session("root", "compression")

        async def ids(query: str) -> list[str]:
            return [row["id"] for row in (await hermes.client.get(f"/api/sessions?{query}")).json()["data"]]

        assert await ids("") == ["next"]
        assert await ids("include_children=YES") == ["next", "root"]
        assert await ids("include_children=0") == ["next"]
        assert await ids("include_children=on&source=cron") == ["next"]
        projected = (await hermes.client.get("/api/sessions")).json()["data"][0]
        assert projected["_lineage_root_id"] == "root"


@pytest.mark.requirement("embedded:change:rules")
async def test_changes_apply_title_and_the_first_end_reason(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a", title="T")

        async def change(body: dict[str, Any]) -> dict[str, Any]:
            answer = await hermes.client.patch("/api/sessions/a", json=body)
            assert answer.status_code == 200
            session: dict[str, Any] = answer.json()["session"]
            return session

        assert (await change({}))["title"] == "T"
        assert (await change({"end_reason": ""}))["ended_at"] is None
        ended = await change({"title": 7, "end_reason": "one"})
        assert (ended["title"], ended["end_reason"]) == ("7", "one")
        again = await change({"end_reason": "two", "title": None})
        assert (again["title"], again["end_reason"], again["ended_at"]) == (None, "one", ended["ended_at"])
        assert (await change({"end_reason": None}))["ended_at"] == ended["ended_at"]


@pytest.mark.requirement("embedded:change:rules")
async def test_an_unknown_field_or_a_bad_title_changes_nothing_after_it(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a", title="T")
        await hermes.create("b", title="U")
        unknown = await hermes.client.patch("/api/sessions/a", json={"title": "new", "model": "x"})
        taken = await hermes.client.patch("/api/sessions/a", json={"title": "U", "end_reason": "done"})

        assert code_of(unknown) == (400, "unsupported_session_field")
        assert "model" in unknown.json()["error"]["message"]
        assert code_of(taken) == (400, "invalid_title")
        row = await hermes.session("a")
        assert (row["title"], row["ended_at"]) == ("T", None)


@pytest.mark.requirement("embedded:delete:answer", "embedded:store:delete")
async def test_a_delete_is_final_and_keeps_the_fork(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        await hermes.create("a")
        await hermes.chat("a")
        await hermes.client.post("/api/sessions/a/fork", json={"id": "f"})

        first = await hermes.client.request("DELETE", "/api/sessions/a", content=b"ignored")
        second = await hermes.client.delete("/api/sessions/a")

        assert (first.status_code, first.json()) == (
            200, {"object": "hermes.session.deleted", "id": "a", "deleted": True}
        )  # fmt: skip
        assert code_of(second) == (404, "session_not_found")
        assert (await hermes.session("f"))["parent_session_id"] is None
        assert len((await hermes.messages("f"))[1]) == 2
        await hermes.create("a")
        assert (await hermes.messages("a"))[1] == []


@pytest.mark.requirement("embedded:delete:answer")
async def test_two_deletes_at_once_are_one_delete_and_one_404(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes, asyncio.timeout(30):
        await hermes.create("a")
        answers = await asyncio.gather(*(hermes.client.delete("/api/sessions/a") for _ in range(2)))

        assert sorted((a.status_code, a.json().get("deleted")) for a in answers) in (
            [(200, False), (200, True)],
            [(200, True), (404, None)],
        )


@pytest.mark.requirement("embedded:store:unavailable")
async def test_a_store_that_cannot_be_opened_is_503_and_health_answers(tmp_path: Path) -> None:
    (tmp_path / "hermes.db").write_bytes(b"this is no database, but it is long enough to be looked at " * 40)
    async with endpoint(tmp_path, db=SessionDB(tmp_path / "hermes.db")) as hermes:
        for method, path in SESSION_ROUTES:
            answer = await hermes.client.request(method, path, json={"id": "s", "message": "m"})
            assert code_of(answer) == (503, "session_db_unavailable")
        assert (await hermes.client.get("/health")).json()["status"] == "ok"
        detailed = (await hermes.client.get("/health/detailed")).json()
        assert (detailed["status"], detailed["readiness"]["checks"]["state_db"]["status"]) == (
            "degraded",
            "unavailable",
        )


@pytest.mark.requirement("embedded:reads:shapes")
async def test_the_small_reads_have_their_shapes(tmp_path: Path) -> None:
    async with endpoint(tmp_path) as hermes:
        assert (await hermes.client.get("/health")).json() == (await hermes.client.get("/v1/health")).json()
        assert (await hermes.client.get("/health")).json()["status"] == "ok"
        detailed = (await hermes.client.get("/health/detailed")).json()
        models = (await hermes.client.get("/v1/models")).json()
        capabilities = (await hermes.client.get("/v1/capabilities")).json()

        assert detailed["status"] == "ok"
        assert set(detailed["readiness"]["checks"]) == {"state_db", "model", "disk", "gateway", "background_queues"}
        assert (models["object"], [m["id"] for m in models["data"]]) == ("list", ["hermes-agent"])
        assert capabilities["object"] == "hermes.api_server.capabilities"
        assert {n for n, on in capabilities["features"].items() if on is False} == {
            "admin_config_rw", "memory_write_api", "audio_api", "realtime_voice", "cors"
        }  # fmt: skip
        listed = {(route["method"], route["path"]) for route in capabilities["endpoints"].values()}
        here = {(method, path) for path, methods in ROUTES.items() for method in methods}
        assert here - listed == {("GET", "/v1/health"), ("GET", "/v1/capabilities")}
        assert listed <= here
