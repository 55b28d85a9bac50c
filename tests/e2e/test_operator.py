"""The operator between real processes: approved, asked, answered over a restart, each sent once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes.client import AipConnection
from aip_hermes.ids import ActionId, ApprovalId, CapabilityId, IdempotencyKey
from tests.e2e.test_lifecycle import Site, site

CAPABILITY = CapabilityId("cap:hermes_agent:primary:operator")
ASKS = {"objective": 'Note it.\n\ncall: record_command {"command": "ls /backups"}'}


@pytest.mark.requirement("hermes:operator:embedded", "hermes:operator:one-start")
async def test_a_run_is_approved_asks_and_is_answered_after_a_kill(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        asked = await approved(here, "act_ask", ASKS)
        status = await here.stage().requester.status(ActionId("act_ask"))
        await here.kill_and_restart()
        resume = {"resume": {"source_action_id": "act_ask", "choice": "once"}}
        answered = await approved(here, "act_answer", resume)
        again = await submit(here.stage().requester, "act_answer", resume)
        chunks = await here.stage().requester.chunks(ActionId("act_ask"))
        sent = [line for line in here.relay.seen if "/v1/runs" in str(line) and "POST" in str(line)]
    assert here.watched.violations == []
    assert (asked["status"], asked["output"]["status"]) == ("requires_human", "waiting_for_approval")
    assert asked["output"]["pending_approval"]["command"] == "ls /backups"
    assert status["action_status"]["state"] == "pending_approval"
    assert (answered["status"], answered["output"]["status"]) == ("completed", "completed")
    assert again["output"]["run_id"] == asked["output"]["run_id"]
    assert "pending_approval" in str(chunks)
    assert len(sent) == 2


async def submit(connection: AipConnection, action_id: str, values: dict[str, Any]) -> dict[str, Any]:
    reply = await connection.call(
        CAPABILITY, values, action_id=ActionId(action_id), idempotency_key=IdempotencyKey(action_id)
    )
    assert reply.result is not None
    return reply.result


async def approved(here: Site, action_id: str, values: dict[str, Any]) -> dict[str, Any]:
    """Submit, let the reviewer approve, and return the result."""
    stage = here.stage()
    parked = await submit(stage.requester, action_id, values)
    assert parked["status"] == "pending_approval"
    approval_id = ApprovalId(parked["output"]["approval_id"])
    await stage.reviewer.decide(approval_id, decision="approved", reason="Looked at it.")
    result: dict[str, Any] = (await stage.requester.result(ActionId(action_id)))["action_result"]
    return result
