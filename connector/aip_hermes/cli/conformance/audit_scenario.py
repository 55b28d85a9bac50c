"""The kit's scenario of audit and redaction: what is kept of an approved delete and of an answer that leaks a key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aip_hermes import wire
from aip_hermes.cli.conformance.double import KEY, reply_error
from aip_hermes.cli.conformance.people import approval_request, caller, decision, reviewer
from aip_hermes.cli.conformance.site import KitSite
from aip_hermes.ids import ActionId, CorrelationId
from aip_hermes.runtime import Caller, MessageContext, Runtime
from aip_hermes.runtime.records import AuditAsked

__all__ = ["audit_redaction"]

CORRELATION = CorrelationId("corr_kit_audit")
FORBIDDEN = ("authorization", "bearer ")


async def audit_redaction(site: KitSite) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    leaking = f"upstream said: Authorization: Bearer {KEY}"
    site.provider.on("POST", "/chat", reply_error(503, None, leaking))
    # The turn may still run at the provider, so its session is closed to deletes: the delete is of another one.
    site.provider.rows["s2"] = dict(site.provider.rows["s1"]) | {"id": "s2"}
    delete = site.action("session_delete", input={"session_id": "s2"}, idempotency_key="delete")
    turn = site.action("session_chat", input={"session_id": "s1", "message": "What is verified?"})
    auditor = caller("human:example:auditor", scopes=frozenset({"*"}))
    context = MessageContext(correlation_id=CORRELATION)
    async with site.open() as runtime:
        await runtime.submit(turn, site.caller, context)
        request = approval_request(await site.submit(runtime, delete, context))
        await runtime.decide(decision(request, decision_id="decision:audit"), reviewer())
        chain = await runtime.records.receipts(auditor, chain_id=f"approval:{request.id}")
        told = await _kept(runtime, auditor, delete)
        evidence = {"receipts": chain.wire(), "delete": told, "turn": await _kept(runtime, auditor, turn)}
        # A result keeps the provider's words, with what was secret in them replaced; records keep none at all.
        results = [await runtime.status(each.id, auditor, include_result=True) for each in (delete, turn)]
    shown = {name: json.dumps(value) for name, value in evidence.items()}
    answers = {"results": json.dumps([result.wire() for result in results])}
    stored = {path.name: path.read_bytes() for path in site.folder.iterdir() if path.is_file()}
    return {
        "receipts_emitted": {
            "types": [receipt.receipt_type for receipt in chain.receipts][-3:],
            "holds": wire.chain_holds(chain),
        },
        "audit_correlated": {
            "requested": _correlations(told, "aip.approval.requested"),
            "completed": _correlations(told, "aip.action.result"),
            "audit": sorted({str(record["data"].get("correlation_id")) for record in _results(told)}),
        },
        "sensitive_fields_redacted": {
            "seen_in": [name for name, text in shown.items() if any(word in text.lower() for word in FORBIDDEN)]
        },
        "raw_secret_absent": {
            "seen_in": [name for name, text in (shown | answers).items() if KEY in text]
            + [name for name, data in stored.items() if KEY.encode() in data]
        },
    }, [delete.id, turn.id, f"approval:{request.id}"]


async def _kept(runtime: Runtime, auditor: Caller, action: wire.Action) -> dict[str, Any]:
    """Return everything that is recorded about an action."""
    audited = await runtime.records.audit(auditor, AuditAsked(action_id=ActionId(action.id), export=True))
    return {
        "events": (await runtime.events(action.id, auditor)).wire()["events"],
        "audit": audited.wire()["events"],
    }


def _correlations(kept: Mapping[str, Any], kind: str) -> list[str | None]:
    return [event.get("correlation_id") for event in kept["events"] if event["kind"] == kind]


def _results(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [record for record in kept["audit"] if record["action"] == "aip.action.result"]
