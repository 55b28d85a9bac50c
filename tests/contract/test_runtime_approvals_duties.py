"""Who must be somebody else by the contract, and an approval of something that is no longer offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from aip_hermes import wire
from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Offer
from aip_hermes.contract.publish import Published
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import CapabilityId, TenantId
from tests.support.runtime_connector import capability
from tests.support.runtime_site import REVIEWING, Site, ask, authority, decision, requester, reviewer


class Dutiful(Catalog):
    """The catalogue with other duties in the contract of a delete."""

    duties: wire.SeparationOfDuties

    def find(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> Published | None:
        found = super().find(capability_id, tenant_id)
        return None if found is None else self._with_duties(found)

    def __iter__(self) -> Iterator[Published]:
        return map(self._with_duties, super().__iter__())

    def _with_duties(self, found: Published) -> Published:
        whole = found.capability.wire()
        if whole["id"] != capability("session_delete"):
            return found
        whole["contract"]["approval"]["separation_of_duties"] = self.duties.wire()
        changed = wire.Capability.model_validate(whole)
        return Published(offer=found.offer, capability=changed, contract_digest="d", schema_digest="s")


@pytest.mark.requirement("approval:operator-differs")
@pytest.mark.parametrize("verdict", ["approved", "denied"])
@pytest.mark.parametrize("operator_must_differ", [True, False])
async def test_the_operator_decides_only_where_the_contract_lets_it(
    tmp_path: Path, operator_must_differ: bool, verdict: str
) -> None:
    class Catalogue(Dutiful):
        duties = wire.SeparationOfDuties(
            requester_must_differ=False, operator_must_differ=operator_must_differ, allow_self_approval=True
        )

    site = Site(tmp_path, published=Catalogue, authorities=(authority(), authority("agent:example:requester")))
    operator = requester(scopes=REVIEWING)
    async with site.open() as runtime:
        _, request = await ask(site, runtime)
        assert (request.operator or operator.principal).id == operator.principal.id
        if operator_must_differ:
            with pytest.raises(RequestRefused) as refused:
                await runtime.decide(decision(request, operator, decision=verdict), operator)
            assert refused.value.code == "auth.not_authorized"
            assert refused.value.details["code"] == "policy.separation_of_duties.operator"
            assert (await runtime.approval(request.id, reviewer())).status == "pending"
            assert site.connector.sends == []
            await runtime.decide(decision(request, decision=verdict), reviewer())
        else:
            await runtime.decide(decision(request, operator, decision=verdict), operator)
        assert (await runtime.approval(request.id, reviewer())).status == verdict
    assert len(site.connector.sends) == (verdict == "approved")


def without_delete(offers: Sequence[Offer]) -> Catalog:
    return Catalog(offer for offer in offers if not str(offer.capability_id).endswith("session_delete"))


@pytest.mark.requirement("approval:withdrawn")
async def test_what_is_no_longer_offered_when_it_is_approved_ends_certain_and_sends_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with site.open() as runtime:
        given, request = await ask(site, runtime)
    site.published = without_delete
    async with site.open() as runtime:
        await runtime.decide(decision(request), reviewer())
        result = await runtime.result(given.id, requester())
    assert result.error is not None
    assert (result.status, result.error.code) == ("failed", "connector.operation_unsupported")
    assert (result.error.retryable, (result.error.details or {}).get("uncertain_outcome")) == (False, None)
    assert site.connector.sends == []
