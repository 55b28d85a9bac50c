"""The kit's scenario of tries that run out: a queued read of an endpoint that answers 503, with two tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.clock import ManualClock
from aip_hermes.cli.conformance.double import reply_error
from aip_hermes.cli.conformance.people import Unexpected
from aip_hermes.cli.conformance.site import KitSite
from aip_hermes.runtime import MessageContext, RuntimeLimits

__all__ = ["retry_exhaustion"]


async def retry_exhaustion(site: KitSite) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    site.provider.on("GET", "/v1/runs/run_1/events", reply_error(503, None, "draining"))
    clock = ManualClock()
    reading = site.action("run_events", input={"run_id": "run_1"}, mode="async")
    async with site.open(clock=clock, limits=RuntimeLimits(queue_tries=2)) as runtime:
        await runtime.submit(reading, site.caller, MessageContext())
        while not isinstance((waiting := await runtime.status(reading.id, site.caller)).retry, dict):
            pass
        calls_before = _calls(site)
        await clock.until_asleep(1)
        clock.advance(1000)
        while not (ended := await runtime.status(reading.id, site.caller)).result_status:
            pass
        result = await runtime.result(reading.id, site.caller)
        page = await runtime.events(reading.id, site.caller)
    first, last = _retry_of(waiting), _retry_of(ended)
    letters = [event for event in page.events if isinstance(event.data, dict) and event.data.get("dead_lettered")]
    return {
        "retryable_error_preserved": {
            **{name: first["last_error"][name] for name in ("code", "category", "retryable")},
            "result": result.error.code if result.error is not None else None,
        },
        "backoff_observed": {
            "waited_ms": wire.parse_rfc3339(first["next_attempt_at"]) - wire.parse_rfc3339(first["last_attempted_at"]),
            "state": waiting.state,
            "provider_calls": calls_before,
        },
        "exhaustion_dead_lettered": {
            "state": ended.state,
            "attempts": last["attempts"],
            "dead_letters": len(letters),
            "provider_calls": _calls(site),
        },
    }, [reading.id]


def _retry_of(status: wire.ActionStatus) -> dict[str, Any]:
    if not isinstance(status.retry, dict):
        raise Unexpected(f"action {status.action_id} says nothing about its tries")
    return status.retry


def _calls(site: KitSite) -> int:
    return sum(request.target.split("?")[0].endswith("/events") for request in site.provider.arrived)
