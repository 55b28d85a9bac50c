"""What is published to whom, how it is found, and what the manifest says."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from aip_hermes.contract import Catalog, InvalidCatalogQuery, ServerCard, StaleCatalogCursor, load_operations
from aip_hermes.contract.handler import Offer
from aip_hermes.ids import TenantId
from aip_hermes.wire import ManifestFilter, sha256_hex
from aip_hermes.wire.schema import schema_violations
from tests.support.contract_offers import endpoint_offers

A, B = TenantId("tenant-a"), TenantId("tenant-b")
COUNT = len(load_operations())
SESSIONS = sum(name.startswith("session") for name in load_operations())
TURNS = {name for name, row in load_operations().items() if "send_message" in row.effects}
DELETES = {name for name, row in load_operations().items() if "delete" in row.effects}


def offers() -> list[Offer]:
    return [
        *endpoint_offers("zeta", tenant_id="tenant-a", display_name="Support desk", base_url="http://10.1.2.3:8642"),
        *endpoint_offers("primary"),
        *endpoint_offers("beta", tenant_id="tenant-b", base_url="http://10.9.9.9:8642/"),
    ]


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(offers())


def endpoints(catalog: Catalog, tenant_id: TenantId | None) -> set[str]:
    return {str(entry.offer.endpoint_id) for entry in catalog.page(tenant_id=tenant_id, limit=200).entries}


@pytest.mark.requirement("contract:catalog:tenants")
@pytest.mark.parametrize(
    ("tenant_id", "expected"),
    [(A, {"zeta", "primary"}), (B, {"beta", "primary"}), (TenantId("tenant-c"), {"primary"}), (None, {"primary"})],
)
def test_a_tenant_sees_its_own_endpoints_and_the_unbound(
    catalog: Catalog, tenant_id: TenantId | None, expected: set[str]
) -> None:
    assert endpoints(catalog, tenant_id) == expected
    assert {
        name
        for name in ("zeta", "primary", "beta")
        if catalog.find(f"cap:hermes_agent:{name}:session_get", tenant_id) is not None
    } == expected


@pytest.mark.requirement("contract:catalog:tenants")
def test_a_find_is_exact(catalog: Catalog) -> None:
    found = catalog.find("cap:hermes_agent:zeta:session_get", A)

    assert found is not None
    assert (found.capability.id, found.operation.name) == ("cap:hermes_agent:zeta:session_get", "session_get")
    assert found.input_violations({"session_id": ".."}) != []
    assert found.output_violations({"object": "hermes.session"}) == []
    assert catalog.find("cap:hermes_agent:Zeta:session_get", A) is None
    assert catalog.find("cap:hermes_agent::session_get", A) is None


@pytest.mark.requirement("contract:catalog:search")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("cap:hermes_agent:primary:session", SESSIONS),
        ("CAP:Hermes_Agent:Primary:SESSION", SESSIONS),
        ("hermes agent session deletion (primary)", 1),
        ("support desk", COUNT),
        ("/api/sessions/{session_id}/fork", 2),
        ("nothing of the kind", 0),
    ],
)
def test_a_text_is_found_in_any_letter_case(catalog: Catalog, text: str, count: int) -> None:
    page = catalog.page(tenant_id=A, text=text)

    assert (len(page.entries), page.total, page.next_cursor) == (count, count, None)


@pytest.mark.requirement("contract:catalog:search")
def test_the_other_filters_are_exact(catalog: Catalog) -> None:
    assert catalog.page(tenant_id=A, capability_id="cap:hermes_agent:zeta:models").total == 1
    assert catalog.page(tenant_id=A, capability_id="cap:hermes_agent:beta:models").total == 0
    assert catalog.page(tenant_id=A, profile="aip.connector.hermes_agent.v1").total == 2 * COUNT
    assert catalog.page(tenant_id=A, profile="aip.native.http.v1").total == 0


@pytest.mark.requirement("contract:catalog:paging")
@pytest.mark.parametrize("limit", [1, 5, 24, 200])
def test_pages_hold_each_match_once_and_in_order(catalog: Catalog, limit: int) -> None:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = catalog.page(tenant_id=A, cursor=cursor, limit=limit)
        assert len(page.entries) <= limit
        assert page.total == 2 * COUNT
        seen += [entry.capability.id for entry in page.entries]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert cursor == f"{catalog.revision(A)}:{seen[-1]}"

    assert seen == sorted(set(seen))
    assert len(seen) == 2 * COUNT


@pytest.mark.requirement("contract:catalog:paging")
@pytest.mark.parametrize(("limit", "size"), [(None, 100), (0, 1), (-5, 1), (200, 200), (1_000, 200)])
def test_a_limit_is_clamped(limit: int | None, size: int) -> None:
    catalog = Catalog(offer for number in range(20) for offer in endpoint_offers(f"e{number}"))

    assert len(catalog.page(tenant_id=None, limit=limit).entries) == size


@pytest.mark.requirement("contract:catalog:paging")
def test_a_page_has_the_published_form(catalog: Catalog) -> None:
    page = catalog.page(tenant_id=A, text="session_get", limit=5).wire()

    assert list(page) == ["catalog_revision", "capabilities", "next_cursor", "total"]
    assert (page["catalog_revision"], page["next_cursor"], page["total"]) == (catalog.revision(A), None, 2)
    assert all(list(entry) == ["capability", "contract_digest", "schema_digest"] for entry in page["capabilities"])
    assert [schema_violations("capability", entry["capability"]) for entry in page["capabilities"]] == [[], []]


@pytest.mark.requirement("contract:catalog:bad-cursor")
@pytest.mark.parametrize(
    "query",
    [
        {"cursor": ""},
        {"cursor": "offset:3"},
        {"cursor": "7"},
        {"cursor": "7:"},
        {"cursor": ":cap:hermes_agent:primary:models"},
        {"cursor": "x" * 2_049},
        {"text": ""},
        {"text": "ü" * 257},
        {"capability_id": "x" * 513},
        {"profile": ""},
    ],
    ids=lambda query: str(query)[:40],
)
def test_a_query_that_cannot_be_read_is_refused(catalog: Catalog, query: dict[str, str]) -> None:
    with pytest.raises(InvalidCatalogQuery) as refused:
        catalog.page(tenant_id=A, **query)  # type: ignore[arg-type]
    assert refused.value.code == "connector_catalog.invalid_query"
    assert refused.value.details["field"] in query


@pytest.mark.requirement("contract:catalog:bad-cursor", "contract:catalog:revision")
def test_a_cursor_does_not_survive_a_change(catalog: Catalog) -> None:
    cursor = catalog.page(tenant_id=A, limit=3).next_cursor
    changed = Catalog(offers()[1:])

    assert Catalog(reversed(offers())).page(tenant_id=A, cursor=cursor, limit=3).total == 2 * COUNT
    with pytest.raises(StaleCatalogCursor) as refused:
        changed.page(tenant_id=A, cursor=cursor)
    assert refused.value.code == "connector_catalog.stale_cursor"


@pytest.mark.requirement("contract:catalog:revision")
@pytest.mark.parametrize(
    "other",
    [
        {"display_name": "Other"},
        {"tenant_id": "tenant-a"},
        {"base_url": "http://127.0.0.1:8643/"},
        {"turn_timeout_s": 60},
        {"endpoint_id": "other"},
    ],
    ids=str,
)
def test_the_revision_changes_with_what_is_published(other: dict[str, Any]) -> None:
    revision = Catalog(endpoint_offers()).revision(None)

    assert Catalog(endpoint_offers()).revision(None) == revision
    assert Catalog(endpoint_offers(**other)).revision(None) != revision
    assert 0 <= revision < 2**53


@pytest.mark.requirement("contract:catalog:revision-per-tenant")
def test_a_change_for_one_tenant_shows_to_nobody_else(catalog: Catalog) -> None:
    changed = Catalog([*offers(), *endpoint_offers("new", tenant_id="tenant-b")])
    cursors = {tenant: catalog.page(tenant_id=tenant, limit=3).next_cursor for tenant in (None, A, B)}

    assert changed.revision(B) != catalog.revision(B)
    with pytest.raises(StaleCatalogCursor):
        changed.page(tenant_id=B, cursor=cursors[B])
    for stranger in (None, A, TenantId("tenant-of-nothing")):
        assert changed.revision(stranger) == catalog.revision(stranger)
    for stranger in (None, A):
        assert changed.page(tenant_id=stranger, cursor=cursors[stranger], limit=3).entries


@pytest.mark.requirement("contract:catalog:revision-per-tenant")
def test_a_cursor_serves_who_sees_the_same() -> None:
    shared = Catalog(endpoint_offers())
    bound = Catalog(endpoint_offers(tenant_id="tenant-a"))

    assert bound.revision(A) == shared.revision(A) == shared.revision(B) == shared.revision(None)
    assert bound.revision(B) == bound.revision(None) == Catalog([]).revision(A)


@pytest.mark.requirement("contract:published:digests")
def test_digests_cover_contract_and_schemas() -> None:
    catalog, quicker = Catalog(endpoint_offers()), Catalog(endpoint_offers(turn_timeout_s=60))
    found = catalog.find("cap:hermes_agent:primary:session_chat", None)
    other = quicker.find("cap:hermes_agent:primary:session_chat", None)

    assert found is not None
    assert other is not None
    wire = found.wire()
    schemas = {name: wire["capability"][name] for name in ("input_schema", "output_schema")}
    assert wire["contract_digest"] == "sha256:" + sha256_hex(wire["capability"]["contract"])
    assert wire["schema_digest"] == "sha256:" + sha256_hex(schemas)
    assert other.contract_digest != found.contract_digest
    assert other.schema_digest == found.schema_digest


@pytest.mark.requirement("contract:catalog:near-misses")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("cap:hermes_agent:Primary:session_get", ["cap:hermes_agent:primary:session_get"]),
        ("CAP:HERMES_AGENT:ZETA:SESSION_GET", ["cap:hermes_agent:zeta:session_get"]),
        (
            "cap:hermes_agent::session_get",
            ["cap:hermes_agent:primary:session_get", "cap:hermes_agent:zeta:session_get"],
        ),
        (
            "cap:hermes_agent:nowhere:session_get",
            ["cap:hermes_agent:primary:session_get", "cap:hermes_agent:zeta:session_get"],
        ),
        (
            "cap:hermes_agent:beta:session_get",
            ["cap:hermes_agent:primary:session_get", "cap:hermes_agent:zeta:session_get"],
        ),
        ("cap:hermes_agent:zeta:sesion_fork", ["cap:hermes_agent:zeta:session_fork"]),
        ("cap:hermes_agent:primary:frobnicate", []),
        ("session_get", []),
        ("", []),
        ("x" * 100_000, []),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_near_miss_leads_to_ids_that_the_caller_may_use(catalog: Catalog, asked: str, expected: list[str]) -> None:
    assert catalog.near_misses(asked, A) == expected


@pytest.mark.requirement("contract:catalog:scale")
def test_a_thousand_endpoints_share_what_is_equal() -> None:
    many = [offer for number in range(1_000) for offer in endpoint_offers(f"e{number:04}")]
    catalog = Catalog(many)
    page = catalog.page(tenant_id=None, text=":session_get ", limit=200)
    tracemalloc.start()  # makes everything much slower, so a part is weighed
    part = Catalog(many[: 100 * COUNT])
    found = part.page(tenant_id=None, text=":session_get ", limit=200)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (len(part), found.total) == (100 * COUNT, 100)
    assert (len(catalog), page.total, len(page.entries)) == (1_000 * COUNT, 1_000, 200)
    first, last = page.entries[0].capability, page.entries[-1].capability
    assert first.contract is last.contract
    assert first.input_schema is last.input_schema
    assert first.output_schema is last.output_schema
    assert size < 3.2 * 2**20


@pytest.mark.requirement("contract:catalog:scale")
def test_an_id_is_offered_once() -> None:
    with pytest.raises(ValueError, match="is offered twice"):
        Catalog([*endpoint_offers(), *endpoint_offers()])


@pytest.mark.requirement("contract:manifest:without-bearer")
def test_without_a_tenant_the_manifest_shows_the_server_alone(catalog: Catalog) -> None:
    manifest = catalog.manifest(server=ServerCard(max_request_bytes=2_048)).wire()
    text = json.dumps(manifest)

    assert [capability["id"] for capability in manifest["capabilities"]] == ["cap:aip:server:health"]
    assert manifest["manifest_version"] == "aip-manifest/v1"
    assert manifest["profiles"] == ["aip.native.http.v1"]
    assert manifest["limits"] == {"max_request_bytes": 2_048}
    assert not any(name in text for name in ("zeta", "primary", "beta", "tenant-a", "hermes_agent:", "8642"))
    assert schema_violations("manifest", manifest) == []


@pytest.mark.requirement("contract:manifest:no-origins")
def test_a_tenant_sees_its_capabilities_without_origins(catalog: Catalog) -> None:
    manifest = catalog.manifest(A).wire()
    text = json.dumps(manifest)
    connector = manifest["extensions"]["connectors"]["hermes-agent"]

    assert len(manifest["capabilities"]) == 2 * COUNT + 1
    assert manifest["profiles"] == ["aip.native.http.v1", "aip.connector.hermes_agent.v1"]
    assert not any(name in text for name in ("base_url", "10.1.2.3", "127.0.0.1", "beta", "tenant-b"))
    assert connector["compatibility"]["endpoints"] == ["primary", "zeta"]
    assert connector["compatibility"]["tenant_bound_endpoints"] == [{"endpoint_id": "zeta", "tenant_id": "tenant-a"}]
    assert sorted(connector["compatibility"]["operations"]) == sorted(load_operations())
    assert schema_violations("manifest", manifest) == []
    shown = catalog.find("cap:hermes_agent:zeta:models", A)
    assert shown is not None
    assert shown.capability.wire()["bindings"][0]["base_url"] == "http://10.1.2.3:8642/"


GATED = DELETES | {f"job_{verb}" for verb in ("create", "update", "pause", "resume", "run")}
GATED |= {"operator", "run_approval", "run_stop"}


@pytest.mark.requirement("contract:manifest:filter")
@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"capability_ids": ["cap:hermes_agent:zeta:models"]}, {"models"}),
        ({"requires_approval": True}, GATED),
        ({"risk": ["high"]}, {*DELETES, "job_run", "operator"}),
        ({"side_effects": ["send_message", "delete"]}, TURNS | DELETES),
        ({"supports_streaming": True}, {name for name, row in load_operations().items() if row.streaming}),
        ({"supports_transactions": True}, set()),
        (
            {"profiles": ["aip.connector.hermes_agent.v1"], "requires_approval": False},
            {*load_operations()} - GATED,
        ),
        ({}, {*load_operations(), "health"}),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_the_manifest_is_narrowed(catalog: Catalog, wanted: dict[str, Any], names: set[str]) -> None:
    manifest = catalog.manifest(A, wanted=ManifestFilter.model_validate(wanted))

    assert {capability.id.rpartition(":")[2] for capability in manifest.capabilities} == names
