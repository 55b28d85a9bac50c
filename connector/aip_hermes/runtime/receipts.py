"""Receipts: what was asked, decided and done about one approval, each hashed with the one before it.

One chain per approval, `approval:<approval id>`; a receipt is written in the transaction of the change that it
witnesses, holds ids, codes and hashes, and is never changed or pruned. A plain action has no chain: its audit record
stands for it. Source: runtime behaviour §15; wire model §8.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.database import Connection
from aip_hermes.runtime.store import QUERIES, from_json, to_json

__all__ = ["approval_chain", "chain_of", "fetch_chain", "newest_ref", "witness"]


def approval_chain(approval_id: str) -> str:
    """Return the id of an approval's chain."""
    return f"approval:{approval_id}"


def witness(
    connection: Connection,
    *,
    tenant: str,
    chain_id: str,
    receipt_id: str,
    kind: wire.ReceiptType,
    actor: wire.Principal,
    now: int,
    correlation_id: str | None = None,
    data: Mapping[str, Any],
) -> None:
    """Append a receipt to its chain; a known id is left as it is.

    receipt_id: `rcpt_<subject>_<what>`. data: ids, codes and hashes; members that are None are left out.
    """
    if connection.execute(QUERIES["fetch_receipt"], {"tenant": tenant, "receipt_id": receipt_id}):
        return
    last = connection.execute(QUERIES["last_receipt"], {"tenant": tenant, "chain_id": chain_id})
    members: dict[str, Any] = {
        "id": receipt_id,
        "receipt_type": kind,
        "actor": {"id": actor.id, "kind": actor.kind},
        "occurred_at": wire.rfc3339(now),
        "correlation_id": correlation_id,
        "data": {name: value for name, value in data.items() if value is not None},
        "previous_hash": last[0]["hash"] if last else None,
    }
    receipt = wire.Receipt.model_validate({name: value for name, value in members.items() if value is not None})
    digest = receipt.digest()
    connection.execute(
        QUERIES["append_receipt"],
        {
            "tenant": tenant,
            "chain_id": chain_id,
            "position": last[0]["position"] + 1 if last else 1,
            "receipt_id": receipt_id,
            "hash": digest,
            "receipt": to_json({**receipt.wire(), "hash": digest}),
        },
    )


def fetch_chain(connection: Connection, *, tenant: str, chain_id: str) -> wire.ReceiptChain | None:
    """Return a chain as it is stored, or None for one that this tenant does not have.

    Nothing is made right on the way: whoever verifies it sees what the store holds.
    """
    rows = connection.execute(QUERIES["fetch_chain"], {"tenant": tenant, "chain_id": chain_id})
    if not rows:
        return None
    receipts = [wire.Receipt.model_validate(from_json(row["receipt"])) for row in rows]
    return wire.ReceiptChain(chain_id=chain_id, receipts=receipts, root_hash=wire.receipt_root(receipts))


def chain_of(connection: Connection, *, tenant: str, receipt_id: str) -> str | None:
    """Return the id of the chain that has a receipt, or None."""
    rows = connection.execute(QUERIES["fetch_receipt"], {"tenant": tenant, "receipt_id": receipt_id})
    return rows[0]["chain_id"] if rows else None


def newest_ref(connection: Connection, *, tenant: str, chain_id: str) -> wire.ReceiptRef | None:
    """Return id and hash of a chain's newest receipt, or None."""
    chain = fetch_chain(connection, tenant=tenant, chain_id=chain_id)
    if chain is None or chain.receipts[-1].hash is None:
        return None
    return wire.ReceiptRef(id=chain.receipts[-1].id, hash=chain.receipts[-1].hash)
