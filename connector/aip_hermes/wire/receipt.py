"""Receipts: a chain in which each entry hashes the one before it.

Source: wire model §7 "Receipt" to "ReceiptQueryRequest", §8.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from aip_hermes.wire.canonical import sha256_hex
from aip_hermes.wire.closed_sets import ReceiptType
from aip_hermes.wire.model import Json, Time, Wire
from aip_hermes.wire.principal import Principal

__all__ = [
    "Receipt",
    "ReceiptChain",
    "ReceiptQueryRequest",
    "ReceiptRef",
    "append_receipt",
    "chain_holds",
    "receipt_root",
]


class ReceiptRef(Wire):
    id: str
    hash: str


class Receipt(Wire):
    """previous_hash: of the receipt before it, absent on the first. hash: of this receipt without `hash`."""

    id: str
    receipt_type: ReceiptType
    actor: Principal
    occurred_at: Time
    correlation_id: str | None = None
    data: Json | None = None
    previous_hash: str | None = None
    hash: str | None = None

    def digest(self) -> str:
        """Return the lower-case hex SHA-256 that `hash` must hold."""
        body = self.wire()
        body.pop("hash", None)
        return sha256_hex(body)


class ReceiptChain(Wire):
    """root_hash: over the hex hashes of all receipts, in order."""

    chain_id: str
    receipts: list[Receipt]
    root_hash: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if self.receipts and not (self.root_hash or "").strip():
            yield "root_hash is blank"


class ReceiptQueryRequest(Wire):
    """Exactly one of the two selectors."""

    chain_id: str | None = None
    receipt_id: str | None = None

    def broken_rules(self) -> Iterator[str]:
        if (self.chain_id is None) == (self.receipt_id is None):
            yield "exactly one of chain_id and receipt_id is needed"
        elif self.chain_id is not None and not self.chain_id.strip():
            yield "chain_id is blank"


def append_receipt(chain: ReceiptChain, receipt: Receipt) -> ReceiptChain:
    """Return the chain with `receipt` linked and hashed; what it carried as hashes is replaced."""
    previous = chain.receipts[-1].hash if chain.receipts else None
    linked = receipt.model_copy(update={"previous_hash": previous, "hash": None})
    receipts = [*chain.receipts, linked.model_copy(update={"hash": linked.digest()})]
    return ReceiptChain(chain_id=chain.chain_id, receipts=receipts, root_hash=receipt_root(receipts))


def chain_holds(chain: ReceiptChain) -> bool:
    """Tell whether every hash, every link and the root are what the receipts say."""
    previous = None
    for receipt in chain.receipts:
        if receipt.previous_hash != previous or receipt.hash != receipt.digest():
            return False
        previous = receipt.hash
    return chain.root_hash == (receipt_root(chain.receipts) if chain.receipts else chain.root_hash)


def receipt_root(receipts: list[Receipt]) -> str:
    """Return what `root_hash` must be: over the hashes that the receipts carry."""
    return sha256("".join(receipt.hash or "" for receipt in receipts).encode("utf-8")).hexdigest()
