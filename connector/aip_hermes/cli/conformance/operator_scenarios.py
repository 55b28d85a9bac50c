"""The kit's scenarios that are played with the operator: schemas, duplicates, cancelling, restarts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.double import RUN, Reply, reply_json
from aip_hermes.cli.conformance.people import Crash
from aip_hermes.cli.conformance.run_events import ENDED, STARTED, told
from aip_hermes.cli.conformance.site import KitSite
from aip_hermes.cli.conformance.stream_double import reply_stream
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime

__all__ = ["cancellation_races", "idempotency_duplicates", "restart_reconnect", "schema_enforcement"]

Observed = tuple[dict[str, Mapping[str, Any]], list[str]]

OBJECTIVE = {"objective": "Check the backups."}


async def schema_enforcement(site: KitSite) -> Observed:
    bad = site.action("operator", input={"context": {"host": "a"}}, idempotency_key="bad")
    good = site.action("operator", input=OBJECTIVE, idempotency_key="good")
    site.provider.on("POST", "/v1/runs", Reply(body=b"I will do that.", headers={"content-type": "text/plain"}))
    async with site.open() as runtime:
        refused = await site.submit(runtime, bad)
        calls = len(site.provider.arrived)
        result = await site.approved(runtime, good)
    return {
        "invalid_input_rejected": _ended(refused) | {"provider_calls": calls},
        "invalid_output_rejected": _ended(result) | {"provider_starts": site.starts("/v1/runs")},
    }, [good.id]


async def idempotency_duplicates(site: KitSite) -> Observed:
    run = site.action("operator", input=OBJECTIVE, idempotency_key="run")
    other = run.model_copy(update={"input": {"objective": "Delete the backups."}})
    replayed = site.action("operator", input=OBJECTIVE, idempotency_key="run")
    _tells(site, STARTED, ENDED)
    site.faults.point = "after_intent"
    async with site.open() as runtime:
        approving = asyncio.create_task(site.approved(runtime, run))
        await site.faults.entered.wait()
        both = asyncio.gather(site.submit(runtime, run), site.submit(runtime, run))
        site.faults.go_on.set()
        statuses = [result.status for result in await both]
        await approving
        started = site.starts("/v1/runs")
        collision = await _refusal(runtime, site, other)
        again = site.starts("/v1/runs")
    async with site.open() as runtime:
        kept = await runtime.result(run.id, site.caller)
        replay = await site.submit(runtime, replayed)
    return {
        "duplicate_suppressed": {"statuses": statuses, "provider_starts": started},
        "collision_rejected": {"code": collision, "provider_starts": again},
        "delivery_id_stable": {
            "after_restart": _bound(kept, run),
            "replay": _bound(replay, run),
            "provider_starts": site.starts("/v1/runs"),
        },
    }, [run.id]


async def cancellation_races(site: KitSite) -> Observed:
    waiting, flying, late = (
        site.action("operator", input=OBJECTIVE, idempotency_key=key, mode="streaming") for key in ("1", "2", "3")
    )
    async with site.open() as runtime:
        site.faults.point = "after_prepare"
        running = asyncio.create_task(site.approved(runtime, waiting))
        await site.faults.entered.wait()
        before = await runtime.cancel(waiting.id, site.caller)
        site.faults.go_on.set()
        await running
        calls = len(site.provider.arrived)

        site.provider.on("GET", "/events", reply_stream(told(STARTED), behaviour="stall"), times=1)
        site.provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, "status": "cancelled"}))
        running = asyncio.create_task(site.approved(runtime, flying))
        await site.provider.stalled.wait()
        in_flight = await runtime.cancel(flying.id, site.caller)
        await running
        stops = site.starts("/stop")

        _tells(site, STARTED, ENDED)
        await site.approved(runtime, late)
        afterwards = await runtime.cancel(late.id, site.caller)
        more = site.starts("/stop") - stops
    return {
        "before_dispatch_cancelled": _ended(before) | {"provider_calls": calls},
        "in_flight_cancelled": {"status": in_flight.status, "stop_calls": stops},
        "late_cancel_preserved_terminal": {"status": afterwards.status, "stop_calls": more},
    }, [waiting.id, flying.id, late.id]


async def restart_reconnect(site: KitSite) -> Observed:
    lost = site.action("operator", input=OBJECTIVE, idempotency_key="lost")
    site.endpoint_faults.crash_at = "hermes.send.after"
    await _cut_off(site, lost)
    async with site.open() as runtime:
        recovered = await site.settled(runtime, lost)
        state = (await runtime.status(lost.id, site.caller)).state
        again = _ended(await site.submit(runtime, lost))
    starts = site.starts("/v1/runs")

    resumed = site.action("operator", input=OBJECTIVE, idempotency_key="resumed", mode="streaming")
    answers = iter([reply_json({**RUN, "status": "running"}), reply_json({**RUN, "status": "completed", **ENDED[1]})])
    site.provider.on("GET", "/v1/runs/run_1", lambda _: next(answers))
    go_on = asyncio.Event()
    site.provider.on("GET", "/events", reply_stream(told(STARTED, STARTED), go_on, told(STARTED)), times=1)
    async with site.open() as runtime:
        running = asyncio.create_task(site.approved(runtime, resumed))
        seen = await site.read_until(runtime, resumed, 2)
        site.faults.crash_at = "before_publish"
        go_on.set()
        with contextlib.suppress(Crash):
            await running
    async with site.open() as runtime:
        result = await site.settled(runtime, resumed)
        after = await site.read_on(runtime, resumed, seen.cursor)
    return {
        "state_recovered": {"state": state} | {name: _ended(recovered)[name] for name in ("code", "uncertain")},
        "duplicate_effect_prevented": {
            "code": again["code"],
            "uncertain": again["uncertain"],
            "provider_starts": starts,
        },
        "reconnect_cursor_resumed": {
            "before": seen.sequences,
            "after": after.sequences,
            "last": after.kinds[-1],
            "completed": result.status,
            "provider_starts": site.starts("/v1/runs") - starts,
        },
    }, [lost.id, resumed.id]


async def _cut_off(site: KitSite, action: wire.Action) -> None:
    async with site.open() as runtime:
        with contextlib.suppress(Crash):
            await site.approved(runtime, action)


def _tells(site: KitSite, *events: tuple[str, Mapping[str, Any]]) -> None:
    site.provider.on("GET", "/events", reply_stream(told(*events)), times=1)


async def _refusal(runtime: Runtime, site: KitSite, action: wire.Action) -> str:
    try:
        await site.submit(runtime, action)
    except RequestRefused as exc:
        return exc.code
    return "taken"


def _ended(result: wire.ActionResult) -> dict[str, Any]:
    details = None if result.error is None else result.error.details
    return {
        "status": result.status,
        "code": result.error.code if result.error is not None else None,
        "uncertain": details.get("uncertain_outcome", False) if isinstance(details, dict) else False,
    }


def _bound(result: wire.ActionResult, action: wire.Action) -> tuple[object, object]:
    """Return the action and the run that the result binds together."""
    output = result.output if isinstance(result.output, dict) else {}
    source = output.get("source_action_id")
    return "the action" if source == action.id == result.action_id else source, output.get("run_id")
