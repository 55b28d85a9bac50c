"""Who may read what, and where a page of a list begins; the same for every record.

Another tenant's record looks like none at all; within the tenant, scopes and ownership decide.
Source: AIP HTTP surface §3.7, §5.1; runtime behaviour §18.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aip_hermes.ids import TenantId
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.failures import InvalidCursor, NotAuthorized, TenantMismatch
from aip_hermes.runtime.store import from_json

__all__ = ["DEFAULT_PAGE", "MAX_PAGE", "need", "offset_of", "own_tenant", "owns", "page_size", "refused"]

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000
_CURSOR = re.compile(r"offset:(\d{1,15})", re.ASCII)


def need(caller: Caller, scope: str) -> None:
    """Raises: NotAuthorized where the caller holds neither the scope nor a wider one."""
    if not caller.may(scope):
        kind, operation = scope.split(":")
        raise refused(kind, operation.capitalize(), f"this needs the scope {scope}")


def refused(kind: str, operation: str, message: str) -> NotAuthorized:
    """Return the refusal to read or write an object of a kind."""
    return NotAuthorized(message, details={"object": kind, "operation": operation})


def owns(caller: Caller, action: Mapping[str, Any]) -> bool:
    """Whether the caller submitted the action of a row."""
    owner = from_json(action["principal"])
    return (owner["id"], owner["kind"]) == (caller.principal.id, caller.principal.kind)


def own_tenant(caller: Caller, tenant_id: TenantId | None) -> str:
    """Return the caller's tenant as the store has it. Raises: TenantMismatch where another one is named."""
    if tenant_id is not None and tenant_id != caller.tenant_id:
        raise TenantMismatch("tenant_id is not the caller's tenant", details={"tenant_id": tenant_id})
    return caller.tenant_id or ""


def page_size(limit: int | None) -> int:
    """Return how many entries a page has: 100 where nothing is said, else 1…1000."""
    return min(max(DEFAULT_PAGE if limit is None else limit, 1), MAX_PAGE)


def offset_of(cursor: str | None) -> int:
    """Return where a list's page begins. Raises: InvalidCursor."""
    if cursor is None:
        return 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidCursor("a list cursor has the form `offset:<n>`", details={"expected": "offset:<n>"})
    return int(match[1])
