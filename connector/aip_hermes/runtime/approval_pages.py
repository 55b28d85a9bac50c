"""Pages of the approvals that a caller may see, oldest first; a page is one read of the store.

A cursor counts all approvals that the filters leave, those included that the caller may not see: what it may see can
change between two pages. Inside a page the next slice begins behind the last row of the one before.
Source: AIP HTTP surface §9.2, §9.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime.receipts import approval_chain, fetch_chain
from aip_hermes.runtime.status_view import status_of
from aip_hermes.runtime.store import QUERIES, from_json
from aip_hermes.runtime.unreadable import UNREADABLE, note_unreadable
from aip_hermes.runtime.visible_approvals import Sight

__all__ = ["ApprovalsAsked", "Shown", "approval_page", "shown", "view_of", "views_of"]

_SLICE: Final = 200

_Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalsAsked:
    """Which approvals are wanted; None for whatever. start: how many to leave out. size: of the page."""

    status: str | None = None
    approver: str | None = None
    requester: str | None = None
    start: int = 0
    size: int
    action_status: bool = False
    receipts: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What is told of an approval. row: with `vote`, the record of the newest vote while it is undecided."""

    row: _Row
    action: wire.ActionStatus | None
    chain: wire.ReceiptChain | None


def approval_page(
    connection: Connection, asked: ApprovalsAsked, *, tenant: str, sight: Sight
) -> tuple[list[Shown], int | None]:
    """Return a page, and where the next one starts or None."""
    found: list[Shown] = []
    offset, place = asked.start, {"created_at": -1, "place": "", "offset": asked.start}
    params = {
        "tenant": tenant,
        "status": asked.status,
        "requester": asked.requester,
        "approver": asked.approver,
        "me": sight.principal_id,
        "limit": _SLICE,
    }
    while rows := connection.execute(QUERIES["list_approvals"], {**params, **place}):
        for row in rows:
            try:
                if _is_of(row, asked.approver) and sight.sees(row):
                    if len(found) == asked.size:
                        return found, offset
                    found.append(shown(connection, row, action_status=asked.action_status, receipts=asked.receipts))
            except UNREADABLE as exc:
                note_unreadable(row["approval_id"], exc)
            offset += 1
        place = {"created_at": rows[-1]["created_at"], "place": rows[-1]["approval_id"], "offset": 0}
    return found, None


def shown(connection: Connection, row: _Row, *, action_status: bool, receipts: bool) -> Shown:
    """Look up what is asked for besides the approval itself."""
    action = None
    if action_status:
        address = {"tenant": row["tenant"], "action_id": row["action_id"]}
        action = status_of(connection.execute(QUERIES["fetch_action"], address)[0], include_result=False)
    chain = None
    if receipts:
        chain = fetch_chain(connection, tenant=row["tenant"], chain_id=approval_chain(row["approval_id"]))
    return Shown(row=row, action=action, chain=chain)


def view_of(told: Shown, *, payload: Mapping[str, Any] | None = None) -> wire.ApprovalRecordView:
    """Return an approval as it is answered. payload: the frozen input, for who may see it."""
    row = told.row
    members: dict[str, Any] = {
        "request": from_json(row["request"]),
        "decision": from_json(row["decision"] if row["vote"] is None else row["vote"]),
        "status": row["status"],
        "action_status": told.action,
        "receipt_chain": told.chain,
        "created_at": wire.rfc3339(row["created_at"]),
        "updated_at": wire.rfc3339(row["updated_at"]),
        "evidence_payload": payload,
    }
    return wire.ApprovalRecordView.model_validate({name: value for name, value in members.items() if value is not None})


def views_of(page: Sequence[Shown]) -> list[wire.ApprovalRecordView]:
    """Return the approvals of a page as they are answered; one that can't be read is left out, and the log says so."""
    views = []
    for told in page:
        try:
            views.append(view_of(told))
        except UNREADABLE as exc:
            note_unreadable(told.row["approval_id"], exc)
    return views


def _is_of(row: _Row, approver: str | None) -> bool:
    """Whether this principal decided, voted, or is the one who was asked; None for whoever."""
    if approver is None or row["decided_by"] == approver or row["approver_voted"]:
        return True
    selector = from_json(row["request"])["approver_selector"]
    return bool(selector["type"] == "principal" and selector["id"] == approver)
