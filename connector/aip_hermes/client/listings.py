"""What an AIP server lists and says about itself and about actions, with types.

Each object keeps its JSON as received in `raw`, unknown members included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from aip_hermes import wire
from aip_hermes.client.failures import Undecodable
from aip_hermes.client.members import a_count, a_list, a_text, an_identity, an_object, text_or_none
from aip_hermes.client.reply import JsonObject
from aip_hermes.ids import ActionId, ApprovalId, CapabilityId, PrincipalId, TenantId

__all__ = [
    "Approval",
    "ApprovalPage",
    "CapabilityPage",
    "Decided",
    "EventPage",
    "Listed",
    "Me",
    "Progress",
    "approval_page",
    "capability_page",
    "event_page",
    "me_of",
    "progress_of",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """Who the token is."""

    principal_id: PrincipalId
    kind: str
    tenant_id: TenantId | None
    scopes: frozenset[str]
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One capability of the catalogue. The digests, `sha256:<hex>`, change when contract or schemas do."""

    capability: wire.Capability
    contract_digest: str | None
    schema_digest: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CapabilityPage:
    """One page of the catalogue. next_cursor: None on the last page."""

    catalog_revision: int | None
    capabilities: tuple[Listed, ...]
    next_cursor: str | None
    total: int | None
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where an action stands. state: `unknown` for an id that the server never received, or has forgotten."""

    action_id: ActionId
    state: str
    terminal: bool
    result_status: str | None
    approval_id: ApprovalId | None
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class EventPage:
    """One page of an action's events, oldest first. Go on with `cursor` until it is `terminal`."""

    action_id: ActionId
    events: tuple[JsonObject, ...]
    chunks: tuple[JsonObject, ...]
    cursor: str | None
    terminal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """One approval as its list shows it. status: `pending`, `approved`, `denied`, `expired`, `revoked`."""

    approval_id: ApprovalId
    action_id: ActionId
    capability_id: CapabilityId
    requester_id: PrincipalId
    status: str
    reason: str | None
    expires_at: str | None
    raw: JsonObject = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalPage:
    """One page of approvals, oldest first. cursor: None on the last page."""

    approvals: tuple[Approval, ...]
    cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """A decision that was taken. raw: what the server answered, with the events of the action that it released."""

    approval_id: ApprovalId
    decision_id: str
    decision: Literal["approved", "denied"]
    raw: JsonObject = field(repr=False)


def me_of(raw: JsonObject) -> Me:
    """Read `/aip/v1/me`."""
    principal, scopes = an_object(raw, "principal", "me"), a_list(raw, "scopes", "me")
    return Me(
        principal_id=PrincipalId(a_text(principal, "id", "principal")),
        kind=a_text(principal, "kind", "principal"),
        tenant_id=an_identity(TenantId, raw.get("tenant_id")),
        scopes=frozenset(map(str, scopes)),
        raw=raw,
    )


def capability_page(raw: JsonObject) -> CapabilityPage:
    """Read a page of the catalogue."""
    found = a_list(raw, "capabilities", "the catalogue")
    capabilities = tuple(map(_listed, found))
    return CapabilityPage(
        catalog_revision=a_count(raw.get("catalog_revision")),
        capabilities=capabilities,
        next_cursor=text_or_none(raw.get("next_cursor")),
        total=a_count(raw.get("total")),
        raw=raw,
    )


def _listed(entry: Any) -> Listed:
    raw: JsonObject = entry if isinstance(entry, dict) else {}
    try:
        capability = wire.lenient(wire.Capability, an_object(raw, "capability", "an entry of the catalogue"))
    except ValidationError as exc:
        raise Undecodable(f"the catalogue holds what is no capability: {wire.violations(exc)[0]}") from None
    return Listed(
        capability=capability,
        contract_digest=text_or_none(raw.get("contract_digest")),
        schema_digest=text_or_none(raw.get("schema_digest")),
    )


def progress_of(raw: JsonObject) -> Progress:
    """Read `{"action_status": …}`."""
    status = an_object(raw, "action_status", "the status")
    state = a_text(status, "state", "action_status")
    return Progress(
        action_id=ActionId(a_text(status, "action_id", "action_status")),
        state=state,
        terminal=state in wire.TERMINAL_STATES,
        result_status=text_or_none(status.get("result_status")),
        approval_id=an_identity(ApprovalId, status.get("approval_id")),
        raw=status,
    )


def event_page(raw: JsonObject) -> EventPage:
    """Read `{"action_events": …}`."""
    page = an_object(raw, "action_events", "the events")
    return EventPage(
        action_id=ActionId(a_text(page, "action_id", "action_events")),
        events=tuple(a_list(page, "events", "action_events")),
        chunks=tuple(a_list({"chunks": [], **page}, "chunks", "action_events")),
        cursor=text_or_none(page.get("cursor")),
        terminal=page.get("terminal") is True,
    )


def approval_page(raw: JsonObject) -> ApprovalPage:
    """Read `{"approval_list": …}`."""
    page = an_object(raw, "approval_list", "the approvals")
    found = a_list(page, "approvals", "approval_list")
    return ApprovalPage(approvals=tuple(map(_approval, found)), cursor=text_or_none(page.get("cursor")))


def _approval(view: Any) -> Approval:
    raw: JsonObject = view if isinstance(view, dict) else {}
    request = an_object(raw, "request", "an approval")
    return Approval(
        approval_id=ApprovalId(a_text(request, "id", "request")),
        action_id=ActionId(a_text(request, "action_id", "request")),
        capability_id=CapabilityId(a_text(request, "capability_id", "request")),
        requester_id=PrincipalId(a_text(an_object(request, "requester", "request"), "id", "requester")),
        status=a_text(raw, "status", "an approval"),
        reason=text_or_none(request.get("reason")),
        expires_at=text_or_none(request.get("expires_at")),
        raw=raw,
    )
