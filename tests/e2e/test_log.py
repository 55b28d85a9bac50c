"""What two real servers wrote to their log while markers stood in every field that a caller has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.ports import SystemClock, new_id
from tests.support.processes import running_up, stop
from tests.support.server_serving import envelope

MARK = "Zq7marker"


def action(operation: str, given: dict[str, Any], **members: Any) -> dict[str, Any]:
    inner = {
        "id": new_id("act_"),
        "capability_id": f"cap:hermes_agent:primary:{operation}",
        "input": given,
        "mode": "sync",
        "observability": {"trace_id": f"{MARK}-trace"},
        **members,
    }
    return envelope({"action": inner}, message_id=new_id("msg_"))


def lifecycle() -> list[dict[str, Any]]:
    """Return actions with a marker in every field, down to what fails at the schema and at the provider."""
    session = {"id": "session-1", "title": f"{MARK} title", "system_prompt": f"{MARK} prompt", "model": f"{MARK}-model"}
    return [
        action("session_create", {"body": session}, idempotency_key=f"{MARK}-create"),
        action("session_chat", {"session_id": "session-1", "message": f"{MARK} text"}, idempotency_key=f"{MARK}-chat"),
        action(
            "session_patch", {"session_id": "session-1", "body": {"title": f"{MARK} new"}}, idempotency_key=f"{MARK}-p"
        ),
        action("session_fork", {"session_id": f"{MARK}-nowhere"}, idempotency_key=f"{MARK}-fork"),
        action("session_get", {"session_id": f"{MARK}-nowhere"}),
        action("session_get", {"session_id": "session-1", f"{MARK}-member": f"{MARK}"}),
        action(f"{MARK}-operation", {}),
        action("session_delete", {"session_id": "session-1"}, idempotency_key=f"{MARK}-delete"),
    ]


def decision(client: httpx.Client, reviewer: dict[str, str]) -> dict[str, Any]:
    [found] = client.get("/aip/v1/approvals", headers=reviewer).json()["approval_list"]["approvals"]
    request = found["request"]
    members = {
        "approval_id": request["id"],
        "decision": "approved",
        "approver": {"id": "human:local:reviewer", "kind": "human"},
        "decided_at": wire.rfc3339(SystemClock().now_ms()),
        "reason": f"{MARK} reason",
        "decision_id": f"decision:{MARK}",
        "policy_hash": request["policy_hash"],
    }
    return envelope({"approval_decision": members}, message_id=new_id("msg_"))


@pytest.mark.requirement("log:no-payload")
def test_the_log_is_json_lines_with_ids_and_none_of_what_was_sent(tmp_path: Path) -> None:
    log = tmp_path / "up.log"
    with running_up(tmp_path / "data", log=log) as (process, ready):
        tokens = {who: Path(file).read_text(encoding="utf-8").strip() for who, file in ready["token_files"].items()}
        bearer = {who: {"authorization": f"Bearer {token}"} for who, token in tokens.items()}
        with httpx.Client(
            base_url=ready["aip_url"], headers=bearer["requester"], trust_env=False, timeout=60
        ) as client:
            sent = lifecycle()
            answers = [
                client.post("/aip/v1/messages", json=message, headers={"x-marker": MARK, "user-agent": MARK}).json()[
                    "body"
                ]
                for message in sent
            ]
            ends = [body["action_result"]["status"] if "action_result" in body else "refused" for body in answers]
            assert ends == [*["completed"] * 3, "failed", "failed", "completed", "refused", "pending_approval"]
            decided = client.post(
                "/aip/v1/messages", json=decision(client, bearer["reviewer"]), headers=bearer["reviewer"]
            )
            assert decided.status_code == 200, decided.text
            client.post("/aip/v1/messages", content=f'{{"{MARK}": ')
            client.post("/aip/v1/messages", json={MARK: MARK})
            client.get(f"/aip/v1/{MARK}")
            client.get(f"/aip/v1/actions/{MARK}?{MARK}={MARK}")
            client.get("/aip/v1/approvals", params={"cursor": MARK, "status": MARK})
            client.get("/aip/v1/me", headers={"authorization": f"Bearer {MARK}"})
            client.request(MARK.upper(), "/")
        assert stop(process, seconds=10) == 0
    lines = log.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    assert all({"timestamp", "level", "event"} <= set(event) for event in events)
    assert [line for line in lines if MARK.lower() in line.lower()] == []
    assert not any(token in line for token in tokens.values() for line in lines)
    named = {event.get("action_id") for event in events}
    assert sent[0]["body"]["action"]["id"] in named
