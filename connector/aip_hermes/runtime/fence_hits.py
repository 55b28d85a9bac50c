"""Counts submissions that met their own Action ID or key, where the fence answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aip_hermes import wire
from aip_hermes.errors import AipError
from aip_hermes.runtime.caller import Caller
from aip_hermes.runtime.fence import Running, Verdict
from aip_hermes.runtime.footing import Footing
from aip_hermes.runtime.submission import Submission
from aip_hermes.telemetry import FenceHit

__all__ = ["count_hit", "counting_refusals"]

_REFUSALS: Final = frozenset(
    ("action.id_conflict", "idempotency.conflict", "idempotency.in_progress", "idempotency.input_hash_mismatch")
)


def count_hit(footing: Footing, submission: Submission, verdict: Verdict) -> None:
    """Count an answer from the store, or a wait for whoever runs."""
    about = submission.about
    kind: FenceHit = "waited" if isinstance(verdict, Running) else "replayed"
    footing.meter.fence_hit(tenant=about.tenant, operation=about.operation, kind=kind)


async def counting_refusals(
    footing: Footing, action: wire.Action, caller: Caller, submit: Callable[[], Awaitable[wire.ActionResult | wire.Ack]]
) -> wire.ActionResult | wire.Ack:
    """Return what `submit` answers; count it where the fence refused."""

    def count(code: str | None) -> None:
        if code in _REFUSALS:
            operation = action.capability_id.rpartition(":")[2]
            footing.meter.fence_hit(tenant=str(caller.tenant_id or ""), operation=operation, kind="refused")

    try:
        answered = await submit()
    except AipError as error:
        count(error.code)
        raise
    if isinstance(answered, wire.ActionResult) and answered.error is not None:
        count(answered.error.code)
    return answered
