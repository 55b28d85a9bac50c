"""What is published, to whom, and how one finds it.

An offer of an endpoint that is bound to a tenant exists for that tenant only; one without a tenant exists for everyone.
A caller without a tenant sees the latter only. For everybody else an offer is not hidden but absent.
Source: HTTP page §5.1, §8; design D18, D24.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from aip_hermes.contract.handler import Offer
from aip_hermes.contract.manifest import ServerCard, make_manifest
from aip_hermes.contract.publish import (
    Published,
    contract_digest,
    published_description,
    published_name,
    schema_digest,
)
from aip_hermes.contract.rows import load_capability_file
from aip_hermes.contract.search import Index, Matches
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import CapabilityId, TenantId
from aip_hermes.wire import Manifest, ManifestFilter

__all__ = ["MAX_PAGE", "Catalog", "CatalogPage", "InvalidCatalogQuery", "StaleCatalogCursor"]

MAX_PAGE: Final = 200
DEFAULT_PAGE: Final = 100
_MAX_FILTER_BYTES: Final = 512
_MAX_CURSOR_BYTES: Final = 2048
_MAX_NEAR: Final = 8
_SHOWN_KEPT: Final = 1024


class InvalidCatalogQuery(RequestRefused, code="connector_catalog.invalid_query", category="permanent"):
    """A filter or cursor that can't be read. `details.field` names it."""


class StaleCatalogCursor(RequestRefused, code="connector_catalog.stale_cursor", category="permanent"):
    """The catalogue has changed since the cursor was given; start again without a cursor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogPage:
    """entries: by capability id. next_cursor: None on the last page. total: matches of the filter on all pages."""

    revision: int
    entries: tuple[Published, ...]
    next_cursor: str | None
    total: int

    def wire(self) -> dict[str, Any]:
        """Return the answer of the catalogue route; `next_cursor` is always there."""
        return {
            "catalog_revision": self.revision,
            "capabilities": [entry.wire() for entry in self.entries],
            "next_cursor": self.next_cursor,
            "total": self.total,
        }


class Catalog:
    """All offers of all connectors of a runtime. Immutable.

    Raises ValueError when two offers have one capability id.
    """

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._offers: dict[str, Offer] = {}
        self._index = Index(
            sentence=lambda key: _sentence(self._offers[key]), tenant=lambda key: self._offers[key].tenant_id
        )
        named, words = ("", ""), frozenset[str]()
        for offer in sorted(offers, key=lambda offer: str(offer.capability_id)):
            key = str(offer.capability_id)
            if key in self._offers:
                raise ValueError(f"capability {key} is offered twice")
            self._offers[key] = offer
            if (offer.endpoint_id, offer.display_name) != named:
                named = offer.endpoint_id, offer.display_name
                words = frozenset(str(name).casefold() for name in named) - {""}
            self._index.add(key, sentence=_sentence(offer), words=words, tenant_id=offer.tenant_id)
        self._index.complete()
        # Made when asked for, and not all kept: a capability is a hundred times its offer.
        self._show = lru_cache(maxsize=_SHOWN_KEPT)(lambda key: Published.of(self._offers[key]))
        self._told = _told(self._offers.values())

    def __len__(self) -> int:
        return len(self._offers)

    def operations(self) -> frozenset[str]:
        """Return the names of the operations that somebody may call here."""
        return frozenset(offer.handler.operation.name for offer in self._offers.values())

    def find(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> Published | None:
        """Return what `capability_id` names for this tenant; ids are case-sensitive."""
        offer = self._offers.get(str(capability_id))
        return self._show(str(capability_id)) if offer is not None and _visible(offer, tenant_id) else None

    def revision(self, tenant_id: TenantId | None) -> int:
        """Return a number for what this tenant sees, and nothing else: a cursor outlives a restart without changes and
        no other, and a change for somebody else shows nowhere."""
        seen = sum(self._told.get(tenant, 0) for tenant in {None, tenant_id})
        # 48 bits: exact in every JSON reader.
        return int(sha256(str(seen).encode()).hexdigest()[:12], 16)

    def page(
        self,
        *,
        tenant_id: TenantId | None,
        capability_id: str | None = None,
        text: str | None = None,
        profile: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> CatalogPage:
        """Return one page, ordered by capability id.

        capability_id: exact. text: case-insensitive part of "<id> <name> <description>". profile: of a binding. Each
        1 to 512 bytes. limit: default 100, clamped to 1…200.
        Raises: InvalidCatalogQuery, StaleCatalogCursor.
        """
        for field, value in (("capability_id", capability_id), ("text", text), ("profile", profile)):
            _bounded(field, value, _MAX_FILTER_BYTES)
        revision = self.revision(tenant_id)
        after = _after(cursor, revision)
        size = max(1, min(MAX_PAGE, DEFAULT_PAGE if limit is None else limit))
        matches = self._matches(tenant_id, capability_id=capability_id, text=text, profile=profile)
        found = matches.behind(after, size + 1)
        shown = tuple(self._show(key) for key in found[:size])
        return CatalogPage(
            revision=revision,
            entries=shown,
            next_cursor=f"{revision}:{found[size - 1]}" if len(found) > size else None,
            total=matches.total,
        )

    def _matches(
        self, tenant_id: TenantId | None, *, capability_id: str | None, text: str | None, profile: str | None
    ) -> Matches:
        if profile is not None and profile != load_capability_file().connector.profile:
            return Matches.of([])
        wanted = None if text is None else text.casefold()
        if capability_id is not None:
            offer = self._offers.get(capability_id)
            fits = offer is not None and _visible(offer, tenant_id) and (wanted is None or wanted in _sentence(offer))
            return Matches.of([[capability_id]] if fits else [])
        return self._index.visible(tenant_id) if wanted is None else self._index.containing(wanted, tenant_id)

    def near_misses(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> list[str]:
        """Return the qualified ids, at most 8, that an unknown id may have meant; visible ones only.

        In this order of trust: another letter case; the operation of the family placeholder (`…::session_get`) or of an
        unknown endpoint; a misspelt operation of a known endpoint.
        """
        asked = str(capability_id).casefold()
        ids = [key for key, offer in self._offers.items() if _visible(offer, tenant_id)]
        if same := [key for key in ids if key.casefold() == asked]:
            return same[:_MAX_NEAR]
        head, _, operation = asked.rpartition(":")
        if head and (named := [key for key in ids if key.rpartition(":")[2] == operation]):
            return named[:_MAX_NEAR]
        family = {key.rpartition(":")[2]: key for key in ids if key.rpartition(":")[0].casefold() == head}
        return [family[name] for name in get_close_matches(operation[:64], family, n=3, cutoff=0.8)]

    def manifest(
        self,
        tenant_id: TenantId | None = None,
        *,
        server: ServerCard | None = None,
        wanted: ManifestFilter | None = None,
    ) -> Manifest:
        """Return the server's manifest: for None the server alone, else also what the tenant sees (design D24)."""
        offers = {} if tenant_id is None else self._offers
        seen = [self._show(key) for key, offer in offers.items() if _visible(offer, tenant_id)]
        return make_manifest(seen, server=server or ServerCard(), wanted=wanted)

    def __iter__(self) -> Iterator[Published]:
        """Yield everything, by capability id, whatever the tenant."""
        return (self._show(key) for key in self._offers)


