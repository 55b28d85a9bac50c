"""Replies of an AIP server, written out, and a stub that gives them."""

from __future__ import annotations

from typing import Any

from tests.support.client_stub_server import Answer, Request

__all__ = [
    "ACTION_ID",
    "APPROVAL_ID",
    "DELETE",
    "OTHER_ANSWERS",
    "POLICY_HASH",
    "REQUESTER",
    "REVIEWER",
    "action_result",
    "approval_context",
    "approval_record",
    "approval_request",
    "completed",
    "envelope",
    "error_body",
    "events",
    "failed",
    "pending",
    "read_routes",
    "refused",
    "reply_with",
]

ACTION_ID = "act_0198c0de1a2b7c3d8e4f5a6b7c8d9e01"
APPROVAL_ID = "appr_0198c0de1a2b7c3d8e4f5a6b7c8d9e02"
DELETE = "cap:hermes_agent:primary:session_delete"
REQUESTER = {"id": "agent:example:requester", "kind": "agent"}
REVIEWER = {"id": "human:example:reviewer", "kind": "human"}
POLICY_HASH = "6b1f2c3d4e5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"

_TYPES = {
    "action_result": "aip.core.v1.action_result",
    "ack": "aip.core.v1.ack",
    "error": "aip.core.v1.error",
    "event_stream": "aip.discovery.v1.event_stream_response",
}


def envelope(body: dict[str, Any], *, in_response_to: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "aip_version": "1.0",
        "message_type": _TYPES[next(iter(body))],
        "message_id": "msg_0198c0de1a2b7c3d8e4f5a6b7c8d9e99",
        "sent_at": "2030-01-01T00:00:01Z",
        "body": body,
    }
    return made if in_response_to is None else {**made, "in_response_to": in_response_to}


def action_result(status: str, **members: Any) -> dict[str, Any]:
    return {"action_result": {"action_id": ACTION_ID, "status": status, **members}}


def completed(output: Any) -> dict[str, Any]:
    return action_result("completed", output=output)


def failed(code: str, *, status: str = "failed", uncertain: bool = False, **members: Any) -> dict[str, Any]:
    error = {"code": code, "message": "as the test wants", "category": "connector", "retryable": False, **members}
    if uncertain:
        error["details"] = {**error.get("details", {}), "uncertain_outcome": True}
    return action_result(status, error=error)


def approval_request() -> dict[str, Any]:
    return {
        "id": APPROVAL_ID,
        "action_id": ACTION_ID,
        "capability_id": DELETE,
        "requester": REQUESTER,
        "subject": REQUESTER,
        "approver_selector": {"type": "tenant_policy"},
        "reason": "Removes a stored transcript",
        "evidence": [{"id": "evidence:input:1", "kind": "input_snapshot", "hash": "8f3c", "redacted": True}],
        "expires_at": "2030-01-01T00:16:00Z",
        "identity": {"tenant": {"id": "tenant-a"}},
        "policy_snapshot": {
            "required": True,
            "approver_selector": {"type": "tenant_policy"},
            "ttl_ms": 900000,
            "evidence_requirements": ["reason", "input_snapshot", "policy_decision"],
            "minimum_distinct_principals": 1,
            "separation_of_duties": {
                "requester_must_differ": True,
                "operator_must_differ": False,
                "allow_self_approval": False,
            },
        },
        "policy_hash": POLICY_HASH,
        "operator": REQUESTER,
        "risk": "high",
    }


def approval_record(status: str = "pending", *, payload: bool = True, **members: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"request": approval_request(), "status": status}
    record["action_status"] = {
        "action_id": ACTION_ID,
        "state": "pending_approval",
        "updated_at": "2030-01-01T00:01:00Z",
    }
    if payload:
        record["evidence_payload"] = {
            "action_id": ACTION_ID,
            "capability_id": DELETE,
            "input_hash": "8f3c1e5a",
            "input": {"session_id": "support-case-1"},
        }
    return {
        "approval_record_view": {
            **record,
            "created_at": "2030-01-01T00:01:00Z",
            "updated_at": "2030-01-01T00:01:00Z",
            **members,
        }
    }


