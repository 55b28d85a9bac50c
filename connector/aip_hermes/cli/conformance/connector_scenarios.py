"""The kit's scenarios as they are played: each returns what was observed, assertion by assertion, and the action ids
under which the evidence lies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.approval_scenario import approval_lifecycle
from aip_hermes.cli.conformance.audit_scenario import audit_redaction
from aip_hermes.cli.conformance.double import KEY, reply_error
from aip_hermes.cli.conformance.operator_scenarios import (
    cancellation_races,
    idempotency_duplicates,
    restart_reconnect,
    schema_enforcement,
)
from aip_hermes.cli.conformance.retry_scenario import retry_exhaustion
from aip_hermes.cli.conformance.site import KitSite, capability, endpoint_of
from aip_hermes.cli.conformance.stream_double import reply_stream, session_stream
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Actor, Call
from aip_hermes.errors import ActionFailed, RequestRefused
from aip_hermes.ids import ActionId, CapabilityId, CorrelationId, PrincipalId, TenantId
from aip_hermes.wire.schema import schema_violations

__all__ = ["PLAYED", "Observed"]

Observed = tuple[dict[str, Mapping[str, Any]], list[str]]

TURN = {"session_id": "s1", "message": "What is verified?"}
STARTED = b'event: run.started\ndata: {"session_id": "s1"}\n\n'


async def admission(site: KitSite) -> Observed:
    try:
        Catalog([*site.connector.offers(), site.connector.offers()[0]])
        twice = "taken"
    except ValueError:
        twice = "refused whole"
    manifest = site.catalog.manifest(TenantId("tenant-a"))
    ids = [published.capability.id for published in site.published]
    mine = [entry for entry in ids if entry.startswith(capability(""))]
    listed = [each.id for each in manifest.capabilities if each.id.startswith("cap:hermes_agent:")]
    admitted = {
        "twice": twice,
        "valid": schema_violations("manifest", manifest.wire()) == [],
        "own_prefix": all(entry.startswith("cap:hermes_agent:") for entry in ids),
        "in_manifest": "all" if listed == mine and len(ids) == 2 * len(mine) else "not all",
        "provider_calls": len(site.provider.arrived),
    }
    return {"admitted": admitted}, [f"catalog:{site.catalog.revision(TenantId('tenant-a'))}"]


async def identity_credentials(site: KitSite) -> Observed:
    forged = {"_aip": {"principal_id": "human:forged", "tenant_id": "tenant-forged", "trace_id": "trace-forged"}}
    turn = site.action(
        "session_chat",
        input=TURN | forged,
        memory_context=forged,
        observability={"trace_id": "trace-1"},
    )
    foreign = site.action("session_get", endpoint="other", input={"session_id": "s1"})
    async with site.open() as runtime:
        await site.submit(runtime, turn)
        [sent] = site.provider.mutations
        before = len(site.provider.arrived)
        hidden = await refusal(site.submit(runtime, foreign))
        health = await runtime.health()
        calls = len(site.provider.arrived) - before - 2  # health asks both endpoints
    handler = next(
        offer.handler for offer in site.connector.offers() if str(offer.capability_id) == foreign.capability_id
    )
    try:
        handler.check(_call_of_tenant_a(foreign))
        mismatch = "taken"
    except ActionFailed as exc:
        mismatch = exc.code
    shown = {
        "manifest": json.dumps(site.catalog.manifest(TenantId("tenant-a")).wire()),
        "capabilities": json.dumps([published.wire() for published in site.published]),
        "diagnosis": json.dumps(health),
        "endpoint": repr(endpoint_of(site.provider.base_url)),
        "connector": repr(vars(site.connector)),
    }
    headers = sent.headers
    return {
        "transport_actor_bound": {
            "principal": headers["x-aip-principal-id"],
            "tenant": headers["x-aip-tenant-id"],
            "correlation": headers["x-aip-correlation-id"],
            "bearer": headers["authorization"] == f"Bearer {KEY}",
            "forged_seen": "forged" in repr(headers) + sent.target + sent.body.decode(),
        },
        "tenant_isolated": {"through_runtime": hidden, "at_connector": mismatch, "extra_provider_calls": calls},
        "credential_handle_opaque": {"seen_in": seen(site, KEY, shown)},
    }, [turn.id]


def _call_of_tenant_a(action: wire.Action) -> Call:
    """Return the action as it would reach the connector if the runtime had let it through."""
    actor = Actor(
        principal_id=PrincipalId("human:ada"), kind="human", tenant_id=TenantId("tenant-a"), issuer="conformance"
    )
    return Call(
        action_id=ActionId(action.id),
        capability_id=CapabilityId(action.capability_id),
        input={"session_id": "s1"},
        actor=actor,
        correlation_id=CorrelationId("corr_1"),
    )


async def streaming_backpressure(site: KitSite) -> Observed:
    turn = site.action("session_chat_stream", input=TURN, mode="streaming")
    bounded = site.action("session_chat_stream", input=TURN | {"max_events": 1}, mode="streaming")
    go_on = asyncio.Event()
    rest = session_stream("s1", "Four ", "checks").partition(b"\n\n")[2]
    site.provider.on("POST", "/chat/stream", reply_stream(STARTED, go_on, rest), times=1)
    async with site.open() as runtime:
        running = asyncio.create_task(site.submit(runtime, turn))
        first = await site.read_until(runtime, turn, 1)
        state = (await runtime.status(turn.id, site.caller)).state
        go_on.set()
        await running
        whole = await site.read_on(runtime, turn, None)
        cut = await site.submit(runtime, bounded)
        kept = await site.read_on(runtime, bounded, None)
    return {
        "ordered_chunks": {
            "while_running": first.sequences,
            "state": state,
            "sequences": sequence_of(whole.sequences, start=0),
        },
        "bounded_backpressure": {
            "status": cut.status,
            "code": cut.error.code if cut.error else None,
            "chunks": len(kept.sequences),
        },
        "terminal_chunk_unique": {"done": whole.kinds.count("done"), "last": whole.kinds[-1]},
    }, [turn.id, bounded.id]


async def errors_uncertain_outcomes(site: KitSite) -> Observed:
    leaking = f"upstream said: Authorization: Bearer {KEY}"
    site.provider.on("GET", "/v1/models", reply_error(503, None, leaking))
    site.provider.on("POST", "/chat", reply_error(503, None, leaking))
    read = site.action("models", input={})
    turn = site.action("session_chat", input=TURN, idempotency_key="turn")
    async with site.open() as runtime:
        reading = await site.submit(runtime, read)
        turning = await site.submit(runtime, turn)
        again = await site.submit(runtime, turn)
    details = details_of(turning)
    shown = {"read": json.dumps(reading.wire()) + repr(reading), "mutation": json.dumps(turning.wire()) + repr(turning)}
    return {
        "protocol_fields_preserved": {"read": remote(reading), "mutation": remote(turning)},
        "uncertain_outcome_reconciled": {
            "read_back": "read_at_ms" in details.get("reconciliation", {}),
            "again": "the stored result" if again.error == turning.error else "another",
            "provider_starts": site.starts("/chat"),
        },
        "error_secrets_redacted": {"seen_in": seen(site, KEY, shown)},
    }, [read.id, turn.id]


GAPLESS = "1, 2, 3, … without a gap"


def sequence_of(numbers: list[int], *, start: int) -> str | list[int]:
    """Return the words for three or more numbers without a gap, else the numbers."""
    gapless = len(numbers) >= 3 and numbers == list(range(start, start + len(numbers)))
    return f"{start}, {start + 1}, {start + 2}, … without a gap" if gapless else numbers


async def refusal(asked: Awaitable[object]) -> str:
    """Return the code with which a request that never became an action was refused."""
    try:
        await asked
    except RequestRefused as exc:
        return exc.code
    return "taken"


def details_of(result: wire.ActionResult) -> dict[str, Any]:
    details = None if result.error is None else result.error.details
    return details if isinstance(details, dict) else {}


def ended(result: wire.ActionResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "code": result.error.code if result.error is not None else None,
        "uncertain": details_of(result).get("uncertain_outcome", False),
    }


def remote(result: wire.ActionResult) -> dict[str, Any]:
    details = details_of(result)
    return {
        "remote_status": details.get("remote_status"),
        "retryable": result.error is not None and result.error.retryable,
        "uncertain": details.get("uncertain_outcome", False),
    }


def seen(site: KitSite, secret: str, shown: Mapping[str, str]) -> list[str]:
    """Name the places in which `secret` can be read; the files of the store are among them."""
    stored = {path.name: path.read_bytes() for path in site.folder.iterdir() if path.is_file()}
    return [name for name, text in shown.items() if secret in text] + [
        name for name, data in stored.items() if secret.encode() in data
    ]


PLAYED: Mapping[str, Callable[[KitSite], Awaitable[Observed]]] = {
    "admission": admission,
    "identity_credentials": identity_credentials,
    "schema_enforcement": schema_enforcement,
    "idempotency_duplicates": idempotency_duplicates,
    "cancellation_races": cancellation_races,
    "streaming_backpressure": streaming_backpressure,
    "errors_uncertain_outcomes": errors_uncertain_outcomes,
    "restart_reconnect": restart_reconnect,
    "retry_exhaustion": retry_exhaustion,
    "approval_lifecycle": approval_lifecycle,
    "audit_redaction": audit_redaction,
}
