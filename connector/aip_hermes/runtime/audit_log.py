"""The audit log as it is queried: who did what when; what belongs to it only for those who may see it.

Source: AIP HTTP surface §3.7, §5.2; runtime behaviour §15, §18.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.ids import ActionId, AipSessionId, PrincipalId, TenantId
from aip_hermes.runtime.access import offset_of, page_size
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.failures import AuditRefused
from aip_hermes.runtime.receipts import approval_chain, fetch_chain
from aip_hermes.runtime.store import QUERIES, from_json

__all__ = ["AuditAsked", "audit_page"]

RESULT: Final = "aip.action.result"
_SENSITIVE: Final = ("audit:sensitive", "data:sensitive:read", "*")
EVER: Final = 2**62


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditAsked:
    """Which records are wanted; None for whatever. since, until: Unix milliseconds, inclusive.

    export: as evidence for others, which needs a scope of its own, as receipts do.
    """

    action_id: ActionId | None = None
    session_id: AipSessionId | None = None
    principal_id: PrincipalId | None = None
    transaction_id: str | None = None
    tenant_id: TenantId | None = None
    since: int = 0
    until: int = EVER
    cursor: str | None = None
    limit: int | None = None
    include_receipts: bool = False
    export: bool = False


def audit_page(connection: Connection, caller: Caller, asked: AuditAsked, *, tenant: str) -> wire.AuditQueryResult:
    """Return a page, oldest first. Raises: AuditRefused, InvalidCursor."""
    others = _check_scopes(caller, asked)
    start, size = offset_of(asked.cursor), page_size(asked.limit)
    if asked.transaction_id is not None:
        return wire.AuditQueryResult(events=[])  # no action of ours belongs to a transaction
    rows = connection.execute(
        QUERIES["list_audit" if asked.action_id is None else "list_audit_of_action"],
        {
            "tenant": tenant,
            "action_id": asked.action_id,
            "since": asked.since,
            "until": asked.until,
            "actor": asked.principal_id if others else caller.principal.id,
            "session": asked.session_id,
            "limit": size + 1,
            "offset": start,
        },
    )
    more, rows = len(rows) > size, rows[:size]
    sensitive = not caller.scopes.isdisjoint(_SENSITIVE)
    chains = _chains(connection, rows, tenant=tenant) if asked.include_receipts else []
    if not sensitive:
        chains = [_without_data(chain) for chain in chains]
    return wire.AuditQueryResult(
        events=[_event(row, sensitive=sensitive) for row in rows],
        receipt_chains=chains,
        cursor=f"offset:{start + size}" if more else None,
    )


def _check_scopes(caller: Caller, asked: AuditAsked) -> bool:
    """Return whether the caller may read records of other actors."""
    needed = ["audit:read", *(["audit:export"] if asked.export or asked.include_receipts else [])]
    for scope in needed:
        if not caller.may(scope):
            raise _refused(scope.split(":")[1].capitalize(), f"this needs the scope {scope}")
    others = caller.may_read_others("audit")
    if not others and asked.principal_id not in (None, caller.principal.id):
        raise _refused("Read", "records of other principals need the scope audit:read:any")
    return others


def _event(row: Mapping[str, Any], *, sensitive: bool) -> wire.AuditEvent:
    record = from_json(row["record"])
    members: dict[str, Any] = {
        "id": row["audit_id"],
        "actor": {"id": row["actor_id"], "kind": wire.principal_kind(row["actor_id"])},
        "identity": {"tenant": {"id": row["tenant"]}} if row["tenant"] else None,
        "action": record.pop("action", RESULT),
        "occurred_at": wire.rfc3339(row["occurred_at"]),
        "data": {name: value for name, value in record.items() if value is not None} if sensitive else None,
    }
    return wire.AuditEvent.model_validate({name: value for name, value in members.items() if value is not None})


def _chains(connection: Connection, rows: list[dict[str, Any]], *, tenant: str) -> list[wire.ReceiptChain]:
    """Return the chains of the approvals of the records' actions, each once."""
    found: dict[str, wire.ReceiptChain] = {}
    for row in rows:
        address = {"tenant": tenant, "action_id": row["action_id"]}
        for action in connection.execute(QUERIES["fetch_action"], address):
            if action["approval_id"] is None:
                continue
            chain = fetch_chain(connection, tenant=tenant, chain_id=approval_chain(action["approval_id"]))
            if chain is not None:
                found[chain.chain_id] = chain
    return list(found.values())


def _without_data(chain: wire.ReceiptChain) -> wire.ReceiptChain:
    """Withhold what the receipts say beyond who did what when; the hashes stay, and can't be recomputed from it."""
    receipts = [receipt.model_copy(update={"data": None}) for receipt in chain.receipts]
    return chain.model_copy(update={"receipts": receipts})


def _refused(operation: str, message: str) -> AuditRefused:
    return AuditRefused(message, details={"object": "audit", "operation": operation})
