"""What became of a call whose answer was lost, and when its submission may be sent once more.

The same Action ID with the same content is safe at a server of ours (design D3): what it knows it answers from its
store, and what it doesn't know never ran. It stays safe while the server remembers the key; a server that forgot
would take the call for a new one. So an old record is never sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, Literal, Self

from aip_hermes import wire
from aip_hermes.client.calling import content_hash, with_identities
from aip_hermes.client.failures import ClientFailure
from aip_hermes.client.identities import CallRecord, IdentityClash
from aip_hermes.client.results import CallResult
from aip_hermes.ids import ApprovalId

__all__ = ["ResumeRefused", "Resumed", "same_submission"]

ResumeState = Literal["settled", "pending", "running", "uncertain", "never_received"]

_MARGIN_MS: Final = 60_000
"""Less than what a server promises to remember, for clocks that differ."""


class ResumeRefused(ClientFailure, code="client.resume_refused", category="permanent"):
    """The submission can't be repeated safely; nothing was sent."""

    fixed_next_step = "read the target (session_get, sessions_list); what is still wanted is a new call"


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """What became of a call.

    state: settled: its end is known, by a certain result or by a verdict. pending, running: it has none yet. uncertain:
    it ended, and its effect may have happened: reconcile it. never_received: the server does not know it. result: of
    settled and uncertain ones. approval_id: what a pending one waits for, where that is a reviewer.
    """

    record: CallRecord
    state: ResumeState
    result: CallResult | None = None
    approval_id: ApprovalId | None = None

    @classmethod
    def of(cls, record: CallRecord, result: CallResult) -> Self:
        """Return what a result says, and a verdict that was reached before. record: as it is kept now."""
        state: ResumeState
        match result.outcome:
            case "pending":
                state = "pending"
            case "uncertain":
                state = "settled" if record.state == "settled" else "uncertain"
            case _:
                state = "settled"
        return cls(record=record, state=state, result=result, approval_id=result.approval_id)

    @property
    def reconciliation(self) -> Mapping[str, Any] | None:
        """The last verdict about the call that the store knows, as the server gave it."""
        found: Mapping[str, Any] | None = (self.record.result or {}).get("reconciliation")
        return found

    @property
    def next_step(self) -> str:
        """One sentence for a person: what is safe to do now."""
        if self.reconciliation is not None:
            return str(self.reconciliation["next_step"])
        if self.result is not None:
            return self.result.next_step
        if self.state in ("running", "pending"):
            return f"wait for the end of {self.record.action_id}; nothing needs to be sent"
        return (
            f"the server never received {self.record.action_id}: resume it with its input, which sends the same "
            "submission, or read the target and give it up"
        )


def same_submission(
    record: CallRecord,
    input: Any,
    *,
    extra: Mapping[str, Any] | None,
    contract: wire.CapabilityContract | None,
    now_ms: int,
) -> Any:
    """Return the input as it was sent, once it is sure to be the same one and that the server remembers its key.

    input: as it was given to `call`; the identities that were given apart from it are put in again.
    Raises: IdentityClash, ResumeRefused.
    """
    ttl_ms = contract.idempotency.ttl_ms if contract is not None else 0
    remembers = record.idempotency_key is not None and contract is not None
    if not remembers or (ttl_ms is not None and now_ms - record.begun_at > ttl_ms - _MARGIN_MS):
        raise ResumeRefused(
            f"{record.action_id} can't be sent again safely: the server need not remember its key any more"
        )
    for whole in _spellings(record, input):
        again = content_hash(
            whole,
            capability_id=record.capability_id,
            idempotency_key=record.idempotency_key,
            mode=record.mode,
            extra=extra,
        )
        if again == record.content_hash:
            return whole
    raise IdentityClash(f"the input is not that of {record.action_id}; nothing was sent")


def _spellings(record: CallRecord, input: Any) -> Iterator[Any]:
    """Yield `input`, and `input` with each choice of the record's identities in their places."""
    yield input
    for session_id, new_session_id, session_key in product(
        (record.session_id, None), (record.new_session_id, None), (record.session_key, None)
    ):
        try:
            yield with_identities(input, session_id=session_id, new_session_id=new_session_id, session_key=session_key)
        except ValueError:
            continue
