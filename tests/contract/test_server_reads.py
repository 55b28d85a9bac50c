"""The read and discovery routes against a scripted runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aip_hermes import wire
from aip_hermes.runtime.failures import ResultNotReady
from tests.support.server_site import Site, make_site, message


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = make_site(tmp_path)
    async with made.client:
        yield made


def refused(response: httpx.Response, *, status: int, code: str) -> dict[str, Any]:
    envelope = response.json()
    assert wire.envelope_violations(envelope) == []
    error: dict[str, Any] = envelope["body"]["error"]["error"]
    assert (response.status_code, error["code"]) == (status, code)
    return error


BARE = {
    "/aip/v1/actions/act_1": ("action_status", "action_status"),
    "/aip/v1/actions/act_1/result": ("action_result", "action_result"),
    "/aip/v1/approvals": ("approval_list", "approval_list"),
    "/aip/v1/approvals/appr_1": ("approval_record_view", "approval_record_view"),
}
PROTECTED = [*BARE, "/aip/v1/capabilities", "/aip/v1/me"]


@pytest.mark.requirement("server:wire:schemas")
@pytest.mark.parametrize("path", BARE)
async def test_a_read_answers_the_bare_body_object(site: Site, path: str) -> None:
    key, schema = BARE[path]
    response = await site.get(path)
    assert response.status_code == 200
    assert list(response.json()) == [key]
    assert wire.schema_violations(schema, response.json()[key]) == []
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.requirement("server:auth:bearer-rules")
@pytest.mark.parametrize("path", PROTECTED)
async def test_a_read_needs_a_bearer(site: Site, path: str) -> None:
    refused(await site.get(path, who=None), status=401, code="auth.native_http_unauthorized")
    assert site.runtime.asked == []


@pytest.mark.requirement("server:reads:query")
@pytest.mark.parametrize(
    "path",
    [
        "/aip/v1/actions/act_1?include_result=yes",
        "/aip/v1/actions/act_1?include_result=True",
        "/aip/v1/actions/act_1?include_receipts=1",
        "/aip/v1/actions/act_1?include_chunks=",
        "/aip/v1/actions/act_1?wait_ms=-1",
        "/aip/v1/actions/act_1?wait_ms=30001",
        "/aip/v1/actions/act_1?include_result=true&include_result=true",
        "/aip/v1/actions/nonsense",
        "/aip/v1/actions/act_%FF",
        "/aip/v1/actions/act_1/result?include_receipt=maybe",
        "/aip/v1/actions/act_1/result?wait_ms=soon",
        "/aip/v1/approvals?status=open",
        "/aip/v1/approvals?limit=-1",
        "/aip/v1/approvals?limit=1.5",
        "/aip/v1/approvals?limit=4294967296",
        "/aip/v1/approvals?limit=%D9%A3",
        "/aip/v1/approvals?cursor=%20",
        "/aip/v1/approvals?approver=%FF",
        "/aip/v1/approvals/act_1",
        "/aip/v1/manifest?risk=enormous",
        "/aip/v1/manifest?requires_approval=1",
        "/aip/v1/manifest?capability_id=a,,b",
        "/aip/v1/approvals?x=" + "y" * 20_000,
    ],
    ids=lambda path: path[8:60],
)
async def test_a_malformed_parameter_is_query_invalid(site: Site, path: str) -> None:
    error = refused(await site.get(path), status=400, code="query.invalid")
    assert error["category"] == "permanent"
    assert error["source"] == {"component": "aip.server.http"}
    assert site.runtime.asked == []


@pytest.mark.requirement("server:reads:query")
async def test_unknown_parameters_are_ignored_and_limits_clamped(site: Site) -> None:
    assert (await site.get("/aip/v1/approvals?colour=blue&limit=0&status=pending")).status_code == 200
    assert (await site.get("/aip/v1/approvals?limit=100000&cursor=offset%3A3&include_action_status=true")).is_success
    first, second = (fields for _, fields in site.runtime.asked)
    assert (first["limit"], first["status"]) == (1, "pending")
    assert (second["limit"], second["cursor"], second["include_action_status"]) == (1000, "offset:3", True)


@pytest.mark.requirement("server:reads:ids-are-data")
@pytest.mark.parametrize(
    ("sent", "meant", "call"),
    [
        ("act_a%2Fb", "act_a/b", "status"),
        ("act_a%2Fresult", "act_a/result", "status"),
        ("act_a%252Fb", "act_a%2Fb", "status"),
        ("act_%E7%A5%A8", "act_票", "status"),
        ("act_a%20b%3Fc%23d", "act_a b?c#d", "status"),
        ("act_..%2F..%2Fapprovals", "act_../../approvals", "status"),
        ("act_a%2Fb/result", "act_a/b", "result"),
    ],
)
async def test_an_encoded_id_arrives_as_written(site: Site, sent: str, meant: str, call: str) -> None:
    assert (await site.get(f"/aip/v1/actions/{sent}")).status_code == 200
    assert [(name, fields["action_id"]) for name, fields in site.runtime.asked] == [(call, meant)]


@pytest.mark.requirement("server:tenancy:own-tenant")
@pytest.mark.parametrize("path", BARE)
async def test_the_own_tenant_may_be_named_and_no_other(site: Site, path: str) -> None:
    assert (await site.get(f"{path}?tenant_id=tenant-a")).status_code == 200
    refused(await site.get(f"{path}?tenant_id=tenant-b"), status=401, code="auth.tenant_mismatch")
    refused(await site.get(f"{path}?tenant_id=tenant-a", who="homeless"), status=401, code="auth.tenant_mismatch")


@pytest.mark.requirement("server:errors:one-table")
async def test_a_result_that_is_not_ready_is_503_and_not_retryable(site: Site) -> None:
    site.runtime.failure = ResultNotReady("no result yet")
    error = refused(await site.get("/aip/v1/actions/act_1/result"), status=503, code="action.result_not_ready")
    assert error["retryable"] is False


@pytest.mark.requirement("server:tenancy:nothing-leaks")
async def test_another_tenants_token_sees_nothing(site: Site) -> None:
    page = (await site.get("/aip/v1/capabilities?text=cap:hermes_agent:primary", who="stranger")).json()
    assert (page["capabilities"], page["total"]) == ([], 0)
    exact = "/aip/v1/capabilities?capability_id=cap:hermes_agent:primary:session_get"
    assert (await site.get(exact, who="stranger")).json()["total"] == 0
    manifest = (await site.get("/aip/v1/manifest", who="stranger")).text
    assert ":primary:" not in manifest
    assert "tenant-a" not in manifest
    listed = (await site.get("/aip/v1/approvals", who="stranger")).json()
    assert listed == {"approval_list": {"approvals": []}}
    assert (await site.get("/aip/v1/actions/act_1", who="stranger")).json()["action_status"]["state"] == "unknown"
    refused(await site.get("/aip/v1/actions/act_1/result", who="stranger"), status=400, code="action.not_found")
    refused(await site.get("/aip/v1/approvals/appr_1", who="stranger"), status=400, code="approval.not_found")
    envelope = await site.post(message({"manifest_request": {}}), who="stranger")
    assert ":primary:" not in envelope.text


@pytest.mark.requirement("server:catalogue:own-shape")
async def test_the_catalogue_pages_what_the_tenant_sees(site: Site) -> None:
    first = (await site.get("/aip/v1/capabilities?text=PRIMARY:session&limit=4")).json()
    assert list(first) == ["catalog_revision", "capabilities", "next_cursor", "total"]
    seen = [entry["capability"]["id"] for entry in first["capabilities"]]
    while first["next_cursor"] is not None:
        first = (
            await site.client.get(
                "/aip/v1/capabilities",
                params={"text": "PRIMARY:session", "limit": "4", "cursor": first["next_cursor"]},
                headers=site.bearer(),
            )
        ).json()
        seen += [entry["capability"]["id"] for entry in first["capabilities"]]
    assert seen == sorted(set(seen))
    assert len(seen) == first["total"]
    assert all(found.startswith("cap:hermes_agent:primary:session") for found in seen)


@pytest.mark.requirement("server:catalogue:own-shape")
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("cursor=nonsense", 400, "connector_catalog.invalid_query"),
        ("cursor=1:cap:x", 409, "connector_catalog.stale_cursor"),
        ("limit=many", 400, "connector_catalog.invalid_query"),
        ("text=" + "x" * 600, 400, "connector_catalog.invalid_query"),
        ("text=%FF", 400, "connector_catalog.invalid_query"),
    ],
)
async def test_the_catalogue_answers_its_errors_in_its_own_shape(
    site: Site, query: str, status: int, code: str
) -> None:
    response = await site.get(f"/aip/v1/capabilities?{query}")
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message"}
    assert response.json()["error"]["code"] == code


@pytest.mark.requirement("server:catalogue:own-shape")
async def test_the_catalogue_needs_a_tenant(site: Site) -> None:
    response = await site.get("/aip/v1/capabilities", who="homeless")
    assert response.status_code == 403
    assert response.json() == {
        "error": {"code": "connector_catalog.tenant_required", "principal_id": "service:nowhere"}
    }


@pytest.mark.requirement("server:manifest:public-part", "server:wire:schemas")
@pytest.mark.parametrize("who", [None, "homeless", "requester"])
async def test_the_manifest_shows_each_caller_its_part(site: Site, who: str | None) -> None:
    response = await site.get("/aip/v1/manifest", who=who)
    manifest = response.json()
    assert wire.schema_violations("manifest", manifest) == []
    assert manifest["agent"]["id"] == "service:aip-hermes:server"
    assert manifest["limits"]["max_request_bytes"] == 1_048_576
    hermes = [c["id"] for c in manifest["capabilities"] if c["id"].startswith("cap:hermes_agent:")]
    assert bool(hermes) == (who == "requester")
    assert not [found for found in hermes if not found.startswith("cap:hermes_agent:primary:")]
    assert "127.0.0.1" not in response.text


@pytest.mark.requirement("server:manifest:public-part")
@pytest.mark.parametrize("shown", ["Bearer wrong", "Bearer ", "Bearer", "bearer token-of-requester-0123456789"])
async def test_the_manifest_refuses_a_bearer_that_is_no_good(site: Site, shown: str) -> None:
    response = await site.client.get("/aip/v1/manifest", headers={"authorization": shown})
    refused(response, status=401, code="auth.native_http_unauthorized")


@pytest.mark.requirement("server:me:who-am-i")
async def test_a_caller_can_ask_who_it_is(site: Site) -> None:
    assert (await site.get("/aip/v1/me", who="reviewer")).json() == {
        "principal": {"id": "human:a:reviewer", "kind": "human"},
        "tenant_id": "tenant-a",
        "scopes": ["action:read", "approval:read"],
        "invoke": ["*"],
        "expires_at": None,
    }
    assert (await site.get("/aip/v1/me", who="homeless")).json()["tenant_id"] is None


@pytest.mark.requirement("server:health:liveness")
@pytest.mark.parametrize("path", ["/", "/health", "/aip/v1/health"])
async def test_health_needs_no_bearer(site: Site, path: str) -> None:
    site.clock.ms += 1234
    assert (await site.get(path, who=None)).json() == {
        "status": "ok",
        "protocol": "AIP",
        "version": "1.0",
        "service": "service:aip-hermes:server",
        "uptime_ms": 1234,
    }


@pytest.mark.requirement("server:health:liveness")
async def test_readiness_follows_runtime_and_store(site: Site) -> None:
    response = await site.get("/ready", who=None)
    assert response.status_code == 200
    assert response.json() == {
        "status": "ready",
        "gateway": {
            "ready": True,
            "storage": {"ready": True, "detail": "the store answers and takes writes"},
            "connectors": {"all": {"ready": True, "detail": "every endpoint answers"}},
        },
        "modules": {},
    }
    site.runtime.ready = False
    response = await site.get("/ready", who=None)
    assert (response.status_code, response.json()["status"]) == (503, "not_ready")
    assert response.json()["gateway"]["connectors"]["all"]["detail"] == "an endpoint does not answer"
    site.runtime.ready, site.runtime.stored = True, False
    response = await site.get("/ready", who=None)
    assert (response.status_code, response.json()["status"]) == (503, "not_ready")
    assert response.json()["gateway"]["storage"] == {
        "ready": False,
        "detail": "the store does not answer, or takes no writes",
    }
    site.gateway.close()
    response = await site.get("/ready", who=None)
    assert (response.status_code, response.json()["status"]) == (503, "not_ready")
    refused(await site.get("/aip/v1/actions/act_1"), status=503, code="runtime.stopping")


@pytest.mark.requirement("server:errors:unrouted")
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/aip/v1/actions/",
        "/aip/v1/actions/act_1/",
        "/aip/v1/actions/act_1/x/y",
        "/aip/v1/%61ctions/a",
    ],
)
async def test_an_unknown_route_is_an_error_envelope(site: Site, path: str) -> None:
    refused(await site.get(path), status=404, code="route.not_found")


@pytest.mark.requirement("server:errors:unrouted")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/aip/v1/messages", {"POST"}),
        ("DELETE", "/aip/v1/actions/act_1", {"GET", "HEAD"}),
        ("POST", "/aip/v1/approvals", {"GET", "HEAD"}),
        ("OPTIONS", "/health", {"GET", "HEAD"}),
        ("BREW", "/health", {"GET", "HEAD"}),
    ],
)
async def test_a_wrong_method_names_the_right_ones(site: Site, method: str, path: str, allowed: set[str]) -> None:
    response = await site.client.request(method, path, headers=site.bearer())
    refused(response, status=405, code="route.method_not_allowed")
    assert set(response.headers["allow"].split(", ")) == allowed


async def test_head_answers_as_get(site: Site) -> None:
    assert (await site.client.head("/health")).status_code == 200
    assert (await site.client.head("/aip/v1/me")).status_code == 401
