"""The kit's scenario of approvals: two reviewers of one request, and a question of the provider answered once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.double import RUN, reply_json
from aip_hermes.cli.conformance.people import approval_request, authority, decision, reviewer
from aip_hermes.cli.conformance.run_events import ASKS, STARTED, told
from aip_hermes.cli.conformance.site import KitSite, endpoint_of
from aip_hermes.cli.conformance.stream_double import reply_stream
from aip_hermes.contract import Catalog
from aip_hermes.contract.approval_terms import ApprovalTerms
from aip_hermes.errors import RequestRefused
from aip_hermes.hermes import HermesConnector
from aip_hermes.ports import NoFaults, SystemClock
from aip_hermes.runtime import Authorities, Caller, Runtime

__all__ = ["approval_lifecycle"]

FIRST, SECOND, OUTSIDER = (f"human:example:{name}" for name in ("reviewer", "second", "outsider"))
TICKET = {"id": "ticket-1", "kind": "external_ticket", "hash": "ab" * 32, "redacted": True}


async def approval_lifecycle(site: KitSite) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    delete = site.action("session_delete", input={"session_id": "s1"}, idempotency_key="delete")
    asking = site.action("operator", input={"objective": "Check the backups."}, idempotency_key="ask")
    resume = {"resume": {"source_action_id": asking.id, "choice": "once"}}
    answering = site.action("operator", input=resume, idempotency_key="answer")
    site.provider.on("GET", "/events", reply_stream(told(STARTED, ASKS)), times=1)
    async with _open(site) as runtime:
        request = approval_request(await site.submit(runtime, delete))
        refused = await _refusal(runtime, request, OUTSIDER)
        untouched = (await runtime.approval(request.id, reviewer())).status
        await _approve(runtime, request, FIRST)
        after_one = (await runtime.approval(request.id, reviewer())).status, len(site.provider.mutations)
        await _approve(runtime, request, SECOND)
        after_two = (await runtime.approval(request.id, reviewer())).status, len(site.provider.mutations)
        kept = (await runtime.approval_context(request.id, reviewer()))["decisions"]

        asked = await _both(site, runtime, asking)
        site.provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, "status": "completed", "output": "All hold."}))
        site.provider.on("GET", "/v1/runs/run_1", reply_json({**RUN, "updated_at": 9.5}), times=2)
        first = await _both(site, runtime, answering)
        second = await site.submit(runtime, answering)
    return {
        "authority_verified": {"code": refused, "status": untouched},
        "quorum_enforced": {"after_one": after_one, "after_two": after_two},
        "evidence_persisted": {
            "approvers": [each["approver"]["id"] for each in kept],
            "evidence": [[item["id"] for item in each["evidence"]] for each in kept],
        },
        "resume_once": {
            "asked": asked.status,
            "answered": [first.status, second.status],
            "provider_answers": site.starts("/approval"),
        },
    }, [delete.id, asking.id, answering.id]


@asynccontextmanager
async def _open(site: KitSite) -> AsyncIterator[Runtime]:
    """Open a runtime before the same provider, at an endpoint that needs two approvals of two reviewers."""
    endpoint = endpoint_of(site.provider.base_url, approval=ApprovalTerms(approvers=2))
    async with HermesConnector([endpoint], clock=SystemClock(), faults=NoFaults()) as connector:
        runtime = await Runtime.open(
            store=site.store,
            catalog=Catalog(connector.offers()),
            connectors=[connector],
            authorities=Authorities((authority(FIRST), authority(SECOND))),
        )
        async with runtime, asyncio.timeout(30):
            yield runtime


def _by(request: wire.ApprovalRequest, name: str) -> tuple[wire.ApprovalDecision, Caller]:
    who = reviewer(name)
    evidence = [{**TICKET, "id": f"{TICKET['id']}:{name}"}]
    return decision(request, who, decision_id=f"decision:{request.action_id}:{name}", evidence=evidence), who


async def _approve(runtime: Runtime, request: wire.ApprovalRequest, name: str) -> None:
    await runtime.decide(*_by(request, name))


async def _refusal(runtime: Runtime, request: wire.ApprovalRequest, name: str) -> str:
    try:
        await runtime.decide(*_by(request, name))
    except RequestRefused as exc:
        return str(exc.details["code"])
    return "taken"


async def _both(site: KitSite, runtime: Runtime, action: wire.Action) -> wire.ActionResult:
    request = approval_request(await site.submit(runtime, action))
    await _approve(runtime, request, FIRST)
    await _approve(runtime, request, SECOND)
    return await runtime.result(action.id, site.caller)
