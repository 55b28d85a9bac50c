"""Who may decide: selectors, the requester who never may, and policies that are refused at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aip_hermes import wire
from aip_hermes.contract import Catalog, publish
from aip_hermes.contract.approval_terms import ApprovalTerms, ApprovalTermsInvalid
from aip_hermes.contract.publish import Published
from aip_hermes.errors import RequestRefused
from aip_hermes.runtime import Runtime
from aip_hermes.runtime.approval_policies import PolicyRefused, check_policies
from tests.support.runtime_connector import ScriptedConnector
from tests.support.runtime_site import REVIEWING, Site, ask, authority, decision, requester, reviewer


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


NOTHING: dict[str, Any] = {"roles": (), "groups": (), "tenant_policies": (), "external_systems": ()}
SELECTORS = [
    ("principal:human:example:reviewer", {}, True),
    ("principal:human:example:other", {}, False),
    ("role:session-reviewer", {"roles": ("session-reviewer",)}, True),
    ("role:session-reviewer", {"roles": ("auditor",), "groups": ("session-reviewer",)}, False),
    ("group:on-call", {"groups": ("on-call",)}, True),
    ("group:on-call", {"roles": ("on-call",)}, False),
    ("external_system:tickets", {"external_systems": ("tickets",)}, True),
    ("external_system:tickets", {}, False),
    ("tenant_policy", {"tenant_policies": ("any",)}, True),
    ("tenant_policy", {}, True),  # belonging to the tenant suffices
]


@pytest.mark.requirement("approval:selector")
@pytest.mark.parametrize(("selector", "standing", "may"), SELECTORS)
async def test_only_who_matches_the_frozen_selector_decides(
    site: Site, selector: str, standing: dict[str, Any], may: bool
) -> None:
    site.connector.approval = ApprovalTerms(selector=selector)
    site.authorities = (authority(**{**NOTHING, **standing}),)
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        if may:
            await runtime.decide(decision(request), reviewer())
        else:
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request), reviewer())
            assert refused.value.details["code"] == "policy.approver_unauthorized"
    assert len(site.connector.sends) == int(may)


@pytest.mark.requirement("approval:selector")
@pytest.mark.parametrize("selector", ["tenant_policy", "role:session-reviewer", "principal:agent:example:requester"])
@pytest.mark.parametrize("issuer", ["tests", "another token"])
@pytest.mark.parametrize("verdict", ["approved", "denied"])
async def test_the_requester_never_decides_whatever_it_matches(
    site: Site, selector: str, issuer: str, verdict: str
) -> None:
    site.connector.approval = ApprovalTerms(selector=selector)
    site.authorities = (authority("agent:example:requester"),)
    same = requester(scopes=REVIEWING | {"*"})
    same = type(same)(principal=same.principal, tenant_id=same.tenant_id, scopes=same.scopes, issuer=issuer)
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        with pytest.raises(RequestRefused) as refused:
            await runtime.decide(decision(request, same, decision=verdict), same)
        assert refused.value.details["code"] == "policy.separation_of_duties.requester"
        assert (await runtime.approval(request.id, same)).status == "pending"
    assert site.connector.sends == []


@pytest.mark.requirement("approval:terms-of-endpoint")
async def test_the_terms_of_an_endpoint_are_published_and_frozen(site: Site) -> None:
    site.connector.approval = ApprovalTerms(selector="role:session-reviewer", approvers=3, ttl_ms=60_000)
    [offer] = [each for each in site.connector.offers() if str(each.capability_id).endswith("session_delete")]
    contract = publish(offer).contract
    assert contract is not None
    assert contract.approval is not None
    published = contract.approval.wire()
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
    assert request.policy_snapshot is not None
    assert request.policy_snapshot.wire() == published
    assert (published["approver_selector"], published["minimum_distinct_principals"], published["ttl_ms"]) == (
        {"type": "role", "name": "session-reviewer"},
        3,
        60_000,
    )
    assert request.approver_selector == wire.RoleSelector(name="session-reviewer")
    assert request.expires_at == "2030-01-01T00:01:00Z"
    # What is published is what the digest and the catalogue's revision stand for.
    plain = ScriptedConnector()
    assert Catalog(site.connector.offers()).revision(None) != Catalog(plain.offers()).revision(None) or (
        Published.of(offer).contract_digest
        != next(
            Published.of(each) for each in plain.offers() if each.capability_id == offer.capability_id
        ).contract_digest
    )


@pytest.mark.requirement("approval:terms-of-endpoint")
@pytest.mark.parametrize(
    "terms",
    [
        {"selector": "all:role:a,role:b"},
        {"selector": "quorum(2, role:a, role:b)"},
        {"selector": "role:"},
        {"selector": "somebody"},
        {"approvers": 0},
        {"approvers": 33},
        {"selector": "principal:human:a", "approvers": 2},
        {"ttl_ms": 0},
    ],
)
def test_terms_that_nobody_could_keep_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ApprovalTermsInvalid):
        ApprovalTerms(**terms)


POLICIES: list[tuple[dict[str, Any], str]] = [
    ({"rule": {"operator": "all", "rules": [{"operator": "role", "name": "a"}]}}, "rule `all`"),
    ({"rule": {"operator": "role", "name": "a"}}, "rule `role`"),
    ({"delegated_authority": {"principal": "human:a", "scope": ["x"]}}, "delegated authority"),
    ({"minimum_distinct_principals": 0}, "no approver"),
    ({"ttl_ms": 0}, "no time"),
    ({"approver_selector": {"type": "principal", "id": "human:a"}, "minimum_distinct_principals": 2}, "one principal"),
]


def with_policy(changes: dict[str, Any]) -> Published:
    """Return the published delete with another approval policy."""
    [offer] = [each for each in ScriptedConnector().offers() if str(each.capability_id).endswith("session_delete")]
    whole = publish(offer).wire()
    whole["contract"]["approval"] |= changes
    return Published(
        offer=offer, capability=wire.Capability.model_validate(whole), contract_digest="", schema_digest=""
    )


@pytest.mark.requirement("approval:policy-refused-at-start")
@pytest.mark.parametrize(("changes", "reason"), POLICIES)
def test_a_policy_that_this_runtime_cannot_keep_is_refused_by_name(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(PolicyRefused) as refused:
        check_policies([with_policy(changes)])
    assert str(refused.value).startswith("cap:hermes_agent:primary:session_delete: its approval policy ")
    assert reason in str(refused.value)


@pytest.mark.requirement("approval:policy-refused-at-start")
async def test_a_runtime_does_not_open_on_such_a_policy(site: Site) -> None:
    class Ruled(Catalog):
        def __iter__(self):  # type: ignore[no-untyped-def]
            yield with_policy(POLICIES[0][0])

    with pytest.raises(PolicyRefused):
        await Runtime.open(
            store=site.path,
            catalog=Ruled(site.connector.offers()),
            connectors=[site.connector],
            authorities=None,  # type: ignore[arg-type]
        )
    assert not site.path.exists()
