"""How long the runtime waits, and the names of the points at which a test may stop it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from aip_hermes.contract import load_capability_file

__all__ = ["FAULT_POINTS", "FaultPoint", "RuntimeLimits"]

FaultPoint = Literal[
    "claimed", "locked", "prepared", "intent", "sent", "confirmed", "settled", "approval_parked", "decided"
]
"""claimed: Action ID and key are taken. locked: the session is held. prepared: everything was read, nothing sent.
intent: durable, the next step sends. sent: the provider answered or failed. confirmed: read back. settled: the result
is committed, nobody was told. approval_parked: the approval is committed, nobody was told. decided: the decision is
committed, its consequence is not. A safe read passes prepared, sent, confirmed and settled only."""

FAULT_POINTS: Final[tuple[FaultPoint, ...]] = get_args(FaultPoint)


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeLimits:
    """All in milliseconds.

    queue_delay_ms: longest wait for a session or in the queue, as published where nothing else is said.
    key_wait_ms: longest wait of an equal submission for the one that runs. overrun_ms: grace for a handler that
    overran its deadline. confirm_ms: for reading back. cancel_ms: for stopping at the provider. queue_width: how
    many queued actions run at a time. settle_wait_ms: how long an answer waits for a store that can't be written.
    close_wait_ms: how long closing waits for running actions. past_ms, ahead_ms: window of `sent_at`.
    """

    queue_delay_ms: int = field(default_factory=lambda: load_capability_file().common.max_queue_delay_ms)
    key_wait_ms: int = 10_000
    overrun_ms: int = 1_000
    confirm_ms: int = 2_000
    cancel_ms: int = 5_000
    queue_width: int = 8
    settle_wait_ms: int = 5_000
    close_wait_ms: int = 3_000
    past_ms: int = 300_000
    ahead_ms: int = 30_000
