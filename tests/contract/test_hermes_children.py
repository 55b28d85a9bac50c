"""What a delete of a session would orphan or take along, read from an endpoint's listing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from aip_hermes.errors import ActionFailed
from aip_hermes.hermes.children import MAX_IDS, MAX_PAGES, PAGE
from aip_hermes.secret import Secret
from tests.support.embedded_endpoint import KEY as EMBEDDED_KEY
from tests.support.embedded_endpoint import served
from tests.support.hermes_calls import call_of, connector_of, endpoint_of, handler_of
from tests.support.hermes_stub import Arrived, Reply, StubEndpoint, reply_error, reply_json, row_of


def family(parents: dict[str, tuple[str | None, str]]) -> list[dict[str, Any]]:
    """Return rows: id → (parent, source)."""
    return [row_of(name, parent_session_id=parent, source=source) for name, (parent, source) in parents.items()]


async def context_of(rows: list[dict[str, Any]]) -> tuple[dict[str, Any], StubEndpoint]:
    async with StubEndpoint() as stub:

        def listing(request: Arrived) -> Reply:
            asked = parse_qs(urlsplit(request.target).query)
            assert asked["include_children"] == ["true"]
            start, size = int(asked["offset"][0]), int(asked["limit"][0])
            return reply_json({"object": "list", "data": rows[start : start + size], "has_more": True})

        stub.on("GET", "/api/sessions", listing)
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            found = await handler_of(connector, "session_delete").context(call_of("session_delete"))
    assert found is not None
    assert stub.mutations == []
    return found, stub


@pytest.mark.requirement("approval:context:children")
async def test_children_lose_their_parent_and_sub_agents_of_any_depth_may_go_along() -> None:
    found, _ = await context_of(
        family(
            {
                "s1": (None, "api_server"),
                "fork": ("s1", "api_server"),
                "grandchild": ("fork", "api_server"),
                "agent": ("s1", "subagent"),
                "agent-of-agent": ("agent", "subagent"),
                "fork-of-agent": ("agent", "api_server"),
                "stranger": ("other", "subagent"),
            }
        )
    )
    assert found == {
        "session_id": "s1",
        "orphaned": {"count": 2, "ids": ["fork", "fork-of-agent"]},
        "may_be_deleted_too": {"count": 2, "ids": ["agent", "agent-of-agent"]},
        "rows_read": 7,
        "complete": True,
    }


@pytest.mark.requirement("approval:context:children")
async def test_many_pages_are_read_to_a_bound_and_the_rest_is_said() -> None:
    rows = family({f"c{number:05}": ("s1", "api_server") for number in range(PAGE + 1)})
    found, _ = await context_of(rows)
    assert (found["orphaned"]["count"], len(found["orphaned"]["ids"]), found["complete"]) == (PAGE + 1, MAX_IDS, True)
    endless, stub = await context_of(family({f"r{n}": (None, "api_server") for n in range(PAGE)}) * (MAX_PAGES + 1))
    assert (endless["rows_read"], endless["complete"], len(stub.reads)) == (PAGE * MAX_PAGES, False, MAX_PAGES)


@pytest.mark.requirement("hermes:listing:to-its-end")
@pytest.mark.parametrize(
    ("cap", "more", "complete"),
    [(7, True, True), (7, False, False), (7, None, False), (PAGE, None, True), (PAGE, False, False)],
    ids=["short pages", "a last short page", "short and silent", "full and silent", "a last full page"],
)
async def test_a_listing_ends_where_the_endpoint_says_so_however_long_its_pages_are(
    cap: int, more: bool | None, complete: bool
) -> None:
    rows = family({f"c{number:05}": ("s1", "api_server") for number in range(cap + 5)})
    async with StubEndpoint() as stub:

        def listing(request: Arrived) -> Reply:
            start = int(parse_qs(urlsplit(request.target).query)["offset"][0])
            said = {} if more is None else {"has_more": more and start + cap < len(rows)}
            return reply_json({"object": "list", "data": rows[start : start + cap], **said})

        stub.on("GET", "/api/sessions", listing)
        async with connector_of(endpoint_of(stub.base_url)) as connector:
            found = await handler_of(connector, "session_delete").context(call_of("session_delete"))
    assert found is not None
    assert found["complete"] is True
    assert found["orphaned"]["count"] == (len(rows) if complete else cap)
    assert len(stub.reads) == (2 if complete else 1)


@pytest.mark.requirement("approval:context:children")
async def test_a_listing_that_fails_or_is_none_is_a_certain_failure_and_others_have_no_context() -> None:
    async with StubEndpoint() as stub, connector_of(endpoint_of(stub.base_url)) as connector:
        handler = handler_of(connector, "session_delete")
        for reply in (reply_error(500, None), reply_json({"object": "list"})):
            stub.on("GET", "/api/sessions", reply)
            with pytest.raises(ActionFailed) as caught:
                await handler.context(call_of("session_delete"))
            assert caught.value.uncertain is False
        assert await handler_of(connector, "session_patch").context(call_of("session_patch")) is None


@pytest.mark.requirement("approval:context:children")
async def test_odd_rows_are_left_out() -> None:
    odd: list[Any] = [None, 7, {"id": 3, "parent_session_id": "s1"}, {"id": "x", "parent_session_id": 5}]
    looped = family({"s1": ("child", "subagent"), "child": ("s1", "subagent")})
    found, _ = await context_of([*odd, *looped])
    assert (found["orphaned"]["count"], found["may_be_deleted_too"]["ids"]) == (0, ["child"])


@pytest.mark.requirement("approval:context:children")
async def test_what_the_context_names_is_what_the_delete_does(tmp_path: Path) -> None:
    async with served(tmp_path) as running:
        await running.create("s1")
        forked = await running.client.post("/api/sessions/s1/fork", json={"id": "f1", "title": "Fork one"})
        assert forked.status_code < 300, forked.text
        endpoint = endpoint_of(str(running.client.base_url).rstrip("/") + "/", key=Secret(EMBEDDED_KEY))
        async with connector_of(endpoint) as connector:
            found = await handler_of(connector, "session_delete").context(call_of("session_delete"))
        before = (await running.session("f1"))["parent_session_id"]
        deleted = await running.client.delete("/api/sessions/s1")
        after = (await running.session("f1"))["parent_session_id"]
    assert found is not None
    assert (found["orphaned"], found["may_be_deleted_too"]["count"]) == ({"count": 1, "ids": ["f1"]}, 0)
    assert (before, deleted.status_code, after) == ("s1", 200, None)
