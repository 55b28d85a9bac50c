"""What a stranger with every scope learns of another tenant by asking: on every route the same as of nothing.

Every route of the application that names a record is asked, so that a new one is covered by being there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from starlette.routing import Route
from structlog.testing import capture_logs

from aip_hermes.app import build_app
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import action, envelope, serving, written_settings
from tests.support.server_site import write_secret

EXTRA: Final = """
[[endpoints]]
id = "second"
base_url = "{url}"
key_file = "hermes.key"
tenant_id = "other"

[[tokens]]
file = "tokens/stranger"
principal = "human:other:stranger"
tenant = "other"
scopes = ["*"]
"""
STRANGER: Final = {"authorization": "Bearer stranger-0123456789"}
NOBODYS: Final = {"action_id": "act_" + "0" * 32, "approval_id": "appr_" + "0" * 32}
OWN_NAMES: Final = {"chain_id": "approval:{approval_id}", "receipt_id": "rcpt_{approval_id}_approval_requested"}
QUERIES: Final = (
    "/aip/v1/actions?approval_id={approval_id}", "/aip/v1/audit/events?action_id={action_id}",
    "/aip/v1/actions/{action_id}/events?follow=true", "/aip/v1/actions/{action_id}/events?cursor=aev_cursor_1_none",
    "/aip/v1/actions/{action_id}?wait_ms=1&include_result=true",
    "/aip/v1/approvals/{approval_id}?include_receipts=true",
)  # fmt: skip
MESSAGES: Final[tuple[dict[str, Any], ...]] = (
    {"action_status_request": {"action_id": "{action_id}"}},
    {"action_result_request": {"action_id": "{action_id}"}},
    {"action_events_request": {"action_id": "{action_id}"}},
    {"approval_query_request": {"approval_id": "{approval_id}"}},
    {"cancel": {"target": {"action": "{action_id}"}}},
    {
        "approval_decision": {
            "approval_id": "{approval_id}",
            "decision": "denied",
            "approver": {"id": "human:other:stranger", "kind": "human"},
            "decided_at": "2030-01-01T00:00:00Z",
            "decision_id": "decision:1",
            "reason": "curious",
        }
    },
)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """client: speaks as the tenant that has something. ids: of an action that waits for a decision."""

    client: httpx.AsyncClient
    endpoint: GatedEndpoint
    ids: Mapping[str, str]
    table: tuple[tuple[str, str], ...]

    async def told(self, method: str, path: str, ids: Mapping[str, str]) -> tuple[int, str]:
        return self._plain(await self.client.request(method, named(path, ids), headers=STRANGER), ids)

    async def answered(self, body: Any, ids: Mapping[str, str], *, number: int) -> tuple[int, str]:
        sent = envelope(named(body, ids), message_id=f"msg_{number}")
        return self._plain(await self.client.post("/aip/v1/messages", json=sent, headers=STRANGER), ids)

    def _plain(self, response: httpx.Response, ids: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text without what differs between any two answers."""
        text = re.sub(r'"(message_id|sent_at|updated_at|in_response_to)":"[^"]*"', "", response.text)
        for name, value in ids.items():
            text = text.replace(value, name)
        return response.status_code, text


def named(value: Any, ids: Mapping[str, str]) -> Any:
    """Put ids in the place of their names, however deep."""
    if isinstance(value, dict):
        return {name: named(member, ids) for name, member in value.items()}
    if not isinstance(value, str):
        return value
    for name, form in OWN_NAMES.items():
        value = value.replace(f"{{{name}}}", form)
    for name, given in ids.items():
        value = value.replace(f"{{{name}}}", given)
    return re.sub(r"\{\w+\}", ids["action_id"], value)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
async def neighbours(tmp_path: Path) -> AsyncIterator[Neighbours]:
    write_secret(tmp_path / "tokens" / "stranger", "stranger-0123456789")
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        endpoint.gate.set()
        settings = written_settings(tmp_path, endpoint_url=endpoint.url, extra=EXTRA.format(url=endpoint.url))
        routes = [route for route in build_app(settings).routes if isinstance(route, Route) and "{" in route.path]
        table = [(method, route.path) for route in routes for method in sorted((route.methods or set()) - {"HEAD"})]
        client, _ = await stack.enter_async_context(serving(settings))
        asked = action("act_" + "5" * 32, "session_delete", key="k1")
        pending = (await client.post("/aip/v1/messages", json=asked)).json()["body"]["action_result"]
        ids = {"action_id": pending["action_id"], "approval_id": pending["output"]["approval_id"]}
        yield Neighbours(client=client, endpoint=endpoint, ids=ids, table=tuple(table))


@pytest.mark.requirement("tenants:probes:same-bytes")
async def test_no_route_tells_a_foreign_id_from_one_that_nobody_has(neighbours: Neighbours) -> None:
    for method, path in (*neighbours.table, *(("GET", query) for query in QUERIES)):
        foreign = await neighbours.told(method, path, neighbours.ids)
        assert (method, path, foreign) == (method, path, await neighbours.told(method, path, NOBODYS))
    own = named("/aip/v1/receipts/by-receipt/{receipt_id}", neighbours.ids)
    assert (await neighbours.client.get(own)).status_code == 200
    state = (await neighbours.client.get(f"/aip/v1/actions/{neighbours.ids['action_id']}")).json()["action_status"]
    assert state["state"] == "pending_approval"


@pytest.mark.requirement("tenants:probes:same-bytes")
async def test_no_message_tells_a_foreign_id_from_one_that_nobody_has(neighbours: Neighbours) -> None:
    for number, body in enumerate(MESSAGES):
        foreign = await neighbours.answered(body, neighbours.ids, number=2 * number)
        assert (body, foreign) == (body, await neighbours.answered(body, NOBODYS, number=2 * number + 1))
    approval = (await neighbours.client.get(f"/aip/v1/approvals/{neighbours.ids['approval_id']}")).json()
    assert approval["approval_record_view"]["status"] == "pending"


@pytest.mark.requirement("tenants:ids:apart")
async def test_an_id_that_a_stranger_used_first_is_free(neighbours: Neighbours) -> None:
    read = action("act_1", key="k2", message_id="msg_1")
    foreign = action("act_1", key="k2", message_id="msg_1")
    foreign["body"]["action"]["capability_id"] = "cap:hermes_agent:second:session_get"
    for sent, headers in ((foreign, STRANGER), (read, {})):
        answer = (await neighbours.client.post("/aip/v1/messages", json=sent, headers=headers)).json()
        assert answer["body"]["action_result"]["status"] == "completed"
        assert "idempotent_replay" not in answer["body"]["action_result"]["output"]
