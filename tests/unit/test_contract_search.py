"""The index finds what looking at each sentence finds, for any text, any names and any tenant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aip_hermes.contract import Catalog
from aip_hermes.contract.handler import Offer
from aip_hermes.contract.publish import published_description, published_name
from aip_hermes.ids import TenantId
from tests.support.contract_offers import endpoint_offers

NAMES = ("primary", "e", "session", "a-b", "a", "hermes_agent")
SHOWN = ("Primary", "E", "Support desk", "(", "Straße", " of ", "agent")
TENANTS = (None, "tenant-a", "tenant-b")


def sentence(offer: Offer) -> str:
    return f"{offer.capability_id} {published_name(offer)} {published_description(offer)}".casefold()


@st.composite
def sites(draw: st.DrawFn) -> list[Offer]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    return [
        offer
        for name in names
        for offer in endpoint_offers(
            name, display_name=draw(st.sampled_from(SHOWN)), tenant_id=draw(st.sampled_from(TENANTS))
        )
    ]


@pytest.mark.requirement("contract:catalog:search")
@settings(max_examples=60, deadline=None)
@given(data=st.data(), offers=sites(), tenant=st.sampled_from(TENANTS))
def test_a_text_finds_what_reading_everything_finds(
    data: st.DataObject, offers: list[Offer], tenant: str | None
) -> None:
    whole = sentence(data.draw(st.sampled_from(offers)))
    start = data.draw(st.integers(0, len(whole) - 1))
    text = whole[start : start + data.draw(st.integers(1, 40))]
    catalog = Catalog(offers)
    expected = sorted(
        str(offer.capability_id)
        for offer in offers
        if offer.tenant_id in (None, tenant) and text.casefold() in sentence(offer)
    )

    page = catalog.page(tenant_id=None if tenant is None else TenantId(tenant), text=text, limit=200)

    assert [entry.capability.id for entry in page.entries] == expected
    assert page.total == len(expected)


@pytest.mark.requirement("contract:catalog:scale")
def test_what_is_shown_is_not_kept_for_every_endpoint() -> None:
    catalog = Catalog(offer for number in range(60) for offer in endpoint_offers(f"e{number:03}"))
    first = catalog.find("cap:hermes_agent:e000:models", None)
    assert first is catalog.find("cap:hermes_agent:e000:models", None)

    assert len(list(catalog)) == len(catalog) > 1_024

    again = catalog.find("cap:hermes_agent:e000:models", None)
    assert again == first
    assert again is not first
