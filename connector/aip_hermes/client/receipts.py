"""Verifying a chain of receipts without its server: what was changed, left out or put in shows.

What a chain can't show is that its end was cut off: keep the newest hash of an earlier reading and look for it.
Source: wire model §8.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from aip_hermes import wire

__all__ = ["chain_problems"]


def chain_problems(chain: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the value of `receipt_chain`, each fault as a sentence; none for a chain that holds."""
    try:
        read = wire.lenient(wire.ReceiptChain, dict(chain))
    except ValidationError as exc:
        return [f"it is no chain of receipts: {violation}" for violation in wire.violations(exc)]
    found = list(_problems(read))
    if not found and not wire.chain_holds(read):
        found.append("the hashes do not hold")
    return found


def _problems(chain: wire.ReceiptChain) -> Iterator[str]:
    previous: str | None = None
    seen: set[str] = set()
    for number, receipt in enumerate(chain.receipts, start=1):
        name = f"receipt {number} ({receipt.id})"
        if receipt.id in seen:
            yield f"{name} is there twice"
        seen.add(receipt.id)
        if receipt.hash != receipt.digest():
            yield f"{name} does not have the hash that it carries: it was changed"
        if receipt.previous_hash != previous:
            yield f"{name} does not follow the one before it: one was left out, put in or moved"
        previous = receipt.hash
    if chain.receipts and chain.root_hash != wire.receipt_root(chain.receipts):
        yield "the root hash is not that of these receipts"
