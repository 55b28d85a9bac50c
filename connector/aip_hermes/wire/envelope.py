"""The envelope, and which message types there are.

Source: wire model §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from aip_hermes.wire.action import Action, Cancel
from aip_hermes.wire.approval import ApprovalDecision, ApprovalRequest
from aip_hermes.wire.event import ActionEvents, ActionEventsRequest, EventStream, EventStreamRequest, StreamChunk
from aip_hermes.wire.failure import ErrorBody
from aip_hermes.wire.manifest import Manifest, ManifestRequest
from aip_hermes.wire.model import Json, Time, Wire
from aip_hermes.wire.principal import Principal
from aip_hermes.wire.receipt import ReceiptChain, ReceiptQueryRequest
from aip_hermes.wire.result import Ack, ActionResult
from aip_hermes.wire.status import (
    ActionList,
    ActionListRequest,
    ActionResultRequest,
    ActionStatus,
    ActionStatusRequest,
    ApprovalList,
    ApprovalListRequest,
    ApprovalQueryRequest,
    ApprovalRecordView,
)
from aip_hermes.wire.times import rfc3339

__all__ = ["AIP_VERSION", "BODY_MODELS", "MESSAGE_TYPES", "Envelope", "body_key", "new_envelope"]

AIP_VERSION = "1.0"

MESSAGE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "handshake": "aip.core.v1.handshake",
        "handshake_response": "aip.core.v1.handshake_response",
        "action": "aip.core.v1.action",
        "ack": "aip.core.v1.ack",
        "stream_chunk": "aip.core.v1.stream_chunk",
        "action_result": "aip.core.v1.action_result",
        "action_status_request": "aip.lifecycle.v1.action_status_request",
        "action_status": "aip.lifecycle.v1.action_status",
        "action_result_request": "aip.lifecycle.v1.action_result_request",
        "action_list_request": "aip.lifecycle.v1.action_list_request",
        "action_list": "aip.lifecycle.v1.action_list",
        "action_events_request": "aip.lifecycle.v1.action_events_request",
        "action_events": "aip.lifecycle.v1.action_events",
        "approval_request": "aip.policy.v1.approval_request",
        "approval_decision": "aip.policy.v1.approval_decision",
        "approval_query_request": "aip.policy.v1.approval_query_request",
        "approval_list_request": "aip.policy.v1.approval_list_request",
        "approval_record_view": "aip.policy.v1.approval_record_view",
        "approval_list": "aip.policy.v1.approval_list",
        "callback_delivery_query_request": "aip.callback.v1.delivery_query_request",
        "callback_delivery_list_request": "aip.callback.v1.delivery_list_request",
        "callback_delivery_record": "aip.callback.v1.delivery_record",
        "callback_delivery_list": "aip.callback.v1.delivery_list",
        "session_request": "aip.session.v1.session_request",
        "session_view": "aip.session.v1.session_view",
        "session_list_request": "aip.session.v1.session_list_request",
        "session_list": "aip.session.v1.session_list",
        "session_close_request": "aip.session.v1.session_close_request",
        "session_resume_request": "aip.session.v1.session_resume_request",
        "session_resume": "aip.session.v1.session_resume",
        "delegation_request": "aip.agent.v1.delegation_request",
        "delegation_result": "aip.agent.v1.delegation_result",
        "transaction_request": "aip.transaction.v1.request",
        "transaction_result": "aip.transaction.v1.result",
        "transaction_query_request": "aip.transaction.v1.query_request",
        "transaction_view": "aip.transaction.v1.view",
        "error": "aip.core.v1.error",
        "cancel": "aip.core.v1.cancel",
        "heartbeat": "aip.core.v1.heartbeat",
        "heartbeat_ack": "aip.core.v1.heartbeat_ack",
        "escalation": "aip.core.v1.escalation",
        "escalation_resolution": "aip.core.v1.escalation_resolution",
        "manifest_request": "aip.discovery.v1.manifest_request",
        "manifest": "aip.discovery.v1.manifest_response",
        "event_stream_request": "aip.discovery.v1.event_stream_request",
        "event_stream": "aip.discovery.v1.event_stream_response",
        "channel_message": "aip.channel.v1.message_created",
        "conversation": "aip.channel.v1.conversation_updated",
        "receipt_chain": "aip.audit.v1.receipt_chain",
        "receipt_query_request": "aip.audit.v1.receipt_query_request",
        "audit_event": "aip.audit.v1.audit_event",
        "audit_query_request": "aip.audit.v1.audit_query_request",
        "audit_query_result": "aip.audit.v1.audit_query_result",
        "resource_list_request": "aip.resource.v1.resource_list_request",
        "resource_list": "aip.resource.v1.resource_list",
        "resource_read_request": "aip.resource.v1.resource_read_request",
        "resource_read_result": "aip.resource.v1.resource_read_result",
        "batch_settlement": "aip.economic.v1.batch_settlement",
    }
)
"""Body key → message type."""

_TYPES = frozenset(MESSAGE_TYPES.values())

BODY_MODELS: Mapping[str, type[Wire]] = MappingProxyType(
    {
        "action": Action,
        "ack": Ack,
        "stream_chunk": StreamChunk,
        "action_result": ActionResult,
        "action_status_request": ActionStatusRequest,
        "action_status": ActionStatus,
        "action_result_request": ActionResultRequest,
        "action_list_request": ActionListRequest,
        "action_list": ActionList,
        "action_events_request": ActionEventsRequest,
        "action_events": ActionEvents,
        "approval_request": ApprovalRequest,
        "approval_decision": ApprovalDecision,
        "approval_query_request": ApprovalQueryRequest,
        "approval_list_request": ApprovalListRequest,
        "approval_record_view": ApprovalRecordView,
        "approval_list": ApprovalList,
        "error": ErrorBody,
        "cancel": Cancel,
        "manifest_request": ManifestRequest,
        "manifest": Manifest,
        "event_stream_request": EventStreamRequest,
        "event_stream": EventStream,
        "receipt_chain": ReceiptChain,
        "receipt_query_request": ReceiptQueryRequest,
    }
)
"""Body key → the model of its value. A body of another key stays a plain JSON object."""


def _known_type(message_type: str) -> str:
    if message_type not in _TYPES:
        raise PydanticCustomError("aip_message_type", "the message type is unknown")
    return message_type


def _single_known_body(body: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if len(body) != 1:
        raise PydanticCustomError("aip_body", "a body has exactly one member")
    [(key, value)] = body.items()
    if key not in MESSAGE_TYPES:
        raise PydanticCustomError("aip_body", "the body key is unknown")
    model = BODY_MODELS.get(key)
    if model is not None:
        return {key: value if isinstance(value, model) else model.model_validate(value, context=info.context)}
    if not isinstance(value, dict):
        raise PydanticCustomError("aip_body", "the value of a body key is an object")
    return body


class Envelope(Wire):
    """One message. body: exactly one key of `MESSAGE_TYPES`; its value is a model where `BODY_MODELS` has one.

    in_response_to: a message id or a correlation id, without a tag.
    """

    aip_version: str
    message_type: Annotated[str, AfterValidator(_known_type)]
    message_id: str
    sent_at: Time
    body: Annotated[dict[str, Any], AfterValidator(_single_known_body)]
    session_id: str | None = None
    correlation_id: str | None = None
    in_response_to: str | None = None
    idempotency_key: str | None = None
    from_: Principal | None = Field(default=None, alias="from")
    to: Principal | None = None
    trace: Json | None = None
    security: Json | None = None
    extensions: Json | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.aip_version != AIP_VERSION:
            yield f"aip_version is not {AIP_VERSION}"
        if self.message_type != MESSAGE_TYPES[body_key(self)]:
            yield "message_type does not belong to the body"
        if not self.message_id:
            yield "message_id is empty"
        if self.idempotency_key == "":
            yield "idempotency_key is empty"

    @property
    def content(self) -> Any:
        """The value of the one body key."""
        [value] = self.body.values()
        return value


def body_key(envelope: Envelope) -> str:
    """Return the one key of the body."""
    [key] = envelope.body
    return key


def new_envelope(
    body: Mapping[str, Any],
    *,
    message_id: str,
    sent_at_ms: int,
    session_id: str | None = None,
    correlation_id: str | None = None,
    in_response_to: str | None = None,
    idempotency_key: str | None = None,
    from_: Principal | None = None,
    to: Principal | None = None,
    trace: Json | None = None,
    security: Json | None = None,
    extensions: Json | None = None,
) -> Envelope:
    """Wrap `{body key: model or JSON object}`; the message type follows from the key.

    Raises: ValidationError.
    """
    key = next(iter(body), "")
    return Envelope(
        aip_version=AIP_VERSION,
        message_type=MESSAGE_TYPES.get(key, "(none)"),
        message_id=message_id,
        sent_at=rfc3339(sent_at_ms),
        body=dict(body),
        session_id=session_id,
        correlation_id=correlation_id,
        in_response_to=in_response_to,
        idempotency_key=idempotency_key,
        from_=from_,
        to=to,
        trace=trace,
        security=security,
        extensions=extensions,
    )
