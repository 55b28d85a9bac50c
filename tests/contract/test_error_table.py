"""The table of error codes, row by row: code, category, retryable, what carries it, HTTP status.

Each row that can occur here is provoked over HTTP; of the others the test says why they can't. Source: runtime
behaviour §20.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import pytest
from structlog.testing import capture_logs

from aip_hermes.contract.handler import Answer, Call
from aip_hermes.runtime import RuntimeLimits
from tests.support.error_stage import Stage, staged

Carrier = Literal["error", "result", "pending"]
"""error: an error envelope. result: a failed result. pending: a result that waits for a decision."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """rule: the code of the violated rule, where one wire code stands for many (design D9)."""

    code: str
    category: str
    provoke: Callable[[Stage], Awaitable[httpx.Response]]
    retryable: bool = False
    carrier: Carrier = "error"
    status: int = 400
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
    return Row(code="auth.not_authorized", category="auth", status=401, rule=rule, provoke=provoke)


def _constraint(place: str) -> dict[str, str]:
    return {"field": place, "operator": "eq", "value": "s2"}


def _result(code: str, category: str, provoke: Callable[[Stage], Awaitable[httpx.Response]], **more: Any) -> Row:
    return Row(code=code, category=category, carrier="result", status=200, provoke=provoke, **more)


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
    *(Row(code=code, category="permanent", provoke=getting(path)) for code, path in _NOT_FOUND.items()),
    Row(code="session.not_found", category="permanent", provoke=getting("/aip/v1/sessions/sess_1", "outsider")),
    Row(code="action.id_conflict", category="permanent", provoke=same_id),
    Row(code="action.gone", category="permanent", provoke=gone, limits=RuntimeLimits(transcripts_ms=0)),
    Row(code="action.result_not_ready", category="temporary", status=503, provoke=not_ready),
    Row(code="resource.not_found", category="permanent", provoke=acting(capability_id="cap:hermes_agent:x:y")),
    Row(code="capability.unsupported", category="permanent", provoke=session_cancel),
    Row(code="storage.unavailable", category="temporary", retryable=True, status=503, provoke=full_store),
    Row(code="runtime.handler_failed", category="temporary", retryable=True, status=503, provoke=unknown_approval),
    Row(
        code="runtime.at_capacity", category="temporary", retryable=True, status=503, provoke=no_place,
        limits=RuntimeLimits(max_running=1),
    ),
    Row(code="auth.not_authorized", category="auth", status=401, provoke=acting(who="reviewer")),
    Row(code="auth.native_http_unauthorized", category="auth", status=401, provoke=getting("/aip/v1/me", "nobody")),
    Row(code="auth.tenant_mismatch", category="auth", status=401, provoke=getting("/aip/v1/events?tenant_id=x")),
    Row(code="audit.not_authorized", category="auth", status=401, provoke=getting("/aip/v1/audit/events", "mate")),
    Row(code="replay.message_id", category="auth", status=401, provoke=same_message),
    Row(code="envelope.decode.invalid", category="permanent", provoke=posting(b"{")),
    Row(code="schema.envelope.invalid", category="permanent", provoke=posting(b"{}")),
    Row(code="envelope.too_large", category="permanent", status=413, provoke=posting(b" " * 1_048_577)),
    _result("action.input_schema_invalid", "permanent", acting(input={})),
    _result("action.output_schema_invalid", "permanent", bad_output),
    _result("execution.mode_unsupported", "policy", acting(mode="async")),
    _result("idempotency.required", "policy", acting("session_create")),
    _result("idempotency.conflict", "policy", key_of_another),
    _result("idempotency.in_progress", "temporary", key_under_way, retryable=True, limits=_FAST),
    _result("transaction.unsupported", "policy", acting(transaction={"mode": "plan"})),
    _result("sla.timeout_exceeded", "temporary", too_slow, limits=_FAST),
    _result(
        "sla.queue_delay_exceeded", "policy", queued_too_long, limits=RuntimeLimits(queue_width=0, queue_delay_ms=1)
    ),
    _result("connector.runtime_failure", "connector", broken_handler),
    _result("policy.approval_unverified", "policy", carried),
    _result("policy.approval_denied", "policy", denied),
    _result("policy.approval_expired", "policy", expired),
    Row(
        code="policy.human_approval_required", category="policy", carrier="pending", status=200,
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
)  # fmt: skip

ELSEWHERE: Final = {
    "capability.schema_invalid": "the schemas of the published capabilities are checked when the server starts",
    "idempotency.scope_missing": "no published capability has a scope that a caller can lack: the fence's own tests",
    "idempotency.input_hash_mismatch": "no published capability revalidates: the fence's own tests",
    "idempotency.pending_resume_denied": "a pending key is resumed by its action's state, never by a claim",
    "credential.required": "the endpoint's key belongs to the operator: no capability asks a caller for one",
    "credential.scope_missing": "as credential.required",
    "credential.issuer_denied": "as credential.required",
    "credential.tenant_mismatch": "as credential.required",
    "credential.expired": "as credential.required",
    "policy.approval_not_granted": "a carried approval is never believed: policy.approval_unverified",
    "policy.approval_revoked": "needs a revocation between decision and intent: the decisions' own tests",
    "policy.approval_mismatch": "a decision names one approval, and that is the one it is applied to",
    "policy.approval_capability_mismatch": "as policy.approval_mismatch",
    "policy.approver_tenant_mismatch": "needs an authority of two tenants: the decisions' own tests",
    "policy.separation_of_duties.operator": "the operator of a request is its requester, whose rule comes first",
    "transaction.*": "no transactions: every mode but execute is transaction.unsupported, and none is ever found",
    "callback.*": "callbacks are refused as members that the runtime does not act on (design D8)",
    "connector.admission_capacity": "no remote fleet",
    "connector.operation_unsupported": "needs a withdrawn capability under a waiting action: the decisions' own tests",
    "connector.operation_failed": "every failure of the connector has a code of its own",
    "auth.signature.invalid": "messages are authenticated by their bearer",
    "auth.session_mismatch": "there are no AIP sessions to select",
    "auth.tenant_required": "the tenant is that of the token",
    "auth.unverified_actor": "who acts is who holds the token; members that say otherwise are not believed",
    "auth.actor_mismatch": "as auth.unverified_actor",
    "auth.claim_mismatch": "as auth.unverified_actor",
    "auth.expired": "an expired token is an unknown one: auth.native_http_unauthorized",
    "auth.identity_resolution_failed": "no identity is asked for elsewhere",
    "auth.tenant_membership_expired": "a token and its tenant end together",
    "delegation.target_mismatch": "nothing is delegated",
    "handshake.no_compatible_profile": "handshakes are capability.unsupported",
    "manifest.admission_failed": "manifests are not taken from outside",
    "action.dead_lettered": "a dead letter always keeps its result, which is answered",
    "action.dead_letter": "every failed result has an error of its own",
    "query.conflict": "no query has selectors that exclude each other",
    "resource.gone": "there are no AIP resources: resource.not_found",
    "session.closed": "there are no AIP sessions: session.not_found",
    "stream.event_encoding_failed": "as stream.event_too_large",
    "stream.event_too_large": "events of the runtime are bounded where they are made",
    "session.resume_rejected": "there are no AIP sessions: session.not_found",
}
"""Rows of the table that nobody can provoke at this server over HTTP, and why."""


def carried_by(response: httpx.Response) -> tuple[Carrier, dict[str, Any]]:
    told = response.json()
    body = told.get("body", told)
    if "error" in body:
        return "error", body["error"]["error"]
    result = body["action_result"]
    return ("result" if result["status"] == "failed" else "pending"), result["error"]


@pytest.mark.requirement("errors:table")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule or row.code)
async def test_an_error_is_what_the_table_says(tmp_path: Path, row: Row) -> None:
    async with asyncio.timeout(60), staged(tmp_path, row.limits) as stage:
        response = await row.provoke(stage)
        carrier, error = carried_by(response)
        assert (error["code"], error["category"], error["retryable"]) == (row.code, row.category, row.retryable)
        assert (carrier, response.status_code) == (row.carrier, row.status)
        if row.rule is not None:
            assert error["details"]["code"] == row.rule


@pytest.mark.requirement("errors:table")
def test_no_row_is_both_provoked_and_excused() -> None:
    assert {row.code for row in ROWS}.isdisjoint(ELSEWHERE)
