"""Two principals of one tenant and a stranger with every scope, over real HTTP, against the real runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from aip_hermes import wire
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import action, envelope, serving, written_settings
from tests.support.server_site import write_secret

STRANGER = (
    '\n[[tokens]]\nfile = "tokens/stranger"\nprincipal = "human:other:stranger"\ntenant = "other"\nscopes = ["*"]\n'
)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    client: httpx.AsyncClient
    endpoint: GatedEndpoint

    async def get(self, who: str, path: str) -> httpx.Response:
        return await self.client.get(path, headers={"authorization": f"Bearer {who}-0123456789"})

    async def post(self, who: str, message: dict[str, Any]) -> httpx.Response:
        headers = {"authorization": f"Bearer {who}-0123456789"}
        response = await self.client.post("/aip/v1/messages", json=message, headers=headers)
        assert wire.envelope_violations(response.json()) == []
        return response

    async def decide(self, who: str, approval: dict[str, Any], *, number: int) -> httpx.Response:
        principal = (await self.get(who, "/aip/v1/me")).json()["principal"]
        decision = {
            "approval_id": approval["id"],
            "decision": "approved",
            "approver": principal,
            "decided_at": "2030-01-01T00:00:00Z",
            "reason": "The case is closed.",
            "decision_id": f"decision:{number}",
            "policy_hash": approval["policy_hash"],
        }
        return await self.post(who, envelope({"approval_decision": decision}, message_id=f"msg_decision_{number}"))


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[Deployment]:
    write_secret(tmp_path / "tokens" / "stranger", "stranger-0123456789")
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        endpoint.gate.set()
        settings = written_settings(tmp_path, endpoint_url=endpoint.url, extra=STRANGER)
        client, _ = await stack.enter_async_context(serving(settings))
        yield Deployment(client=client, endpoint=endpoint)


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


async def parked(deployment: Deployment) -> dict[str, Any]:
    """Ask for the deletion of the session; return the approval request."""
    response = await deployment.post("requester", action("act_delete", "session_delete", key="delete-s"))
    result = response.json()["body"]["action_result"]
    assert result["status"] == "pending_approval", result
    request: dict[str, Any] = result["output"]["approval_request"]
    return request


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["body"]["error"]["error"]["code"]


@pytest.mark.requirement("server:message:dispatch", "server:wire:schemas")
async def test_a_deletion_waits_for_a_second_person(deployment: Deployment) -> None:
    approval = await parked(deployment)
    status = (await deployment.get("requester", "/aip/v1/actions/act_delete")).json()["action_status"]
    assert (status["state"], status["approval_id"]) == ("pending_approval", approval["id"])
    assert error_of(await deployment.get("requester", "/aip/v1/actions/act_delete/result")) == (
        503,
        "action.result_not_ready",
    )
    refused = await deployment.decide("requester", approval, number=1)
    assert error_of(refused) == (401, "auth.not_authorized")
    assert refused.json()["body"]["error"]["error"]["details"]["code"]
    assert [line for line in deployment.endpoint.requests if line.startswith("DELETE")] == []

    path = f"/aip/v1/approvals/{approval['id']}?include_evidence_payload=true&include_action_status=true"
    view = (await deployment.get("reviewer", path)).json()["approval_record_view"]
    assert wire.schema_violations("approval_record_view", view) == []
    assert view["evidence_payload"]["input"] == {"session_id": "s"}
    granted = await deployment.decide("reviewer", approval, number=2)
    kinds = [event["kind"] for event in granted.json()["body"]["event_stream"]["events"]]
    assert kinds[0] == "aip.approval.granted"
    assert "aip.action.resumed_result" in kinds
    result = (await deployment.get("requester", "/aip/v1/actions/act_delete/result")).json()["action_result"]
    assert (result["status"], result["output"]["deleted"]) == ("completed", True)
    assert deployment.endpoint.requests.count("DELETE /api/sessions/s") == 1


@pytest.mark.requirement("server:tenancy:nothing-leaks")
async def test_a_stranger_with_every_scope_learns_nothing(deployment: Deployment) -> None:
    await deployment.post("requester", action("act_read"))
    approval = await parked(deployment)
    seen = list(deployment.endpoint.requests)

    async def both(path: str, unknown: str) -> None:
        """What exists and what never existed get the same answer."""
        existing, absent = await deployment.get("stranger", path), await deployment.get("stranger", unknown)
        known_id, unknown_id = (one.partition("?")[0].split("/")[4] for one in (path, unknown))
        assert existing.status_code == absent.status_code
        assert _timeless(existing.text.replace(known_id, "ID")) == _timeless(absent.text.replace(unknown_id, "ID"))

    await both("/aip/v1/actions/act_read", "/aip/v1/actions/act_none")
    await both("/aip/v1/actions/act_delete?include_result=true", "/aip/v1/actions/act_none?include_result=true")
    await both("/aip/v1/actions/act_read/result", "/aip/v1/actions/act_none/result")
    await both(f"/aip/v1/approvals/{approval['id']}", "/aip/v1/approvals/appr_none")
    page = (await deployment.get("stranger", "/aip/v1/approvals?include_action_status=true")).json()
    assert page == {"approval_list": {"approvals": []}}
    catalogue = (await deployment.get("stranger", "/aip/v1/capabilities")).json()
    assert (catalogue["capabilities"], catalogue["total"]) == ([], 0)
    assert "primary" not in (await deployment.get("stranger", "/aip/v1/manifest")).text
    called = await deployment.post("stranger", action("act_other", message_id="msg_other"))
    assert error_of(called) == (400, "resource.not_found")
    assert "cap:hermes_agent:primary:" not in called.text.replace("cap:hermes_agent:primary:session_get", "")
    decided = await deployment.decide("stranger", approval, number=3)
    unknown = await deployment.decide("stranger", {**approval, "id": "appr_none"}, number=4)
    assert error_of(decided) == error_of(unknown)
    assert deployment.endpoint.requests == seen
    status = (await deployment.get("requester", "/aip/v1/actions/act_delete")).json()["action_status"]
    assert status["state"] == "pending_approval"


async def test_the_action_id_of_one_tenant_is_free_in_another(deployment: Deployment) -> None:
    await deployment.post("requester", action("act_same"))
    response = await deployment.post("stranger", action("act_same", message_id="msg_same"))
    assert error_of(response) == (400, "resource.not_found")


async def test_a_reviewer_without_invocation_patterns_calls_nothing(deployment: Deployment) -> None:
    response = await deployment.post("reviewer", action("act_review"))
    assert error_of(response) == (401, "auth.not_authorized")
    assert deployment.endpoint.requests == []


def _timeless(text: str) -> str:
    """Drop what differs between any two answers: message id and times."""
    return "".join(part for part in text.split('"') if not part.startswith(("msg_", "20")))
