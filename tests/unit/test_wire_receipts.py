"""Receipt chains."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from aip_hermes import wire

pytestmark = pytest.mark.requirement("wire:receipts:chain")

MIRA = wire.Principal(id="human:mira", kind="human")


def _receipt(number: int, **members: Any) -> wire.Receipt:
    return wire.Receipt(
        id=f"rcpt_{number}", receipt_type="request_received", actor=MIRA, occurred_at="2031-02-03T04:05:06Z", **members
    )


def _chain() -> wire.ReceiptChain:
    chain = wire.ReceiptChain(chain_id="approval:appr_1", receipts=[])
    for number in range(3):
        chain = wire.append_receipt(chain, _receipt(number, data={"n": number}, hash="made up"))
    return chain


def test_each_receipt_hashes_itself_and_its_predecessor() -> None:
    first, second, third = _chain().receipts
    text = (
        b'{"actor":{"id":"human:mira","kind":"human"},"data":{"n":0},"id":"rcpt_0",'
        b'"occurred_at":"2031-02-03T04:05:06Z","receipt_type":"request_received"}'
    )
    assert first.previous_hash is None
    assert first.hash == sha256(text).hexdigest()
    assert (second.previous_hash, third.previous_hash) == (first.hash, second.hash)
    assert second.hash == wire.sha256_hex({k: v for k, v in second.wire().items() if k != "hash"})


def test_the_root_hashes_all_hashes_in_order() -> None:
    chain = _chain()
    assert chain.root_hash == sha256("".join(str(r.hash) for r in chain.receipts).encode()).hexdigest()
    assert wire.chain_holds(chain)


def test_an_empty_chain_holds() -> None:
    assert wire.chain_holds(wire.ReceiptChain(chain_id="c", receipts=[]))


def test_a_receipt_taken_out_is_found_also_where_the_root_was_made_again() -> None:
    chain = _chain()
    kept = [chain.receipts[0], chain.receipts[2]]
    root = sha256("".join(str(receipt.hash) for receipt in kept).encode()).hexdigest()
    assert not wire.chain_holds(chain.model_copy(update={"receipts": kept, "root_hash": root}))


@pytest.mark.parametrize("change", ["data", "order", "loss", "root", "link"])
def test_any_change_to_a_chain_is_found(change: str) -> None:
    chain = _chain()
    first, second, third = chain.receipts
    changes: dict[str, dict[str, Any]] = {
        "data": {"receipts": [first, second.model_copy(update={"data": {"n": 9}}), third]},
        "order": {"receipts": [second, first, third]},
        "loss": {"receipts": [first, second]},
        "root": {"root_hash": "0" * 64},
        "link": {"receipts": [first, second.model_copy(update={"previous_hash": None}), third]},
    }
    assert not wire.chain_holds(chain.model_copy(update=changes[change]))
