"""The table of error codes, row by row: code, category, retryable, what carries it, HTTP status.

The table is in tests/support/error_codes.py; each row that can occur here without a stage of its own is provoked over
HTTP. Source: runtime behaviour §20.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from structlog.testing import capture_logs

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import RuntimeLimits
from tests.support.error_codes import CODES
from tests.support.error_stage import Stage, staged


@dataclass(frozen=True, kw_only=True)
class Row:
    """What to do so that a code comes. rule: the code of the violated rule, where one wire code stands for many."""

    code: str
    provoke: Callable[[Stage], Awaitable[httpx.Response]]
    rule: str | None = None
    limits: RuntimeLimits = field(default_factory=RuntimeLimits)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


async def same_id(stage: Stage) -> httpx.Response:
    await stage.act(id="act_same")
    return await stage.act(id="act_same", input={"session_id": "s2"})


async def full_store(stage: Stage) -> httpx.Response:
    stage.change("CREATE TRIGGER full BEFORE INSERT ON actions BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    return await stage.act("session_create", idempotency_key="k1")


async def same_message(stage: Stage) -> httpx.Response:
    get = {"action": {"id": "act_1", "capability_id": "cap:hermes_agent:primary:session_get", "input": {}}}
    await stage.post(get, message_id="msg_same")
    return await stage.post(get, message_id="msg_same")


async def bad_output(stage: Stage) -> httpx.Response:
    async def send(_: Call) -> Answer:
        return Answer(output="it went well")  # type: ignore[arg-type]

    stage.connector.send = send
    return await stage.act("session_create", idempotency_key="k1")


async def broken_handler(stage: Stage) -> httpx.Response:
    stage.connector.failures["check"] = RuntimeError("a fault of the handler")
    return await stage.act()


async def key_of_another(stage: Stage) -> httpx.Response:
    await stage.act("session_create", idempotency_key="k1")
    return await stage.act("session_create", idempotency_key="k1", who="mate")


async def key_under_way(stage: Stage) -> httpx.Response:
    stage.hold()
    first = asyncio.create_task(stage.act("session_create", idempotency_key="k1"))
    await stage.entered.wait()
    second = await stage.act("session_create", idempotency_key="k1")
    assert second.json()["body"]["action_result"]["error"]["retry_after_ms"] > 0
    stage.go_on.set()
    await first
    return second


async def no_place(stage: Stage) -> httpx.Response:
    stage.hold()
    first = asyncio.create_task(stage.act())
    await stage.entered.wait()
    second = await stage.act()
    stage.go_on.set()
    await first
    return second


async def too_slow(stage: Stage) -> httpx.Response:
    stage.hold()
    return await stage.act("session_create", idempotency_key="k1", timeout_ms=1)


async def queued_too_long(stage: Stage) -> httpx.Response:
    await stage.act("session_chat", id="act_late", mode="async")
    return await stage.result("act_late")


async def not_ready(stage: Stage) -> httpx.Response:
    return await stage.get(f"/aip/v1/actions/{(await stage.pending())['action_id']}/result")


async def gone(stage: Stage) -> httpx.Response:
    async def send(_: Call) -> Answer:
        return Answer(output={"said": "hi"}, text="hi")

    stage.connector.send = send
    await stage.act("session_chat", id="act_gone")
    return await stage.get("/aip/v1/actions/act_gone/result")


async def denied(stage: Stage) -> httpx.Response:
    request = await stage.pending()
    await stage.decide(request, decision="denied")
    return await stage.result(request["action_id"])


async def expired(stage: Stage) -> httpx.Response:
    request = await stage.pending()
    stage.change("UPDATE approvals SET expires_at = 1")
    return await stage.result(request["action_id"])


async def carried(stage: Stage) -> httpx.Response:
    approval = {
        "approval_id": "appr_none",
        "decision": "approved",
        "approver": {"id": "human:local:reviewer", "kind": "human"},
        "decided_at": "2030-01-01T00:00:00Z",
    }
    return await stage.act("session_delete", idempotency_key="k1", approval=approval)


def deciding(**how: Any) -> Callable[[Stage], Awaitable[httpx.Response]]:
    async def decide(stage: Stage) -> httpx.Response:
        return await stage.decide(await stage.pending(), **how)

    return decide


async def decided_before(stage: Stage) -> httpx.Response:
    request = await stage.pending()
    await stage.decide(request)
    return await stage.decide(request, decision="denied", decision_id="decision:2")


async def action_lost(stage: Stage) -> httpx.Response:
    request = await stage.pending()
    stage.change("UPDATE actions SET parked = NULL")
    return await stage.decide(request)


async def unknown_approval(stage: Stage) -> httpx.Response:
    return await stage.decide({"id": "appr_none", "policy_hash": "0" * 64})


def getting(path: str, who: str = "requester") -> Callable[[Stage], Awaitable[httpx.Response]]:
    return lambda stage: stage.get(path, who=who)


def acting(operation: str = "session_get", **members: Any) -> Callable[[Stage], Awaitable[httpx.Response]]:
    return lambda stage: stage.act(operation, **members)


def posting(content: bytes) -> Callable[[Stage], Awaitable[httpx.Response]]:
    return lambda stage: stage.client.post(
        "/aip/v1/messages", content=content, headers={"content-type": "application/json"}
    )


async def session_cancel(stage: Stage) -> httpx.Response:
    return await stage.post({"cancel": {"target": {"session": "sess_1"}}})


def _refused(rule: str, provoke: Callable[[Stage], Awaitable[httpx.Response]]) -> Row:
    return Row(code="auth.not_authorized", rule=rule, provoke=provoke)


def _constraint(place: str) -> dict[str, str]:
    return {"field": place, "operator": "eq", "value": "s2"}


_NOT_FOUND: Final = {
    "action.not_found": "/aip/v1/actions/act_none/result",
    "approval.not_found": "/aip/v1/approvals/appr_none",
    "query.invalid": "/aip/v1/approvals?limit=x",
    "query.invalid_cursor": "/aip/v1/approvals?cursor=x",
    "receipt.not_found": "/aip/v1/receipts/approval:appr_none",
    "stream.cursor_expired": "/aip/v1/events?cursor=evt_cursor_9999",
}
_FAST: Final = RuntimeLimits(key_wait_ms=1, overrun_ms=1)

ROWS: Final = (
    *(Row(code=code, provoke=getting(path)) for code, path in _NOT_FOUND.items()),
    Row(code="session.not_found", provoke=getting("/aip/v1/sessions/sess_1", "outsider")),
    Row(code="action.id_conflict", provoke=same_id),
    Row(code="action.gone", provoke=gone, limits=RuntimeLimits(transcripts_ms=0)),
    Row(code="action.result_not_ready", provoke=not_ready),
    Row(code="resource.not_found", provoke=acting(capability_id="cap:hermes_agent:x:y")),
    Row(code="capability.unsupported", provoke=session_cancel),
    Row(code="storage.unavailable", provoke=full_store),
    Row(code="runtime.handler_failed", provoke=unknown_approval),
    Row(
        code="runtime.at_capacity",
        provoke=no_place,
        limits=RuntimeLimits(max_running=1),
    ),
    Row(code="auth.not_authorized", provoke=acting(who="reviewer")),
    Row(code="auth.native_http_unauthorized", provoke=getting("/aip/v1/me", "nobody")),
    Row(code="auth.tenant_mismatch", provoke=getting("/aip/v1/events?tenant_id=x")),
    Row(code="audit.not_authorized", provoke=getting("/aip/v1/audit/events", "mate")),
    Row(code="replay.message_id", provoke=same_message),
    Row(code="envelope.decode.invalid", provoke=posting(b"{")),
    Row(code="schema.envelope.invalid", provoke=posting(b"{}")),
    Row(code="envelope.too_large", provoke=posting(b" " * 1_048_577)),
    Row(code="action.input_schema_invalid", provoke=acting(input={})),
    Row(code="action.output_schema_invalid", provoke=bad_output),
    Row(code="execution.mode_unsupported", provoke=acting(mode="async")),
    Row(code="idempotency.required", provoke=acting("session_create")),
    Row(code="idempotency.conflict", provoke=key_of_another),
    Row(code="idempotency.in_progress", provoke=key_under_way, limits=_FAST),
    Row(code="transaction.unsupported", provoke=acting(transaction={"mode": "plan"})),
    Row(code="sla.timeout_exceeded", provoke=too_slow, limits=_FAST),
    Row(
        code="sla.queue_delay_exceeded", provoke=queued_too_long, limits=RuntimeLimits(queue_width=0, queue_delay_ms=1)
    ),
    Row(code="connector.runtime_failure", provoke=broken_handler),
    Row(code="policy.approval_unverified", provoke=carried),
    Row(code="policy.approval_denied", provoke=denied),
    Row(code="policy.approval_expired", provoke=expired),
    Row(
        code="policy.human_approval_required",
        provoke=acting("session_delete", idempotency_key="k1"),
    ),
    _refused("policy.approval_not_pending", decided_before),
    _refused("policy.approval_action_mismatch", action_lost),
    _refused("policy.approval_hash_mismatch", deciding(policy_hash="0" * 64)),
    _refused("policy.approval_decision_id_required", deciding(decision_id=None)),
    _refused("policy.approval_evidence_missing", deciding(reason=None)),
    _refused("policy.approver_identity_mismatch", deciding(approver={"id": "human:local:x", "kind": "human"})),
    _refused("policy.approver_unauthorized", deciding(who="outsider")),
    _refused("policy.separation_of_duties.requester", deciding(who="requester")),
    _refused("policy.approval_revocation_target_required", deciding(decision="revoked")),
    _refused("policy.approval_revocation_target_missing", deciding(decision="revoked", target_decision_id="d")),
    _refused("policy.approval_constraint_failed", deciding(constraints=[_constraint("/session_id")])),
    _refused("policy.approval_constraint_missing_field", deciding(constraints=[_constraint("/x")])),
)


def carried_by(response: httpx.Response) -> tuple[str, dict[str, Any]]:
    told = response.json()
    body = told.get("body", told)
    if "error" in body:
        return "error", body["error"]["error"]
    result = body["action_result"]
    return ("result" if result["status"] == "failed" else "pending"), result["error"]


@pytest.mark.requirement("errors:table")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule or row.code)
async def test_an_error_is_what_the_table_says(tmp_path: Path, row: Row) -> None:
    said = CODES[row.rule or row.code]
    async with asyncio.timeout(60), staged(tmp_path, row.limits) as stage:
        response = await row.provoke(stage)
        carrier, error = carried_by(response)
        assert (error["code"], error["category"], error["retryable"]) == (row.code, said.category, said.retryable)
        assert (carrier, response.status_code) == ("error" if said.carrier == "rule" else said.carrier, said.status)
        if row.rule is not None:
            assert error["details"]["code"] == row.rule
