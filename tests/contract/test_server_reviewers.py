"""Reviewers on connections of their own, over real HTTP, against the real runtime; and the command line before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from tests.support.client_command import run_aipctl
from tests.support.server_endpoint import GatedEndpoint
from tests.support.server_serving import AUTHORITY, action, envelope, serving, written_settings
from tests.support.server_site import write_secret

TOKENS = {
    "second": "human:local:second",
    "again": "agent:local:requester",  # the requester's principal under a second token
}
EXTRA = "".join(
    f'\n[[tokens]]\nfile = "tokens/{name}"\nprincipal = "{principal}"\ntenant = "local"\n'
    'scopes = ["action:read", "approval:read", "approval:export", "approval:sensitive"]\n'
    for name, principal in TOKENS.items()
)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    folder: Path
    url: str
    endpoint: GatedEndpoint

    def connection(self, who: str) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {who}-0123456789"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False, timeout=30)

    async def parked(self) -> dict[str, Any]:
        async with self.connection("requester") as client:
            answer = await client.post("/aip/v1/messages", json=action("act_delete", "session_delete", key="delete-s"))
        request: dict[str, Any] = answer.json()["body"]["action_result"]["output"]["approval_request"]
        return request

    async def decide(self, who: str, approval: dict[str, Any], verdict: str = "approved") -> httpx.Response:
        async with self.connection(who) as client:
            decision = {
                "approval_id": approval["id"],
                "decision": verdict,
                "approver": (await client.get("/aip/v1/me")).json()["principal"],
                "decided_at": "2030-01-01T00:00:00Z",
                "reason": "The case is closed.",
                "decision_id": f"decision:{who}:{verdict}",
                "policy_hash": approval["policy_hash"],
            }
            message = envelope({"approval_decision": decision}, message_id=f"msg_{who}_{verdict}")
            return await client.post("/aip/v1/messages", json=message)

    @property
    def deletes(self) -> int:
        return sum(line.startswith("DELETE") for line in self.endpoint.requests)


@pytest.fixture
async def deployment(tmp_path: Path) -> AsyncIterator[Deployment]:
    for name in TOKENS:
        write_secret(tmp_path / "tokens" / name, f"{name}-0123456789")
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(GatedEndpoint().running())
        endpoint.gate.set()
        settings = written_settings(tmp_path, endpoint_url=endpoint.url, extra=EXTRA)
        # Even the requester stands in the file: what it may not do is no matter of authority.
        entries = [{**AUTHORITY[0], "principal_id": name} for name in ("human:local:reviewer", *TOKENS.values())]
        (tmp_path / "approval-authority.json").write_text(json.dumps(entries), encoding="utf-8")
        client, _ = await stack.enter_async_context(serving(settings))
        yield Deployment(folder=tmp_path, url=str(client.base_url), endpoint=endpoint)


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.reset_defaults()


def refusal(response: httpx.Response) -> str | None:
    body = response.json()["body"]
    return body["error"]["error"]["details"]["code"] if "error" in body else None


@pytest.mark.requirement("approval:quorum:at-once")
async def test_of_two_reviewers_at_once_one_wins_and_the_other_is_told(deployment: Deployment) -> None:
    approval = await deployment.parked()
    answers = await asyncio.gather(
        deployment.decide("reviewer", approval), deployment.decide("second", approval, "denied")
    )
    async with deployment.connection("reviewer") as client:
        found = (await client.get(f"/aip/v1/approvals/{approval['id']}")).json()["approval_record_view"]
    assert sorted(str(refusal(answer)) for answer in answers) == ["None", "policy.approval_not_pending"]
    assert found["status"] in ("approved", "denied")
    assert deployment.deletes == (1 if found["status"] == "approved" else 0)


@pytest.mark.requirement("approval:selector")
@pytest.mark.parametrize("token", ["requester", "again"])
@pytest.mark.parametrize("verdict", ["approved", "denied"])
async def test_a_requester_decides_nothing_under_any_of_its_tokens(
    deployment: Deployment, token: str, verdict: str
) -> None:
    approval = await deployment.parked()
    answer = await deployment.decide(token, approval, verdict)
    assert (answer.status_code, refusal(answer)) == (401, "policy.separation_of_duties.requester")
    assert deployment.deletes == 0


@pytest.mark.requirement("aipctl:approval:shows-all", "approval:context")
async def test_the_command_line_shows_a_real_approval_with_what_it_meets(deployment: Deployment) -> None:
    approval = await deployment.parked()
    token = ["--native-bearer-token-file", str(deployment.folder / "tokens" / "reviewer")]
    shown = await asyncio.to_thread(run_aipctl, "approval", "show", deployment.url, approval["id"], *token)
    assert shown.returncode == 0, shown.stderr
    answer = json.loads(shown.stdout)
    context = answer["approval_context"]
    assert answer["approval_record_view"]["evidence_payload"]["input"] == {"session_id": "s"}
    assert (context["approvals"], context["approvals_needed"], context["decisions"]) == (0, 1, [])
    assert context["target_snapshot"]["session_id"] == "s"
    assert (context["touches"] is None) != (context["not_available"] is None)
    table = await asyncio.to_thread(
        run_aipctl, "approval", "show", deployment.url, approval["id"], "--output", "table", *token
    )
    assert table.returncode == 0, table.stderr
    for label in ("exact input", "target snapshot", "touches besides", "who may decide", "policy hash", "expires"):
        assert label in table.stdout.decode()