def approval_context(**members: Any) -> dict[str, Any]:
    context = {
        "approval_id": APPROVAL_ID,
        "action_id": ACTION_ID,
        "capability_id": DELETE,
        "status": "pending",
        "approvals": 1,
        "approvals_needed": 2,
        "decisions": [
            {
                "approval_id": APPROVAL_ID,
                "decision": "approved",
                "approver": REVIEWER,
                "decided_at": "2030-01-01T00:01:30Z",
                "decision_id": "decision_of_reviewer",
                "reason": "the case is closed",
                "evidence": [{"id": "ticket-7", "kind": "external_ticket", "redacted": False}],
                "constraints": [{"field": "/session_id", "operator": "eq", "value": "support-case-1"}],
                "terminal": False,
            }
        ],
        "target_snapshot": {"session_id": "support-case-1", "message_count": 4},
        "read_at": "2030-01-01T00:01:31Z",
        "touches": {"orphaned": {"count": 1, "ids": ["fork-of-case-1"]}, "complete": True},
        "not_available": None,
    }
    return {"approval_context": {**context, **members}}


def pending() -> dict[str, Any]:
    return action_result(
        "pending_approval",
        output={
            "requires_human_approval": True,
            "approval_id": APPROVAL_ID,
            "capability_id": DELETE,
            "approval_request": approval_request(),
        },
        error={
            "code": "policy.human_approval_required",
            "message": "a reviewer has to decide",
            "category": "policy",
            "retryable": False,
            "details": {"approval_id": APPROVAL_ID},
        },
    )


def events() -> dict[str, Any]:
    granted = {"id": "evt_1", "kind": "aip.approval.granted", "occurred_at": "2030-01-01T00:02:00Z"}
    resumed = {
        "id": "evt_2",
        "kind": "aip.action.resumed_result",
        "occurred_at": "2030-01-01T00:02:01Z",
        "action_id": ACTION_ID,
        "data": {"approval_id": APPROVAL_ID, "action_id": ACTION_ID, "status": "completed"},
    }
    return {"event_stream": {"events": [granted, resumed]}}


def error_body(code: str, category: str, message: str = "as the test wants", **members: Any) -> dict[str, Any]:
    return {"error": {"error": {"code": code, "message": message, "category": category, "retryable": False, **members}}}


def refused(code: str, category: str, status: int, message: str = "as the test wants", **members: Any) -> Answer:
    return Answer(status=status, body=envelope(error_body(code, category, message, **members)))


def reply_with(body: dict[str, Any], request: Request) -> Answer:
    """Answer the posted message with `body`."""
    return Answer(body=envelope(body, in_response_to=request.json["message_id"]))


def read_routes(request: Request) -> Answer:
    """Answer every GET as a healthy server would."""
    path = request.path
    if path.startswith("/aip/v1/approvals/") and path.endswith("/context"):
        return Answer(body=approval_context())
    if path.startswith("/aip/v1/approvals/"):
        return Answer(body=approval_record())
    if path.startswith("/aip/v1/actions/"):
        if path.endswith("/result"):
            return Answer(body=completed({"ok": True}))
        return Answer(
            body={"action_status": {"action_id": ACTION_ID, "state": "completed", "updated_at": "2030-01-01T00:00:01Z"}}
        )
    return Answer(body=OTHER_ANSWERS[path])


OTHER_ANSWERS: dict[str, Any] = {
    "/health": {"status": "ok", "protocol": "AIP", "version": "1.0", "service": "stub", "uptime_ms": 1},
    "/aip/v1/me": {"principal": REVIEWER, "tenant_id": "tenant-a", "scopes": ["approval:read"]},
    "/aip/v1/manifest": {"manifest_version": "aip-manifest/v1", "agent": REQUESTER, "profiles": ["aip.native.http.v1"]},
    "/aip/v1/capabilities": {"catalog_revision": 7, "capabilities": [], "next_cursor": None, "total": 0},
    "/aip/v1/approvals": {"approval_list": {"approvals": [approval_record()["approval_record_view"]]}},
}
