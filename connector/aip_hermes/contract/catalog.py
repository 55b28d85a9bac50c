"""What is published, to whom, and how one finds it.

An offer of an endpoint that is bound to a tenant exists for that tenant only; one without a tenant exists for everyone.
A caller without a tenant sees the latter only. For everybody else an offer is not hidden but absent.
Source: HTTP page §5.1, §8; design D18, D24.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
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
from aip_hermes.errors import RequestRefused
from aip_hermes.ids import CapabilityId, TenantId
from aip_hermes.wire import Manifest, ManifestFilter, sha256_hex

__all__ = ["MAX_PAGE", "Catalog", "CatalogPage", "InvalidCatalogQuery", "StaleCatalogCursor"]

MAX_PAGE: Final = 200
DEFAULT_PAGE: Final = 100
_MAX_FILTER_BYTES: Final = 512
_MAX_CURSOR_BYTES: Final = 2048
_MAX_NEAR: Final = 8


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    """searched: "<id> <name> <description>", case-folded."""

    offer: Offer
    searched: str

    def visible_to(self, tenant_id: TenantId | None) -> bool:
        return self.offer.tenant_id is None or self.offer.tenant_id == tenant_id


class Catalog:
    """All offers of all connectors of a runtime. Immutable.

    revision: depends on what is published only, so that a cursor outlives a restart without changes and no other.
    Raises ValueError when two offers have one capability id.
    """

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._entries: dict[str, _Entry] = {}
        for offer in sorted(offers, key=lambda offer: str(offer.capability_id)):
            key = str(offer.capability_id)
            if key in self._entries:
                raise ValueError(f"capability {key} is offered twice")
            searched = f"{key} {published_name(offer)} {published_description(offer)}".casefold()
            self._entries[key] = _Entry(offer=offer, searched=searched)
        self._published: dict[str, Published] = {}
        self.revision: int = _revision(entry.offer for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> Published | None:
        """Return what `capability_id` names for this tenant; ids are case-sensitive."""
        entry = self._entries.get(str(capability_id))
        return self._show(entry) if entry is not None and entry.visible_to(tenant_id) else None

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
        after = self._after(cursor)
        size = max(1, min(MAX_PAGE, DEFAULT_PAGE if limit is None else limit))
        wanted = None if text is None else text.casefold()
        known = load_capability_file().connector.profile
        matches = [
            entry
            for key, entry in self._entries.items()
            if entry.visible_to(tenant_id)
            and (capability_id is None or key == capability_id)
            and (wanted is None or wanted in entry.searched)
            and (profile is None or profile == known)
        ]
        rest = [entry for entry in matches if after is None or str(entry.offer.capability_id) > after]
        shown = tuple(self._show(entry) for entry in rest[:size])
        more = len(rest) > size
        return CatalogPage(
            revision=self.revision,
            entries=shown,
            next_cursor=f"{self.revision}:{shown[-1].capability.id}" if more else None,
            total=len(matches),
        )

    def near_misses(self, capability_id: CapabilityId | str, tenant_id: TenantId | None) -> list[str]:
        """Return the qualified ids, at most 8, that an unknown id may have meant; visible ones only.

        In this order of trust: another letter case; the operation of the family placeholder (`…::session_get`) or of an
        unknown endpoint; a misspelt operation of a known endpoint.
        """
        asked = str(capability_id).casefold()
        ids = [key for key, entry in self._entries.items() if entry.visible_to(tenant_id)]
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
        seen = [] if tenant_id is None else [self._show(e) for e in self._entries.values() if e.visible_to(tenant_id)]
        return make_manifest(seen, server=server or ServerCard(), wanted=wanted)

    def __iter__(self) -> Iterator[Published]:
        """Yield everything, by capability id, whatever the tenant."""
        return (self._show(entry) for entry in self._entries.values())

    def _show(self, entry: _Entry) -> Published:
        # Made when first asked for: a start with thousands of offers stays quick.
        key = str(entry.offer.capability_id)
        shown = self._published.get(key)
        if shown is None:
            shown = self._published[key] = Published.of(entry.offer)
        return shown

    def _after(self, cursor: str | None) -> str | None:
        if cursor is None:
            return None
        _bounded("cursor", cursor, _MAX_CURSOR_BYTES)
        revision, _, last = cursor.partition(":")
        if not (revision.isascii() and revision.isdigit() and last):
            raise InvalidCatalogQuery(
                "cursor is not `<revision>:<capability id>`; take `next_cursor` of the page before, unchanged",
                details={"field": "cursor"},
            )
        if revision != str(self.revision):
            raise StaleCatalogCursor(
                "the catalogue has changed since this cursor was given; list again without a cursor",
                details={"catalog_revision": self.revision},
            )
        return last


def _bounded(field: str, value: str | None, max_bytes: int) -> None:
    if value is not None and not 1 <= len(value.encode("utf-8", "surrogatepass")) <= max_bytes:
        raise InvalidCatalogQuery(f"{field} must have 1 to {max_bytes} bytes", details={"field": field})


def _revision(offers: Iterable[Offer]) -> int:
    listed = [
        [
            str(offer.capability_id),
            None if offer.tenant_id is None else str(offer.tenant_id),
            offer.display_name,
            offer.base_url,
            contract_digest(offer.handler.operation, offer.timeout_ms),
            schema_digest(offer.handler.operation.input, offer.handler.operation.output),
        ]
        for offer in offers
    ]
    # 48 bits: exact in every JSON reader.
    return int(sha256_hex(listed)[:12], 16)
