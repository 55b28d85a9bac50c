"""The protocol's own rules."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from aip_hermes import wire
from tests.support import wire_values as v


def _refusal(model: type[wire.Wire], value: Any) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(value)
    return refused.value


_CONTRACT = v.CONTRACT
_LONG_CHAIN = [v.DELEGATION] * 11


@pytest.mark.requirement("wire:objects:rules")
@pytest.mark.parametrize(
    ("model", "value", "violation"),
    [
        (wire.Envelope, {**v.ENVELOPE, "aip_version": "1.1"}, "(root): aip_version is not 1.0"),
        (
            wire.Envelope,
            {**v.ENVELOPE, "message_type": "aip.core.v1.ack"},
            "(root): message_type does not belong to the body",
        ),
        (wire.Envelope, {**v.ENVELOPE, "message_id": ""}, "(root): message_id is empty"),
        (wire.Envelope, {**v.ENVELOPE, "idempotency_key": ""}, "(root): idempotency_key is empty"),
        (wire.Envelope, {**v.ENVELOPE, "body": {"action": {**v.ACTION, "input": None}}}, "body: input is null"),
        (wire.Action, {**v.ACTION, "input": None}, "(root): input is null"),
        (wire.Action, {**v.ACTION, "timeout_ms": 0}, "(root): timeout_ms is zero"),
        (
            wire.Action,
            {**v.ACTION, "delegation_chain": _LONG_CHAIN},
            "(root): delegation_chain has more than 10 entries",
        ),
        (
            wire.Action,
            {**v.ACTION, "approval": {**v.DECISION, "decision": "denied"}},
            "(root): approval carries another decision than approved",
        ),
        (wire.Action, {**v.ACTION, "identity": {"tenant": {"id": " "}}}, "identity.tenant: id is blank"),
        (wire.ActionTransaction, {"mode": "commit"}, "(root): mode commit needs plan_id"),
        (wire.ActionTransaction, {"mode": "compensate"}, "(root): mode compensate needs compensation_for"),
        (wire.IdentityContext, {"external_account": {"id": "", "system": "s"}}, "external_account: id is blank"),
        (wire.IdentityContext, {"external_user": {"id": "u", "system": "\t"}}, "external_user: system is blank"),
        (wire.CredentialRef, {"id": "k", "issuer": ""}, "(root): issuer is blank"),
        (wire.CredentialRef, {"id": "", "issuer": "i"}, "(root): id is blank"),
        (wire.CredentialRef, {"id": "k", "issuer": "i", "scopes": [" "]}, "(root): scopes has a blank entry"),
        (wire.OAuthCredentialState, {**v.OAUTH, "client_id": ""}, "(root): client_id is empty"),
        (wire.OAuthCredentialState, {**v.OAUTH, "issuer": " "}, "(root): issuer is blank"),
        (wire.OAuthCredentialState, {**v.OAUTH, "scopes": [""]}, "(root): scopes has a blank entry"),
        (
            wire.ActionResult,
            {"action_id": "act_1", "status": "failed"},
            "(root): status failed needs an error",
        ),
        (
            wire.ActionStatus,
            {"action_id": "act_1", "state": "failed", "updated_at": "2031-02-03T04:05:06Z"},
            "(root): state failed needs result_status or a result with an error",
        ),
        (wire.ActionStatusRequest, {"action_id": "act_1", "tenant_id": " "}, "(root): tenant_id is blank"),
        (wire.ActionListRequest, {"tenant_id": ""}, "(root): tenant_id is blank"),
        (
            wire.ActionEventsRequest,
            {"action_id": "act_1", "kinds": [" "]},
            "(root): kinds has a blank entry",
        ),
        (wire.ActionEventsRequest, {"action_id": "act_1", "tenant_id": " "}, "(root): tenant_id is blank"),
        (
            wire.ActionEvents,
            {"action_id": "act_2", "events": [v.EVENT], "terminal": True},
            "(root): events has one of another action",
        ),
        (
            wire.ActionEvents,
            {"action_id": "act_2", "events": [], "chunks": [v.CHUNK], "terminal": True},
            "(root): chunks has one of another action",
        ),
        (wire.ApprovalRequest, {**v.REQUEST, "reason": " "}, "(root): reason is blank"),
        (wire.ApprovalDecision, {**v.DECISION, "reason": ""}, "(root): reason is blank"),
        (wire.ApprovalConstraint, {"field": "", "operator": "eq", "value": 1}, "(root): field is blank"),
        (wire.ApprovalConstraint, {"field": "/a", "operator": "", "value": 1}, "(root): operator is blank"),
        (wire.EvidenceArtifact, {"id": "", "kind": "k", "redacted": True}, "(root): id is blank"),
        (wire.EvidenceArtifact, {"id": "e", "kind": " ", "redacted": True}, "(root): kind is blank"),
        (wire.ApprovalRecordView, {**v.RECORD, "status": ""}, "(root): status is blank"),
        (
            wire.ApprovalRecordView,
            {**v.RECORD, "decision": {**v.DECISION, "approval_id": "appr_2"}},
            "(root): decision is about another approval",
        ),
        (wire.ApprovalQueryRequest, {"approval_id": "appr_1", "tenant_id": " "}, "(root): tenant_id is blank"),
        (wire.ApprovalListRequest, {"status": " "}, "(root): status is blank"),
        (wire.Manifest, {**v.MANIFEST, "manifest_version": " "}, "(root): manifest_version is blank"),
        (wire.Manifest, {**v.MANIFEST, "profiles": []}, "(root): profiles is empty"),
        (wire.Manifest, {**v.MANIFEST, "capabilities": [v.CAPABILITY] * 2}, "(root): capabilities has a repeated id"),
        (wire.Resource, {"id": " ", "name": "n"}, "(root): id is blank"),
        (wire.ManifestFilter, {"resource_kinds": [""]}, "(root): resource_kinds has a blank entry"),
        (wire.Capability, {**v.CAPABILITY, "id": ""}, "(root): id is empty"),
        (wire.Capability, {**v.CAPABILITY, "name": " "}, "(root): name is blank"),
        (wire.Capability, {**v.CAPABILITY, "input_schema": True}, "(root): input_schema is no object"),
        (
            wire.Capability,
            {**v.CAPABILITY, "output_schema": "any"},
            "(root): output_schema is neither an object nor a boolean",
        ),
        (wire.CapabilityContract, {**_CONTRACT, "side_effects": []}, "(root): side_effects is empty"),
        (wire.IdempotencyContract, {**_CONTRACT["idempotency"], "ttl_ms": 0}, "(root): ttl_ms is zero"),
        (
            wire.ExecutionContract,
            {**_CONTRACT["execution"], "supports_sync": False},
            "(root): none of sync, async and streaming is supported",
        ),
        (wire.ServiceLevelContract, {**_CONTRACT["sla"], "timeout_ms": 0}, "(root): a duration is zero"),
        (
            wire.CredentialPolicy,
            {**_CONTRACT["credentials"], "required_scopes": [" "]},
            "(root): accepted_issuers or required_scopes has a blank entry",
        ),
        (
            wire.TransactionContract,
            {**_CONTRACT["transaction"], "supported_modes": []},
            "(root): supported_modes is empty",
        ),
        (
            wire.CompensationContract,
            {"mode": "supported", "requires_approval": False},
            "(root): mode supported needs compensation_capability_id",
        ),
        (wire.ReceiptChain, {"chain_id": "c", "receipts": [v.RECEIPT]}, "(root): root_hash is blank"),
        (wire.ReceiptQueryRequest, {}, "(root): exactly one of chain_id and receipt_id is needed"),
        (
            wire.ReceiptQueryRequest,
            {"chain_id": "c", "receipt_id": "rcpt_1"},
            "(root): exactly one of chain_id and receipt_id is needed",
        ),
        (wire.ReceiptQueryRequest, {"chain_id": " "}, "(root): chain_id is blank"),
    ],
)
def test_an_object_that_breaks_a_rule_is_refused_by_name(
    model: type[wire.Wire], value: dict[str, Any], violation: str
) -> None:
    refusal = _refusal(model, value)
    assert wire.violations(refusal) == [violation]
    assert wire.breaks_rules_only(refusal)
    assert isinstance(wire.lenient(model, value), model)


@pytest.mark.requirement("wire:objects:rules")
@pytest.mark.parametrize(("model", "member"), [(wire.ActionList, "actions"), (wire.ApprovalList, "approvals")])
def test_a_list_reply_holds_at_most_a_page(model: type[wire.Wire], member: str) -> None:
    entry = {"actions": v.STATUS, "approvals": v.RECORD}[member]
    [one] = getattr(model.model_validate({member: [entry], **_total(member)}), member)
    with pytest.raises(ValidationError) as refused:
        model(**{member: [one] * 1001}, **_total(member))
    assert wire.breaks_rules_only(refused.value)


def _total(member: str) -> dict[str, Any]:
    return {"total_size": 1} if member == "actions" else {}


@pytest.mark.requirement("wire:objects:rules")
@pytest.mark.parametrize("key", ["", "  "])
def test_a_blank_idempotency_key_decodes_and_is_left_to_the_fence(key: str) -> None:
    assert wire.Action(id="act_1", capability_id="c", input={}, idempotency_key=key).idempotency_key == key
