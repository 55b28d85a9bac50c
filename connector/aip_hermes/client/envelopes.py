"""The messages a client sends: an action, a decision. Pure; identities and times are arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from aip_hermes import wire
from aip_hermes.ids import ActionId, CapabilityId, IdempotencyKey, MessageId, PrincipalId

__all__ = ["ActionMode", "action_envelope", "body_envelope", "decision_envelope", "principal_of"]

ActionMode = Literal["sync", "async", "streaming"]


def principal_of(principal_id: PrincipalId) -> wire.Principal:
    """Return the principal with the kind that its id names. Source: command-line client, global options."""
    return wire.Principal(id=str(principal_id), kind=wire.principal_kind(principal_id))


def action_envelope(
    *,
    capability_id: CapabilityId,
    input: Any,
    action_id: ActionId,
    message_id: MessageId,
    sent_at_ms: int,
    principal_id: PrincipalId,
    idempotency_key: IdempotencyKey | None = None,
    mode: ActionMode | None = None,
    extra: Mapping[str, Any] | None = None,
) -> wire.Envelope:
    """Return the envelope of one action; members that were not given are not sent.

    input: any JSON but null. principal_id: the unverified `from`; a server that knows the bearer replaces it. extra:
    further members of the action (`identity`, `approval`, `transaction`).
    """
    action = {"id": str(action_id), "capability_id": str(capability_id), "input": input}
    if mode is not None:
        action["mode"] = mode
    if idempotency_key is not None:
        action["idempotency_key"] = str(idempotency_key)
    return wire.new_envelope(
        {"action": {**action, **(extra or {})}},
        message_id=message_id,
        sent_at_ms=sent_at_ms,
        from_=principal_of(principal_id),
    )


def body_envelope(
    body: Mapping[str, Any], *, message_id: MessageId, sent_at_ms: int, principal_id: PrincipalId
) -> wire.Envelope:
    """Return the envelope of one body object, `{key: content}`, sent as it is."""
    return wire.new_envelope(dict(body), message_id=message_id, sent_at_ms=sent_at_ms, from_=principal_of(principal_id))


def decision_envelope(
    decision: Mapping[str, Any], *, message_id: MessageId, sent_at_ms: int, principal_id: PrincipalId
) -> wire.Envelope:
    """Return the envelope of one `ApprovalDecision`, sent as it is."""
    return wire.new_envelope(
        {"approval_decision": dict(decision)},
        message_id=message_id,
        sent_at_ms=sent_at_ms,
        from_=principal_of(principal_id),
    )
