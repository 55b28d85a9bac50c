"""The audit log as it is asked for and answered.

Source: wire model §7 "AuditEvent" to "AuditQueryResult".
"""

from __future__ import annotations

from collections.abc import Iterator

from aip_hermes.wire.model import Json, Time, Wire, absent_list
from aip_hermes.wire.principal import IdentityContext, Principal
from aip_hermes.wire.receipt import ReceiptChain

__all__ = ["AuditEvent", "AuditQueryResult"]

MAX_AUDIT_PAGE = 1000


class AuditEvent(Wire):
    """id: free text, without a prefix."""

    id: str
    actor: Principal
    identity: IdentityContext | None = None
    action: str
    occurred_at: Time
    data: Json | None = None

    def broken_rules(self) -> Iterator[str]:
        if not self.action.strip():
            yield "action is blank"


class AuditQueryResult(Wire):
    events: list[AuditEvent]
    receipt_chains: list[ReceiptChain] = absent_list()
    cursor: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if len(self.events) > MAX_AUDIT_PAGE:
            yield f"events has more than {MAX_AUDIT_PAGE} entries"
