"""One full example of every AIP object: each member is there, in published order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from aip_hermes import wire
from tests.support.wire_values import (
    ACCESS,
    ACTION,
    AUDITED,
    BINDING,
    CALLBACK,
    CAPABILITY,
    CHAIN,
    CHUNK,
    CLEAR,
    CONSTRAINT,
    CONTRACT,
    CONVERSATION,
    DECISION,
    DELEGATION,
    ENVELOPE,
    ERROR,
    EVENT,
    EVIDENCE,
    EXTERNAL_REF,
    FILTER,
    GRANT,
    HASH,
    IDENTITY,
    JSON_PART,
    MANIFEST,
    OAUTH,
    PAYLOAD,
    POLICY,
    PRINCIPAL,
    RECEIPT,
    RECORD,
    REQUEST,
    RESOURCE,
    RESULT,
    RULE,
    STATUS,
    TRANSACTION,
    USAGE,
)

__all__ = ["EXAMPLES", "Example", "adapter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """schema: as `wire.schema_violations` takes it."""

    type: type[wire.Wire]
    schema: str
    value: Mapping[str, Any]


def adapter(example: Example) -> TypeAdapter[Any]:
    """Return what reads the example where it occurs: a tagged object as a member of its union."""
    return TypeAdapter(_UNIONS.get(example.schema, example.type))


_TENANT = "branch-north"
_PAGE = {"cursor": "offset:20", "limit": 20}

_POLICY = "approval_policy#/$defs/"
_CONTRACT = "capability_contract#/$defs/"
_IDENTITY = "identity_context#/$defs/"
_SELECTOR = _POLICY + "approver_selector"
_RULES = _POLICY + "approval_rule"
_UNIONS: Mapping[str, Any] = {
    _SELECTOR: wire.ApproverSelector,
    _RULES: wire.ApprovalRule,
    "message_part": wire.MessagePart,
}


def _example(type_: type[wire.Wire], schema: str, value: Mapping[str, Any]) -> Example:
    return Example(type=type_, schema=schema, value=value)


_ALL = (
    _example(wire.Envelope, "envelope", ENVELOPE),
    _example(wire.Principal, "principal", PRINCIPAL),
    _example(wire.ExternalRef, "principal#/$defs/external_ref", EXTERNAL_REF),
    _example(wire.DelegatedAuthorityGrant, "principal#/$defs/delegated_authority_grant", GRANT),
    _example(wire.IdentityContext, "identity_context", IDENTITY),
    _example(wire.TenantRef, _IDENTITY + "tenant_ref", {"id": "branch-north", "system": "register"}),
    _example(wire.ExternalAccountRef, _IDENTITY + "external_account_ref", {"id": "acc-1", "system": "register"}),
    _example(wire.ExternalUserRef, _IDENTITY + "external_user_ref", {"id": "usr-1", "system": "register"}),
    _example(wire.CredentialRef, _IDENTITY + "credential_ref", {"id": "k", "issuer": "vault:n", "scopes": ["s"]}),
    _example(wire.OAuthCredentialState, _IDENTITY + "oauth_credential_state", OAUTH),
    _example(wire.Manifest, "manifest", MANIFEST),
    _example(wire.ManifestRequest, "manifest_request", {"profiles": ["aip.native.http.v1"], "filter": FILTER}),
    _example(wire.ManifestFilter, "manifest_request#/$defs/filter", FILTER),
    _example(wire.Resource, "resource", RESOURCE),
    _example(wire.ResourceAccessPolicy, "resource#/$defs/access_policy", ACCESS),
    _example(wire.Capability, "capability", CAPABILITY),
    _example(wire.Binding, "capability#/$defs/binding", BINDING),
    _example(wire.CapabilityContract, "capability_contract", CONTRACT),
    _example(wire.IdempotencyContract, _CONTRACT + "idempotency", CONTRACT["idempotency"]),
    _example(wire.ExecutionContract, _CONTRACT + "execution", CONTRACT["execution"]),
    _example(wire.DataContract, _CONTRACT + "data", CONTRACT["data"]),
    _example(wire.DataResidency, _CONTRACT + "data_residency", {"allowed_regions": ["n"], "prohibited_regions": ["s"]}),
    _example(
        wire.RetentionPolicy,
        _CONTRACT + "retention_policy",
        {"retain_for_ms": 0, "delete_after_ms": 2, "legal_hold_allowed": True},
    ),
    _example(wire.CredentialPolicy, _CONTRACT + "credentials", CONTRACT["credentials"]),
    _example(wire.ServiceLevelContract, _CONTRACT + "sla", CONTRACT["sla"]),
    _example(wire.TransactionContract, _CONTRACT + "transaction", CONTRACT["transaction"]),
    _example(wire.CompensationContract, _CONTRACT + "compensation", CONTRACT["compensation"]),
    _example(wire.ApprovalPolicy, "approval_policy", POLICY),
    _example(wire.SeparationOfDuties, _POLICY + "separation_of_duties", POLICY["separation_of_duties"]),
    _example(
        wire.DelegatedApprovalAuthority,
        _POLICY + "delegated_approval_authority",
        POLICY["delegated_authority"],
    ),
    _example(wire.PrincipalSelector, _SELECTOR, {"type": "principal", "id": "human:noor"}),
    _example(wire.RoleSelector, _SELECTOR, {"type": "role", "name": "keeper"}),
    _example(wire.GroupSelector, _SELECTOR, {"type": "group", "name": "night"}),
    _example(wire.TenantPolicySelector, _SELECTOR, {"type": "tenant_policy"}),
    _example(wire.ExternalSystemSelector, _SELECTOR, {"type": "external_system", "system": "tickets"}),
    _example(wire.AllRule, _RULES, RULE),
    _example(wire.AnyRule, _RULES, {"operator": "any", "rules": []}),
    _example(wire.QuorumRule, _RULES, {"operator": "quorum", "required": 1, "rules": [], "distinct_principals": False}),
    _example(wire.PrincipalRule, _RULES, {"operator": "principal", "id": "human:noor"}),
    _example(wire.RoleRule, _RULES, {"operator": "role", "name": "keeper"}),
    _example(wire.GroupRule, _RULES, {"operator": "group", "name": "night"}),
    _example(wire.TenantPolicyRule, _RULES, {"operator": "tenant_policy", "policy_id": "clear-v1"}),
    _example(wire.ExternalSystemRule, _RULES, {"operator": "external_system", "system": "tickets"}),
    _example(
        wire.DelegatedAuthorityRule,
        _RULES,
        {"operator": "delegated_authority", "scope": "shelf", "max_risk": "high", "max_value": 9},
    ),
    _example(wire.Action, "action", ACTION),
    _example(wire.Conversation, "action#/$defs/conversation", CONVERSATION),
    _example(wire.DelegationEntry, "action#/$defs/delegation_entry", DELEGATION),
    _example(wire.FederationContext, "action#/$defs/federation", ACTION["federation"]),
    _example(wire.Callback, "action#/$defs/callback", CALLBACK),
    _example(wire.ObservabilityContext, "action#/$defs/observability", ACTION["observability"]),
    _example(wire.ComplianceContext, "action#/$defs/compliance", ACTION["compliance"]),
    _example(wire.ActionTransaction, "action_transaction", TRANSACTION),
    _example(wire.Cancel, "cancel", {"target": {"action": "act_01"}, "reason": "wrong shelf"}),
    _example(wire.CancelTarget, "cancel#/$defs/target", {"session": "sess_01"}),
    _example(wire.ActionResult, "action_result", RESULT),
    _example(wire.Usage, "action_result#/$defs/usage", USAGE),
    _example(wire.ReceiptRef, "action_result#/$defs/receipt_ref", {"id": "rcpt_01", "hash": HASH}),
    _example(wire.TextPart, "message_part", {"type": "text", "text": "Ünïcode \u2028", "format": "plain"}),
    _example(
        wire.ImagePart,
        "message_part",
        {"type": "image", "url": "https://x.example/a", "data": "aGk=", "mime_type": "image/png", "alt": "a shelf"},
    ),
    _example(
        wire.FilePart,
        "message_part",
        {
            "type": "file",
            "url": "https://x.example/b",
            "data": "aGk=",
            "mime_type": "text/plain",
            "filename": "b.txt",
            "size_bytes": 2,
        },
    ),
    _example(
        wire.AudioPart,
        "message_part",
        {"type": "audio", "url": "https://x.example/c", "data": "aGk=", "mime_type": "audio/ogg", "transcript": "hm"},
    ),
    _example(wire.FormPart, "message_part", {"type": "form", "fields": [], "actions": [None, 1]}),
    _example(
        wire.CardPart,
        "message_part",
        {"type": "card", "title": "Shelf", "body": "b-12", "actions": [{"label": "clear"}], "media": {"url": "d"}},
    ),
    _example(wire.JsonPart, "message_part", JSON_PART),
    _example(
        wire.ToolResultPart,
        "message_part",
        {"type": "tool_result", "tool_call_id": "c-1", "data": {"ok": True}, "error": {"code": "none"}},
    ),
    _example(wire.ProtocolError, "protocol_error", ERROR),
    _example(wire.ErrorBody, "error", {"error": ERROR}),
    _example(
        wire.Ack,
        "ack",
        {"action_id": "act_01", "status": "queued", "reason": "later", "retry_after_ms": 500, "queue": {"depth": 3}},
    ),
    _example(wire.StreamChunk, "stream_chunk", CHUNK),
    _example(wire.ActionStatus, "action_status", STATUS),
    _example(
        wire.ActionStatusRequest,
        "action_status_request",
        {
            "action_id": "act_01",
            "tenant_id": _TENANT,
            "include_result": True,
            "include_receipts": False,
            "include_chunks": True,
            "wait_ms": 250,
        },
    ),
    _example(
        wire.ActionResultRequest,
        "action_result_request",
        {
            "action_id": "act_01",
            "tenant_id": _TENANT,
            "wait_ms": 250,
            "include_receipt": False,
            "include_terminal_events": True,
        },
    ),
    _example(
        wire.ActionListRequest,
        "action_list_request",
        {
            "state": "running",
            "capability_id": CLEAR,
            "session_id": "sess_01",
            "principal_id": "human:mira",
            "approval_id": "appr_01",
            "transaction_id": "txn_01",
            "tenant_id": _TENANT,
            **_PAGE,
            "include_results": False,
            "include_receipts": True,
        },
    ),
    _example(wire.ActionList, "action_list", {"actions": [STATUS], "total_size": 41, "cursor": "offset:1"}),
    _example(
        wire.ActionEventsRequest,
        "action_events_request",
        {
            "action_id": "act_01",
            "tenant_id": _TENANT,
            **_PAGE,
            "kinds": ["aip.action.result"],
            "include_chunks": False,
            "follow": True,
        },
    ),
    _example(
        wire.ActionEvents,
        "action_events",
        {"action_id": "act_01", "events": [EVENT], "chunks": [CHUNK], "cursor": "aev_cursor_1_0", "terminal": True},
    ),
    _example(wire.Event, "event", EVENT),
    _example(wire.EventStreamRequest, "event_stream_request", {**_PAGE, "kinds": ["aip.action.result"]}),
    _example(wire.EventStream, "event_stream", {"events": [EVENT], "next_cursor": "evt_cursor_2"}),
    _example(wire.ApprovalRequest, "approval_request", REQUEST),
    _example(wire.ApprovalDecision, "approval_decision", DECISION),
    _example(wire.ApprovalConstraint, "approval_decision#/$defs/constraint", CONSTRAINT),
    _example(wire.EvidenceArtifact, "evidence_artifact", EVIDENCE),
    _example(wire.ApprovalRecordView, "approval_record_view", RECORD),
    _example(wire.ApprovalEvidencePayload, "approval_evidence_payload", PAYLOAD),
    _example(wire.ApprovalList, "approval_list", {"approvals": [RECORD], "cursor": "offset:1"}),
    _example(
        wire.ApprovalQueryRequest,
        "approval_query_request",
        {
            "approval_id": "appr_01",
            "tenant_id": _TENANT,
            "include_action_status": True,
            "include_receipts": False,
            "include_evidence_payload": True,
        },
    ),
    _example(
        wire.ApprovalListRequest,
        "approval_list_request",
        {
            "status": "pending",
            "approver": "human:noor",
            "requester": "human:mira",
            "tenant_id": _TENANT,
            **_PAGE,
            "include_action_status": True,
            "include_receipts": False,
        },
    ),
    _example(wire.Receipt, "receipt", RECEIPT),
    _example(wire.ReceiptChain, "receipt_chain", CHAIN),
    _example(wire.AuditEvent, "audit_event", AUDITED),
    _example(
        wire.AuditQueryResult,
        "audit_query_result",
        {"events": [AUDITED], "receipt_chains": [CHAIN], "cursor": "offset:20"},
    ),
    _example(wire.ReceiptQueryRequest, "receipt_query_request", {"chain_id": "approval:appr_01"}),
)
EXAMPLES: Mapping[str, Example] = MappingProxyType({example.type.__name__: example for example in _ALL})
"""Model name → example."""
