"""Records asked for by envelope: what the routes of the same things answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from tests.support.processes import run_aipctl
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import action, envelope, serving, written_settings
from tests.support.server_site import make_site, message

KINDS = ["aip.approval.requested", "aip.approval.granted"]
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "action_list_request": ({"state": "failed", "limit": 2, "cursor": "offset:2"}, "action_list"),
    "event_stream_request": ({"kinds": KINDS, "limit": 2}, "event_stream"),
    "receipt_query_request": ({"receipt_id": "rcpt_1"}, "receipt_chain"),
}


@pytest.mark.requirement("server:message:every-read")
@pytest.mark.parametrize("request_key", ASKED)
async def test_a_record_asked_for_by_envelope_is_answered_by_one(tmp_path: Path, request_key: str) -> None:
    asked, answer_key = ASKED[request_key]
    site = make_site(tmp_path)
    async with site.client:
        response = await site.post(message({request_key: asked}))
        body = response.json()["body"]
        nobody = await site.post(message({request_key: asked}, message_id="msg_2"), who=None)
    assert (response.status_code, list(body)) == (200, [answer_key])
    assert wire.envelope_violations(response.json()) == []
    assert nobody.status_code == 401
    [fields] = [fields for name, fields in site.runtime.asked if name != "claim"]
    given = fields.get("asked")
    told = fields if given is None else {name: getattr(given, name) for name in asked}
    assert {name: told[name] for name in asked} == asked


@pytest.mark.requirement("server:message:every-read", "aipctl:approval:list-request")
async def test_the_events_of_approvals_are_listed_on_the_command_line(tmp_path: Path) -> None:
    async with GatedEndpoint().running() as endpoint:
        endpoint.gate.set()
        async with serving(written_settings(tmp_path, endpoint_url=endpoint.url)) as (client, _):
            parked = await client.post("/aip/v1/messages", json=action("act_1", "session_delete", key="k"))
            approval_id = parked.json()["body"]["action_result"]["output"]["approval_id"]
            token = ["--native-bearer-token-file", str(tmp_path / "tokens" / "requester")]
            done = await asyncio.to_thread(run_aipctl, [*token, "approval", "list", str(client.base_url)])
            listed = await client.post(
                "/aip/v1/messages", json=envelope({"action_list_request": {}}, message_id="msg_list")
            )
            chain = await client.post(
                "/aip/v1/messages",
                json=envelope(
                    {"receipt_query_request": {"chain_id": f"approval:{approval_id}"}}, message_id="msg_chain"
                ),
            )
    assert done.returncode == 0, done.stderr
    assert approval_id in done.stdout
    assert '"aip.approval.requested"' in done.stdout
    assert [each["action_id"] for each in listed.json()["body"]["action_list"]["actions"]] == ["act_1"]
    assert len(chain.json()["body"]["receipt_chain"]["receipts"]) == 2
