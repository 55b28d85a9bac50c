"""Values of AIP objects with every member, in published order; one library, its shelves and its people."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ACCESS",
    "ACTION",
    "BINDING",
    "CALLBACK",
    "CAPABILITY",
    "CHAIN",
    "CHUNK",
    "CLEAR",
    "CONSTRAINT",
    "CONTRACT",
    "CONVERSATION",
    "DECISION",
    "DELEGATION",
    "DESK",
    "ENVELOPE",
    "ERROR",
    "EVENT",
    "EVIDENCE",
    "EXTERNAL_REF",
    "FILTER",
    "GRANT",
    "HASH",
    "IDENTITY",
    "JSON_PART",
    "MANIFEST",
    "MIRA",
    "OAUTH",
    "PAYLOAD",
    "POLICY",
    "PRINCIPAL",
    "RECEIPT",
    "RECORD",
    "REQUEST",
    "RESOURCE",
    "RESULT",
    "RULE",
    "STATUS",
    "TRANSACTION",
    "USAGE",
]

HASH = "5a" * 32
MIRA = {"id": "human:mira", "kind": "human", "display_name": "Mira"}
DESK = {"id": "agent:front-desk", "kind": "agent"}
CLEAR = "cap:library:main:shelf_clear"

EXTERNAL_REF = {"system": "register", "type": "reader", "id": "r-204"}
GRANT = {
    "principal_id": "agent:front-desk",
    "scopes": ["action:read", "*"],
    "expires_at": "2031-03-01T00:00:00Z",
    "reason": "evening shift",
}
PRINCIPAL = {
    "id": "human:mira",
    "kind": "human",
    "display_name": "Mira",
    "trust_domain": "library.example",
    "did": "did:key:z6MkmadeUp",
    "external_refs": [EXTERNAL_REF],
    "delegated_authority": [GRANT],
    "auth_context": {"scopes": "action:read"},
}
OAUTH = {
    "issuer": "https://login.library.example",
    "client_id": "desk",
    "scopes": ["shelf"],
    "expires_at": "2031-03-01T08:00:00.25Z",
    "refresh_available": False,
}
IDENTITY = {
    "tenant": {"id": "branch-north", "system": "register"},
    "external_account": {"id": "acc-1", "system": "register"},
    "external_user": {"id": "usr-1", "system": "register"},
    "human_actor": MIRA,
    "service_account": {"id": "service:shelves", "kind": "service"},
    "acted_on_behalf_of": DESK,
    "credential_ref": {"id": "shelf-key", "issuer": "vault:north", "scopes": ["shelf"]},
    "oauth": OAUTH,
}
RULE = {
    "operator": "all",
    "rules": [
        {"operator": "any", "rules": [{"operator": "principal", "id": "human:noor"}]},
        {
            "operator": "quorum",
            "required": 1,
            "rules": [{"operator": "role", "name": "keeper"}, {"operator": "group", "name": "night"}],
            "distinct_principals": True,
        },
    ],
    "allow_decision_reuse": False,
}
POLICY: dict[str, Any] = {
    "required": True,
    "reason": "Clears a shelf for good",
    "approver_selector": {"type": "tenant_policy"},
    "ttl_ms": 900000,
    "evidence_requirements": ["reason", "input_snapshot"],
    "delegated_authority": {"principal": "human:noor", "scope": ["shelf"], "expires_at": "2031-03-02T00:00:00Z"},
    "rule": RULE,
    "minimum_distinct_principals": 2,
    "separation_of_duties": {
        "requester_must_differ": True,
        "operator_must_differ": False,
        "allow_self_approval": False,
    },
    "policy_version": "3",
}
CONTRACT: dict[str, Any] = {
    "side_effects": ["read", "delete"],
    "idempotency": {
        "requirement": "required",
        "collision_behavior": "return_original_result",
        "key_scope": "capability",
        "ttl_ms": 86400000,
    },
    "execution": {
        "supports_sync": True,
        "supports_async": False,
        "supports_streaming": False,
        "supports_cancel": False,
        "supports_retry": False,
        "expected_completion": "sync",
        "retry_safety": "unsafe",
    },
    "data": {
        "sensitivity": "restricted",
        "contains_pii": True,
        "redaction_required": True,
        "residency": {"allowed_regions": ["north"], "prohibited_regions": ["south"]},
        "retention": {"retain_for_ms": 1000, "delete_after_ms": 2000, "legal_hold_allowed": False},
    },
    "credentials": {
        "required": True,
        "accepted_issuers": ["vault:north"],
        "required_scopes": ["shelf"],
        "allow_oauth_refresh": False,
    },
    "approval": POLICY,
    "sla": {
        "expected_latency_ms": 40,
        "timeout_ms": 5000,
        "async_expected": False,
        "max_queue_delay_ms": 10000,
        "availability_target": "99.9%",
    },
    "transaction": {
        "supported_modes": ["execute", "dry_run"],
        "requires_plan_before_commit": False,
        "dry_run_fidelity": "schema_only",
    },
    "compensation": {
        "mode": "supported",
        "compensation_capability_id": "cap:library:main:shelf_restore",
        "compensation_window_ms": 60000,
        "requires_approval": True,
    },
}
BINDING = {"profile": "aip.connector.library.v1", "method": "DELETE", "path": "/shelves/{id}", "note": None}
CAPABILITY = {
    "id": CLEAR,
    "name": "Clear a shelf",
    "kind": "tool",
    "input_schema": {"type": "object", "properties": {"shelf": {"type": "string", "default": None}}},
    "output_schema": True,
    "description": "Removes every book from one shelf.",
    "risk": "high",
    "stability": "stable",
    "cost": {"unit": "call"},
    "auth": {"scheme": "bearer"},
    "bindings": [BINDING],
    "requires_human_approval": True,
    "contract": CONTRACT,
}
ACCESS = {
    "public": False,
    "allowed_principals": ["human:mira"],
    "required_scopes": ["shelf"],
    "tenant_required": True,
}
RESOURCE = {
    "id": "resource:library:shelves",
    "name": "Shelves",
    "kind": "index",
    "capability_id": CLEAR,
    "description": "All shelves",
    "mime_type": "application/json",
    "tenant_id": "branch-north",
    "access": ACCESS,
    "expires_at": "2031-03-02T00:00:00+01:00",
}
FILTER = {
    "capability_ids": [CLEAR],
    "resource_kinds": ["index"],
    "profiles": ["aip.native.http.v1"],
    "risk": ["high", "critical"],
    "side_effects": ["delete"],
    "requires_approval": True,
    "supports_streaming": False,
    "supports_transactions": False,
}
ERROR = {
    "code": "connector.library.shelf_busy",
    "message": "the shelf is in use",
    "category": "connector",
    "retryable": True,
    "retry_after_ms": 1500,
    "details": {"shelf": "b-12", "uncertain_outcome": False},
    "source": {"component": "library"},
}
TRANSACTION = {
    "mode": "compensate",
    "transaction_id": "txn_01",
    "plan_id": "plan-1",
    "compensation_for": "act_00",
}
EVIDENCE = {"id": "evidence:input:act_01", "kind": "input_snapshot", "uri": "aip://e/1", "hash": HASH, "redacted": True}
CONSTRAINT = {"field": "/shelf", "operator": "eq", "value": None}
DECISION = {
    "approval_id": "appr_01",
    "decision": "approved",
    "approver": {"id": "human:noor", "kind": "human"},
    "decided_at": "2031-02-03T04:05:06.789012345Z",
    "reason": "The shelf is empty anyway",
    "constraints": [CONSTRAINT],
    "evidence": [EVIDENCE],
    "decision_id": "decision-7",
    "policy_hash": HASH,
    "authority_path": ["role:keeper"],
    "target_decision_id": "decision-6",
}
REQUEST = {
    "id": "appr_01",
    "action_id": "act_01",
    "capability_id": CLEAR,
    "requester": MIRA,
    "subject": MIRA,
    "approver_selector": {"type": "role", "name": "keeper"},
    "reason": "Clears a shelf for good",
    "evidence": [EVIDENCE],
    "expires_at": "2031-02-03T04:20:00Z",
    "policy_decision_id": "policy:act_01",
    "identity": IDENTITY,
    "policy_snapshot": POLICY,
    "policy_hash": HASH,
    "operator": DESK,
    "risk": "high",
    "governed_value": 18446744073709551615,
}
CONVERSATION = {
    "id": "conv_01",
    "channel": None,
    "status": "open",
    "external_refs": [EXTERNAL_REF],
    "contact": {"id": "contact:204", "kind": "contact"},
    "assignee": DESK,
    "priority": "urgent",
    "labels": ["lost"],
    "metadata": {"desk": 2},
}
DELEGATION = {"from": MIRA, "to": DESK, "scope": "action:invoke", "delegated_at": "2031-02-03T04:00:00Z"}
CALLBACK = {"profile": "aip.native.http.v1", "target": "https://desk.example/aip", "metadata": {"tries": 1}}
ACTION: dict[str, Any] = {
    "id": "act_01",
    "capability_id": CLEAR,
    "input": {"shelf": "b-12", "note": None},
    "mode": "sync",
    "idempotency_key": "clear-b-12",
    "timeout_ms": 5000,
    "conversation": CONVERSATION,
    "memory_context": {"topic": "shelves"},
    "delegation_chain": [DELEGATION],
    "federation": {"trust_domain": "library.example", "hops": ["city.example"]},
    "callback": CALLBACK,
    "observability": {"trace_id": "t-1", "span_id": "s-1", "fields": {"build": 3}},
    "compliance": {"regimes": ["archive"], "data_classification": "internal", "metadata": {"case": 4}},
    "identity": IDENTITY,
    "approval": DECISION,
    "transaction": TRANSACTION,
}
USAGE = {"tokens": {"input": 3}, "tools": {"calls": 0}, "latency_ms": 12, "cost": {"amount": "0"}}
JSON_PART = {"type": "json", "data": {"cleared": 14}, "schema": {"type": "object"}}
RESULT = {
    "action_id": "act_01",
    "status": "failed",
    "output": {"cleared": 14, "kept": None},
    "message": [{"type": "text", "text": "Cleared 14 books", "format": "plain"}, JSON_PART],
    "memory_update": {"last_shelf": "b-12"},
    "usage": USAGE,
    "receipt": {"id": "rcpt_01", "hash": HASH},
    "error": ERROR,
}
CHUNK = {"action_id": "act_01", "sequence": 0, "kind": "data", "data": {"n": 1}, "part": {"type": "text", "text": "1"}}
EVENT = {
    "id": "evt_01",
    "kind": "aip.action.result",
    "occurred_at": "2031-02-03T04:05:07Z",
    "session_id": "sess_01",
    "action_id": "act_01",
    "correlation_id": "corr_01",
    "actor": MIRA,
    "data": {"status": "failed"},
}
RECEIPT = {
    "id": "rcpt_01",
    "receipt_type": "approval_granted",
    "actor": MIRA,
    "occurred_at": "2031-02-03T04:05:07Z",
    "correlation_id": "corr_01",
    "data": {"approval_id": "appr_01"},
    "previous_hash": HASH,
    "hash": HASH,
}
AUDITED = {
    "id": "audit:action:branch-north:act_01:result",
    "actor": PRINCIPAL,
    "identity": IDENTITY,
    "action": "aip.action.result",
    "occurred_at": "2030-01-01T00:00:00Z",
    "data": {"action_id": "act_01", "status": "completed"},
}
CHAIN = {"chain_id": "approval:appr_01", "receipts": [RECEIPT], "root_hash": HASH}
STATUS = {
    "action_id": "act_01",
    "capability_id": CLEAR,
    "session_id": "sess_01",
    "correlation_id": "corr_01",
    "state": "failed",
    "queued_state": "failed",
    "result_status": "failed",
    "approval_id": "appr_01",
    "transaction_id": "txn_01",
    "delegation_id": "dlg_01",
    "started_at": "2031-02-03T04:05:06Z",
    "updated_at": "2031-02-03T04:05:07Z",
    "completed_at": "2031-02-03T04:05:07Z",
    "retry": {"attempt": 1},
    "lease": {"owner": "w-1"},
    "result": RESULT,
    "receipt_chain": CHAIN,
    "chunks": [CHUNK],
    "links": {"result": "/aip/v1/actions/act_01/result", "self": "/aip/v1/actions/act_01"},
}
PAYLOAD = {
    "action_id": "act_01",
    "capability_id": CLEAR,
    "input_hash": HASH,
    "input": {"shelf": "b-12"},
    "transaction": TRANSACTION,
    "identity": IDENTITY,
}
RECORD = {
    "request": REQUEST,
    "decision": DECISION,
    "status": "approved",
    "action_status": STATUS,
    "receipt_chain": CHAIN,
    "evidence_payload": PAYLOAD,
    "created_at": "2031-02-03T04:05:00Z",
    "updated_at": "2031-02-03T04:05:07Z",
}
MANIFEST = {
    "manifest_version": "aip-manifest/v1",
    "agent": {"id": "service:library", "kind": "service"},
    "capabilities": [CAPABILITY],
    "profiles": ["aip.native.http.v1"],
    "resources": [RESOURCE],
    "channels": [{"id": "desk"}],
    "security": {"signed": False},
    "governance": {"owner": "north"},
    "limits": {"max_request_bytes": 1048576},
    "compatibility": {"native_http": {"messages": "/aip/v1/messages"}},
    "extensions": {"library.example": {"shelves": 40}},
}
ENVELOPE = {
    "aip_version": "1.0",
    "message_type": "aip.core.v1.action",
    "message_id": "msg_01",
    "sent_at": "2031-02-03T04:05:06.5Z",
    "body": {"action": ACTION},
    "session_id": "sess_01",
    "correlation_id": "corr_01",
    "in_response_to": "msg_00",
    "idempotency_key": "envelope-1",
    "from": MIRA,
    "to": DESK,
    "trace": {"t": 1},
    "security": {"did": "did:key:z6MkmadeUp"},
    "extensions": {"library.example": {"k": 1}},
}