def _after(cursor: str | None, revision: int) -> str | None:
    if cursor is None:
        return None
    _bounded("cursor", cursor, _MAX_CURSOR_BYTES)
    given, _, last = cursor.partition(":")
    if not (given.isascii() and given.isdigit() and last):
        raise InvalidCatalogQuery(
            "cursor is not `<revision>:<capability id>`; take `next_cursor` of the page before, unchanged",
            details={"field": "cursor"},
        )
    if given != str(revision):
        raise StaleCatalogCursor(
            "the catalogue has changed since this cursor was given; list again without a cursor",
            details={"catalog_revision": revision},
        )
    return last


def _bounded(field: str, value: str | None, max_bytes: int) -> None:
    if value is not None and not 1 <= len(value.encode("utf-8", "surrogatepass")) <= max_bytes:
        raise InvalidCatalogQuery(f"{field} must have 1 to {max_bytes} bytes", details={"field": field})


def _visible(offer: Offer, tenant_id: TenantId | None) -> bool:
    return offer.tenant_id is None or offer.tenant_id == tenant_id


def _sentence(offer: Offer) -> str:
    """Return what a text is looked for in."""
    return f"{offer.capability_id} {published_name(offer)} {published_description(offer)}".casefold()


def _told(offers: Iterable[Offer]) -> Mapping[TenantId | None, int]:
    """Return what is published to each tenant alone, and to everyone (None), as one number each.

    A sum of hashes depends on no order, so two of these add up to what a tenant sees, at no cost per question.
    """
    told: dict[TenantId | None, int] = defaultdict(int)
    digests: dict[tuple[object, ...], tuple[str, str]] = {}
    for offer in offers:
        operation = offer.handler.operation
        known = id(operation), offer.timeout_ms, offer.approval
        if known not in digests:
            contract = contract_digest(operation, offer.timeout_ms, offer.approval)
            digests[known] = contract, schema_digest(operation.input, operation.output)
        coordinates = (str(offer.capability_id), offer.display_name, offer.base_url)
        published = repr((*coordinates, *digests[known])).encode("utf-8", "surrogatepass")
        told[offer.tenant_id] += int.from_bytes(sha256(published).digest())
    return told
