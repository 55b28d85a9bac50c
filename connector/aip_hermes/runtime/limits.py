"""How long the runtime waits, and the names of the points at which a test may stop it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from aip_hermes.contract import load_capability_file

__all__ = ["FAULT_POINTS", "FaultPoint", "RuntimeLimits"]

FaultPoint = Literal[
    "after_claim",
    "after_lock",
    "after_prepare",
    "after_intent",
    "after_send",
    "before_publish",
    "after_answer",
    "before_settle",
    "after_settle",
    "after_park",
    "after_decision",
]
"""after_claim: Action ID and key are taken, and what is asynchronous waits. after_lock: the session is held.
after_prepare: all was read, nothing sent. after_intent: durable, the next step sends. after_send: a mutation was
written, nothing of its answer read; reached by the connector. before_publish: a chunk is in hand and not stored.
after_answer: the provider's answer, or its failure, is in hand. before_settle: read back and checked, the outcome is
known and not stored. after_settle: the result is committed, nobody was told. after_park: the approval is committed,
nobody was told. after_decision: the decision is committed, its consequence is not. A safe read has no claim, lock,
intent nor after_send."""

FAULT_POINTS: Final[tuple[FaultPoint, ...]] = get_args(FaultPoint)


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeLimits:
    """All in milliseconds.

    queue_delay_ms: longest wait for a session or in the queue, as published where nothing else is said.
    key_wait_ms: longest wait of an equal submission for the one that runs. overrun_ms: grace for a handler that
    overran its deadline. confirm_ms: for reading back. cancel_ms: for stopping at the provider. queue_width: how
    many queued actions of a tenant run at a time. settle_wait_ms: how long an answer waits for a store that can't be
    written. close_wait_ms: how long closing waits for running actions. reconcile_ms: for looking what became of an
    action. past_ms, ahead_ms: window of `sent_at`. queue_tries: how often a queued action is tried at most where its
    capability declares it repeatable. lease_ms: how long a worker that is not heard of keeps what it took.
    heartbeat_ms: how often it renews. transcripts_ms: how long outputs and chunks that hold a transcript are kept after
    their action settled (design D23).

    The rest are numbers of actions. max_running: at a time, in this process; max_queued: wait for the worker;
    max_waiting: wait for a decision; each of one tenant and of all.
    """

    queue_delay_ms: int = field(default_factory=lambda: load_capability_file().common.max_queue_delay_ms)
    key_wait_ms: int = 10_000
    overrun_ms: int = 1_000
    confirm_ms: int = 2_000
    cancel_ms: int = 5_000
    queue_width: int = 8
    settle_wait_ms: int = 5_000
    close_wait_ms: int = 3_000
    reconcile_ms: int = 60_000
    past_ms: int = 300_000
    ahead_ms: int = 30_000
    queue_tries: int = 3
    lease_ms: int = 30_000
    heartbeat_ms: int = 7_500
    transcripts_ms: int = 86_400_000
    max_running: int = 2_000
    max_running_per_tenant: int = 1_000
    max_queued: int = 50_000
    max_queued_per_tenant: int = 10_000
    max_waiting: int = 50_000
    max_waiting_per_tenant: int = 10_000
