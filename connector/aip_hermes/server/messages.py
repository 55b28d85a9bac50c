"""`POST /aip/v1/messages` and `/aip/v1/actions`: one envelope in, one envelope out.

The checks run in the order of the HTTP surface, "POST /aip/v1/messages"; dispatch is one table by body key. What the
runtime answers is HTTP 200, whatever it says; a read that fails is an `error` body, also 200; everything else that is
refused never became an action and is an error envelope with the status of its category.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from aip_hermes import wire
from aip_hermes.errors import AipError, RequestRefused
from aip_hermes.ids import (
    ActionId,
    AipSessionId,
    ApprovalId,
    CapabilityId,
    CorrelationId,
    IdentityError,
    MessageId,
    PrincipalId,
    ReceiptId,
    TenantId,
)
from aip_hermes.runtime.caller import Arrival, Caller, MessageContext
from aip_hermes.runtime.failures import MemberRefused
from aip_hermes.runtime.records import ActionsAsked
from aip_hermes.server.body import check_content_type, parse_json, read_limited
from aip_hermes.server.failures import BodyUnsupported, EnvelopeInvalid, EnvelopeUndecodable
from aip_hermes.server.gateway import Gateway, check_tenant, noted
from aip_hermes.server.reply import error_body

__all__ = ["MAX_LIST_LIMIT", "Messages", "clamped"]

Body = Mapping[str, wire.Wire]
Serve = Callable[[Any, Caller, MessageContext], Awaitable[Body]]

MAX_LIST_LIMIT: Final = 1000
UNKNOWN_BYTES: Final = 64 * 1024
"""What is decoded before the caller is known: a megabyte may take a processor a second, and all others wait."""


class Messages:
    """The two message routes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._commands: Final[Mapping[str, Serve]] = {
            "action": self._action,
            "approval_decision": self._decision,
            "cancel": self._cancel,
        }
        self._reads: Final[Mapping[str, Serve]] = {
            "action_status_request": self._status,
            "action_result_request": self._result,
            "action_events_request": self._events,
            "action_list_request": self._actions,
            "approval_list_request": self._approvals,
            "approval_query_request": self._approval,
            "event_stream_request": self._log,
            "manifest_request": self._manifest,
            "receipt_query_request": self._receipts,
        }

    async def post(self, request: Request) -> Response:
        """Answer one envelope."""
        envelope = _decoded(await self._read(request))
        caller = self._gateway.authenticate(request)
        arrival = Arrival(message_id=MessageId(envelope.message_id), sent_at_ms=wire.parse_rfc3339(envelope.sent_at))
        key = wire.body_key(envelope)
        if key != "action":  # an action takes its message along, into its own first transaction
            await self._gateway.runtime.claim_message(arrival.message_id, arrival.sent_at_ms, caller)
        noted(request)["message"] = key
        if key == "action":
            noted(request)["action_id"] = envelope.content.id[:128]
        return self._gateway.replies.answer(await self._serve(key, envelope, caller, arrival), envelope)

    async def _read(self, request: Request) -> Any:
        check_content_type(request.headers)
        data = await read_limited(
            request.stream(),
            announced=request.headers.get("content-length"),
            max_bytes=self._gateway.max_request_bytes,
        )
        if len(data) > UNKNOWN_BYTES:
            self._gateway.authenticate(request)
        return parse_json(data)

    async def _serve(self, key: str, envelope: wire.Envelope, caller: Caller, arrival: Arrival) -> Mapping[str, Any]:
        context = _context(envelope, arrival)
        if key in self._commands:
            return await self._commands[key](envelope.content, caller, context)
        if key not in self._reads:
            raise BodyUnsupported(f"this server does not serve `{key}` messages")
        try:
            return await self._reads[key](envelope.content, caller, context)
        except RequestRefused as exc:
            return error_body(exc)

    async def _action(self, action: wire.Action, caller: Caller, context: MessageContext) -> Body:
        answer = await self._gateway.runtime.submit(action, caller, context)
        return {"ack" if isinstance(answer, wire.Ack) else "action_result": answer}

    async def _decision(self, decision: wire.ApprovalDecision, caller: Caller, context: MessageContext) -> Body:
        return {"event_stream": await self._gateway.runtime.decide(decision, caller)}

    async def _cancel(self, cancel: wire.Cancel, caller: Caller, context: MessageContext) -> Body:
        if cancel.target.action is None:
            raise BodyUnsupported("this server cancels actions only")
        action_id = _identity(ActionId, cancel.target.action, "target.action")
        return {"action_result": await self._gateway.runtime.cancel(action_id, caller, reason=cancel.reason)}

    async def _events(self, asked: wire.ActionEventsRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        page = await self._gateway.runtime.events(
            _identity(ActionId, asked.action_id, "action_id"),
            caller,
            cursor=asked.cursor,
            limit=clamped(asked.limit),
            kinds=asked.kinds,
            include_chunks=asked.include_chunks,
        )
        return {"action_events": page}

    async def _status(self, asked: wire.ActionStatusRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        action_id = _identity(ActionId, asked.action_id, "action_id")
        status = await self._gateway.runtime.status(action_id, caller, include_result=asked.include_result)
        return {"action_status": status}

    async def _result(self, asked: wire.ActionResultRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        action_id = _identity(ActionId, asked.action_id, "action_id")
        return {"action_result": await self._gateway.runtime.result(action_id, caller)}

    async def _approvals(self, asked: wire.ApprovalListRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        page = await self._gateway.runtime.approvals(
            caller,
            status=asked.status,
            approver=_optional(PrincipalId, asked.approver, "approver"),
            requester=_optional(PrincipalId, asked.requester, "requester"),
            tenant_id=_optional(TenantId, asked.tenant_id, "tenant_id"),
            cursor=asked.cursor,
            limit=clamped(asked.limit),
            include_action_status=asked.include_action_status,
            include_receipts=asked.include_receipts,
        )
        return {"approval_list": page}

    async def _approval(self, asked: wire.ApprovalQueryRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        view = await self._gateway.runtime.approval(
            _identity(ApprovalId, asked.approval_id, "approval_id"),
            caller,
            include_action_status=asked.include_action_status,
            include_evidence_payload=asked.include_evidence_payload,
            include_receipts=asked.include_receipts,
        )
        return {"approval_record_view": view}

    async def _actions(self, asked: wire.ActionListRequest, caller: Caller, context: MessageContext) -> Body:
        check_tenant(asked.tenant_id, caller)
        if asked.transaction_id is not None:
            return {"action_list": wire.ActionList(actions=[], total_size=0)}  # no action of ours belongs to one
        wanted = ActionsAsked(
            state=asked.state,
            capability_id=_optional(CapabilityId, asked.capability_id, "capability_id"),
            session_id=_optional(AipSessionId, asked.session_id, "session_id"),
            principal_id=_optional(PrincipalId, asked.principal_id, "principal_id"),
            approval_id=_optional(ApprovalId, asked.approval_id, "approval_id"),
            tenant_id=_optional(TenantId, asked.tenant_id, "tenant_id"),
            cursor=asked.cursor,
            limit=clamped(asked.limit),
            include_results=asked.include_results,
            include_receipts=asked.include_receipts,
        )
        return {"action_list": await self._gateway.runtime.records.actions(caller, wanted)}

    async def _log(self, asked: wire.EventStreamRequest, caller: Caller, context: MessageContext) -> Body:
        page = await self._gateway.runtime.records.events(
            caller, cursor=asked.cursor, limit=clamped(asked.limit), kinds=asked.kinds
        )
        return {"event_stream": page}

    async def _receipts(self, asked: wire.ReceiptQueryRequest, caller: Caller, context: MessageContext) -> Body:
        chain = await self._gateway.runtime.records.receipts(
            caller,
            chain_id=asked.chain_id,
            receipt_id=_optional(ReceiptId, asked.receipt_id, "receipt_id"),
        )
        return {"receipt_chain": chain}

    async def _manifest(self, asked: wire.ManifestRequest, caller: Caller, context: MessageContext) -> Body:
        wanted = asked.filter or wire.ManifestFilter()
        if asked.profiles and not wanted.profiles:
            wanted = wanted.model_copy(update={"profiles": asked.profiles})
        return {"manifest": self._gateway.manifest(caller.tenant_id, wanted)}


def clamped(limit: int | None) -> int | None:
    """Return a page size of 1…1000, or None where none was asked for."""
    return None if limit is None else min(max(limit, 1), MAX_LIST_LIMIT)


def _decoded(raw: Any) -> wire.Envelope:
    violations = wire.envelope_violations(raw)
    if violations:
        raise EnvelopeInvalid("; ".join(dict.fromkeys(violations)), details={"schema": "envelope.schema.json"})
    try:
        envelope = wire.Envelope.model_validate(raw)
    except ValidationError as exc:
        said = "; ".join(wire.violations(exc))
        refusal: type[AipError] = MemberRefused if wire.breaks_rules_only(exc) else EnvelopeUndecodable
        raise refusal(said) from None
    for kind, value, name in (
        (MessageId, envelope.message_id, "message_id"),
        (AipSessionId, envelope.session_id, "session_id"),
        (CorrelationId, envelope.correlation_id, "correlation_id"),
    ):
        if value is not None:
            _identity(kind, value, name)
    return envelope


def _context(envelope: wire.Envelope, arrival: Arrival) -> MessageContext:
    session, correlation = envelope.session_id, envelope.correlation_id
    return MessageContext(
        aip_session_id=None if session is None else AipSessionId(session),
        correlation_id=None if correlation is None else CorrelationId(correlation),
        arrival=arrival,
    )


def _optional(kind: type[Any], value: str | None, name: str) -> Any:
    return None if value is None else _identity(kind, value, name)


def _identity(kind: type[Any], value: str, name: str) -> Any:
    try:
        return kind(value)
    except IdentityError as exc:
        raise EnvelopeUndecodable(f"{name}: {exc}") from None
