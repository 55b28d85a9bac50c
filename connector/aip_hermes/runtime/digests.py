"""What the runtime hashes: bare lower-case hex SHA-256 over canonical JSON.

Source: runtime behaviour §6.1, §7, §9.2; field reports on digests that cover only a part of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire

__all__ = [
    "content_hash",
    "fence_input_hash",
    "frozen_hash",
    "frozen_input_hash",
    "policy_decision_hash",
    "policy_hash",
]

_NOT_CONTENT = ("approval", "identity", "observability")


def content_hash(action: wire.Action) -> str:
    """Hash everything that makes two submissions of one Action ID the same request.

    Left out: an attached approval, the transaction's id, the identity claim (the edge overwrites it) and tracing, which
    differs from one send of a request to the next. An absent mode is `sync`.
    """
    content = action.wire()
    for member in _NOT_CONTENT:
        content.pop(member, None)
    content["mode"] = content.get("mode") or "sync"
    if "transaction" in content:
        content["transaction"] = _without_id(content["transaction"])
    return wire.sha256_hex(content)


def fence_input_hash(action: wire.Action) -> str:
    """Hash what a key stands for; a transaction's id does not take part."""
    transaction = action.transaction.wire() if action.transaction else None
    return _input_hash(action, _without_id(transaction) if transaction else None)


def frozen_input_hash(action: wire.Action) -> str:
    """Hash the input that an approval freezes; a transaction's id takes part."""
    return _input_hash(action, action.transaction.wire() if action.transaction else None)


def frozen_hash(parked: Mapping[str, Any], snapshot: Mapping[str, Any] | None) -> str:
    """Hash everything that an approval freezes: the whole action, in whose name it runs, and its target."""
    return wire.sha256_hex({"parked": parked, "snapshot": snapshot})


def policy_hash(
    policy: wire.ApprovalPolicy, *, action: wire.Action, requester_id: str, subject_id: str | None, input_hash: str
) -> str:
    """Hash what a decision is bound to. subject_id: on whose behalf the identity acts, else None."""
    return wire.sha256_hex(
        {
            "policy": policy.wire(),
            "action_id": action.id,
            "capability_id": action.capability_id,
            "requester_id": requester_id,
            "subject_id": subject_id,
            "input_hash": input_hash,
        }
    )


def policy_decision_hash(policy: wire.ApprovalPolicy, *, action: wire.Action) -> str:
    """Hash the evidence `policy_decision`."""
    return wire.sha256_hex(
        {"action_id": action.id, "capability_id": action.capability_id, "approval_policy": policy.wire()}
    )


def _input_hash(action: wire.Action, transaction: dict[str, Any] | None) -> str:
    return wire.sha256_hex({"capability_id": action.capability_id, "input": action.input, "transaction": transaction})


def _without_id(transaction: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in transaction.items() if name != "transaction_id"}
