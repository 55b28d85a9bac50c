"""What an action must pass, and that a refused one leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.errors import RequestRefused
from tests.support.runtime_connector import ScriptedRejected, capability
from tests.support.runtime_site import Site, action, requester


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def code(result: wire.ActionResult) -> str | None:
    return result.error.code if result.error else None


CHECKS: list[tuple[str, dict[str, Any], str]] = [
    ("session_create", {"callback": {"profile": "p", "target": "t"}, "idempotency_key": "K"}, "action.invalid_input"),
    ("session_create", {"federation": {"trust_domain": "t"}, "idempotency_key": "K"}, "action.invalid_input"),
    ("session_create", {"transaction": {"mode": "plan"}, "idempotency_key": "K"}, "transaction.unsupported"),
    (
        "session_delete",
        {
            "idempotency_key": "K",
            "approval": {
                "approval_id": "appr_x",
                "decision": "approved",
                "approver": {"id": "human:b", "kind": "human"},
                "decided_at": "2030-01-01T00:00:00Z",
            },
        },
        "policy.approval_unverified",
    ),
    ("session_create", {"input": {"body": {"id": ".."}}, "idempotency_key": "K"}, "action.input_schema_invalid"),
    ("session_create", {"input": [], "idempotency_key": "K"}, "action.input_schema_invalid"),
    ("session_create", {}, "idempotency.required"),
    ("session_create", {"idempotency_key": "  "}, "idempotency.required"),
    ("session_create", {"idempotency_key": "K" * 256}, "action.invalid_input"),
    ("session_create", {"idempotency_key": "a b"}, "action.invalid_input"),
    ("session_create", {"idempotency_key": "K\n"}, "action.invalid_input"),
    ("session_create", {"mode": "async", "idempotency_key": "K"}, "execution.mode_unsupported"),
    ("session_create", {"mode": "streaming", "idempotency_key": "K"}, "execution.mode_unsupported"),
    (
        "session_create",
        {"capability_id": "cap:hermes_agent:primary:\ud800", "idempotency_key": "K"},
        "action.invalid_input",
    ),
    # The first violation alone is answered.
    ("session_create", {"callback": {"profile": "p", "target": "t"}, "input": []}, "action.invalid_input"),
    ("session_create", {"input": [], "mode": "async"}, "action.input_schema_invalid"),
    ("session_create", {"mode": "async"}, "idempotency.required"),
]


@pytest.mark.requirement(
    "runtime:checks:order",
    "runtime:checks:store-nothing",
    "runtime:checks:nothing-ignored",
    "runtime:fence:required-key",
)
@pytest.mark.parametrize(("operation", "members", "expected"), CHECKS)
async def test_a_violated_check_fails_the_action_and_leaves_nothing(
    site: Site, operation: str, members: dict[str, Any], expected: str
) -> None:
    given = action(operation, **members)
    async with site.open() as runtime:
        result = await site.submit(runtime, given)
        status = await runtime.status(given.id, requester())
    assert (result.status, code(result), result.action_id) == ("failed", expected, given.id)
    assert status.state == "unknown"
    assert site.connector.steps == []
    assert await site.rows("SELECT action_id FROM actions UNION ALL SELECT key_text FROM idempotency_keys") == []


@pytest.mark.requirement("runtime:checks:near-misses")
@pytest.mark.parametrize("asked", ["cap:hermes_agent::session_create", "cap:hermes_agent:Primary:session_create"])
async def test_an_unknown_capability_is_refused_with_the_ids_that_exist(site: Site, asked: str) -> None:
    async with site.open() as runtime:
        with pytest.raises(RequestRefused) as refused:
            await site.submit(runtime, action(capability_id=asked, idempotency_key="K"))
    assert refused.value.code == "resource.not_found"
    assert refused.value.details["did_you_mean"] == [capability("session_create")]
    assert capability("session_create") in refused.value.message


async def test_another_tenants_capability_does_not_exist(site: Site) -> None:
    async with site.open() as runtime:
        with pytest.raises(RequestRefused) as refused:
            await site.submit(runtime, action(idempotency_key="K"), requester(tenant="tenant-b"))
    assert refused.value.code == "resource.not_found"
    assert refused.value.details == {"capability_id": capability("session_create")}


@pytest.mark.requirement("runtime:checks:invocation")
async def test_a_caller_without_a_pattern_is_refused_before_its_input_is_looked_at(site: Site) -> None:
    async with site.open() as runtime:
        with pytest.raises(RequestRefused) as refused:
            await site.submit(runtime, action(input=[]), requester(invoke=("cap:*:session_get",)))
    assert (refused.value.code, site.connector.steps) == ("auth.not_authorized", [])


@pytest.mark.requirement("runtime:checks:store-nothing")
async def test_what_the_handler_refuses_is_a_failed_result_and_not_stored(site: Site) -> None:
    site.connector.failures["check"] = ScriptedRejected("no key for this endpoint")
    given = action(idempotency_key="K")
    async with site.open() as runtime:
        assert code(await site.submit(runtime, given)) == "connector.scripted.rejected"
        assert (await runtime.status(given.id, requester())).state == "unknown"
    assert site.connector.seen("send") == 0
